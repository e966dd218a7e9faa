"""Depth as features against depth as phase: the same radii, concatenated to tokens or turned into phases."""

from curvedray.paper.experiment import Experiment
from curvedray.paper.rows import CREPE, UCPE, method
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={"ucpe": UCPE, "depth_concat": method("depth_concat"), "crepe": CREPE},
        stride_at_wan=1,
        columns=("CamMC", "RotErr", "TransErr", "FVD (estimator)"),
        baseline="ucpe",
        pairs=(("crepe", "ucpe"), ("crepe", "depth_concat"), ("ucpe", "depth_concat")),
    )
)
