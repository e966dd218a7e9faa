"""Breakpoints without supervision: K = 1, 2, 3, 5, 7, the diffusion loss alone, trained alike.

curvedray paper run breakpoints --scale embedded -o runs/breakpoints
"""

from curvedray.paper.experiment import Experiment
from curvedray.training.recipes import recipe

experiment = Experiment(rows={f"K={k}": recipe(f"embedded_k{k}") for k in (1, 2, 3, 5, 7)}, baseline="K=2")
