"""The paper's tables and figures: what each needs, what the paper reports, and the experiment that runs it."""
