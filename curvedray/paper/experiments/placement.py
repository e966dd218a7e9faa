"""Which blocks are curved: the first third, the middle, the last, or all of them."""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import window
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "all": window("all"),
            "first 10": window("first"),
            "middle 10": window("middle"),
            "last 10": window("last"),
        },
        columns=("RotErr", "CamMC", "k1", "k2", "Pitch", "Up", "Words", "FID (estimator)", "FVD (estimator)"),
        baseline="middle 10",
        says="Rows keep the paper's names; a window is as wide as the model's own curved one (10 of Wan's 30 blocks, 4 "
        "of the embedded model's 8, where windows overlap). The paper does not say how these rows were trained: its "
        "middle row is the K = 5 row of the breakpoint table, so 1K steps without supervision.",
    )
)
