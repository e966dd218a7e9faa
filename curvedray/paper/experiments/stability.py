"""Temporal stability of log-radial statistics: the head between its jittering teacher and exact radii."""

from curvedray.paper.experiment import Claim, Experiment, Row, TestSet
from curvedray.paper.head_tables import HeadTable, stability
from curvedray.paper.rows import CREPE

STATISTICS = ("median", "q1", "q3", "iqr")
runner = HeadTable(
    Experiment(
        rows={"crepe": Row(teacher_in_world="noisy"), "crepe, exact teacher": CREPE},
        measured_rows=("UniK3D", "ViPE"),
        tests={"": TestSet(most=96)},
        columns=(*STATISTICS, "drift"),
        baseline="UniK3D",
        pairs=(("crepe", "UniK3D"), ("ViPE", "crepe")),
        claims=(Claim("crepe", "UniK3D", "drift"),),
        says="At the embedded scale a teacher whose radii jitter by 0.3 in their logarithm, anew in every frame and "
        "token, stands in UniK3D's place, and exact radii in ViPE's; `crepe` learned from the jittering teacher. "
        "Whether the head is steadier than what it learned from is the paper's claim. `drift`: median over frames of "
        "the difference between its change of the median and the exact one.",
    ),
    stability,
)
