"""Temporal stability of log-radial statistics: the head, its jittering teacher, and exact radii."""

from dataclasses import replace

from curvedray.paper.experiment import Claim, Experiment, Row, TestSet
from curvedray.paper.head_tables import HeadTable, stability
from curvedray.paper.rows import CREPE

STATISTICS = ("median", "q1", "q3", "iqr")
runner = HeadTable(
    Experiment(
        rows={
            "crepe": Row(teacher_in_world="jittery"),
            "crepe, exact teacher": replace(CREPE, scales=("embedded", "tiny")),
        },
        measured_rows=("UniK3D", "ViPE"),
        tests={"": TestSet(most=96)},
        columns=(*STATISTICS, "drift"),
        baseline="UniK3D",
        pairs=(("crepe", "UniK3D"), ("ViPE", "crepe")),
        claims=(Claim("crepe", "UniK3D", "drift"),),
        says="At the embedded scale a teacher that guesses a scale anew in every frame (0.2 in log radius) stands in "
        "UniK3D's place, and exact radii in ViPE's; `crepe` learned from the jittering teacher. Whether the head is "
        "steadier than what it learned from is the paper's claim. The exact row is not still: cameras move, and far "
        "between two latent frames. `drift`: median over frames of the difference between its change of the median and "
        "the exact one; in the paper 0.020 for CRePE and 0.034 for UniK3D. A head that answers a constant has 0 in the "
        "other columns, and in this one what the exact row has as `median`. Means over clips, where the paper has "
        "medians.",
    ),
    stability,
)
