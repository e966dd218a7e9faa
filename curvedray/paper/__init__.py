"""The paper's tables and figures: what each needs, what the paper reports, and the experiment that runs it.

In: a table's name. Out: the paper's numbers, and ours beside them. `items`, `values` and `experiments/` are plain
values; `run` trains, generates and scores. Nothing here knows a metric's formula or how an adapter is built.
"""
