"""Supervised by another teacher: UniDepthV2 at Wan's size; the exact one made worse at the embedded scale."""

from curvedray.paper.experiment import Claim, Experiment, Row, TestSet
from curvedray.paper.rows import UNSUPERVISED
from curvedray.paper.run import Table

DESK = ("embedded", "tiny")
runner = Table(
    Experiment(
        rows={
            "UniK3D": Row(budget="sweep", seen="pinhole"),
            "UniDepthV2": Row(budget="sweep", seen="pinhole", labels="unidepth-labels", scales=("wan",)),
            "noisy": Row(budget="sweep", seen="pinhole", teacher="noisy", scales=DESK),
            "biased": Row(budget="sweep", seen="pinhole", teacher="biased", scales=DESK),
            "UniK3D, all clips": Row(budget="sweep", scales=DESK),
            "pinhole-only": Row(budget="sweep", teacher="pinhole-only", scales=DESK),
            "no supervision": Row(UNSUPERVISED, budget="sweep", seen="pinhole", scales=DESK),
        },
        tests={"": TestSet(family="pinhole")},
        columns=("CamMC", "RotErr", "Words"),
        baseline="UniK3D",
        pairs=None,
        claims=tuple(
            Claim(name, other, metric, alike=0.1)
            for name, other in (
                ("UniDepthV2", "UniK3D"),
                ("noisy", "UniK3D"),
                ("biased", "UniK3D"),
                ("pinhole-only", "UniK3D, all clips"),
            )
            for metric in ("CamMC", "RotErr")
        ),
        says="The paper's claim is that the teacher does not matter: two rows alike, here within a tenth of the "
        "error. At the embedded scale `UniK3D` is the exact teacher, and the others are that teacher made worse: "
        "`noisy` (0.3 in log radius, anew in every token), `biased` (stretched by 1.3, 30 % too far), `pinhole-only` "
        "(all clips are trained on, those through bent lenses without radii; it is compared with `UniK3D, all clips`). "
        "The others train on pinhole clips alone, and all are tested on them. `no supervision` is the control: where "
        "it is alike too, a verdict says nothing of teachers.",
    )
)
