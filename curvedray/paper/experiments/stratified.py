"""Breakpoints by lens: does curvature matter more where the lens bends?"""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import breakpoints
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={f"K={k}": breakpoints(k) for k in (2, 3, 5)},
        columns=("CamMC", "RotErr", "TransErr"),
        by_lens=True,
        baseline="K=2",
    )
)
