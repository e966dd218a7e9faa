"""Training: recipes, the objective, one loop read top to bottom, checkpoints.

In: a `Recipe`, a model, clips. Out: an adapter (or a backbone), a log, checkpoints. It knows models,
adapters, data and (for validation videos) generation; it may not know evaluation or the paper's tables.
"""
