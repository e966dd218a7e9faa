"""Breakpoints without supervision: K = 1, 2, 3, 5, 7, the diffusion loss alone, trained alike."""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import breakpoints
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={f"K={k}": breakpoints(k) for k in (1, 2, 3, 5, 7)},
        columns=("CamMC", "RotErr", "TransErr", "Gravity", "Words", "FID (estimator)"),
        baseline="K=2",
        pairs=(("K=2", "K=1"), ("K=3", "K=2"), ("K=5", "K=2"), ("K=7", "K=2"), ("K=3", "K=5")),
    )
)
