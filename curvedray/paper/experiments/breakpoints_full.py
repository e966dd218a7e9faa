"""Breakpoints, every metric: the appendix's rows (K = 2, 5, 7), and K = 3, which it leaves out."""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import ALL_COLUMNS, breakpoints
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={f"K={k}": breakpoints(k) for k in (2, 3, 5, 7)},
        columns=ALL_COLUMNS,
        baseline="K=2",
        pairs=(("K=5", "K=2"), ("K=5", "K=7")),
    )
)
