"""Depth as features against depth as phase: the same radii, concatenated to tokens or turned into phases."""

from curvedray.paper.experiment import Experiment, Row
from curvedray.paper.rows import CREPE, TURNED_VALUES, UCPE, method
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "ucpe": UCPE,
            "depth_concat": method("depth_concat"),
            "crepe": CREPE,
            "crepe, query and value": Row(TURNED_VALUES, scales=("embedded", "tiny")),
        },
        stride_at_wan=1,
        columns=("CamMC", "RotErr", "TransErr", "FVD (estimator)"),
        baseline="ucpe",
        pairs=(("crepe", "ucpe"), ("crepe", "depth_concat"), ("ucpe", "depth_concat")),
        says="Depth-Concat and UCPE turn queries, keys and values by relative rays in every block; CRePE has keys "
        "turned by distances in place of that in some. So its row differs in more than in how distance enters, in the "
        "paper too: `crepe, query and value`, which is ours, turns these as well.",
    )
)
