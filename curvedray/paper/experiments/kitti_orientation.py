"""Orientation on cameras never trained on: the columns that the paper gives in its text, of the zero-shot rows."""

from curvedray.paper.experiment import Claim, Experiment, Row, TestSet
from curvedray.paper.rows import UNSUPERVISED
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "ucpe": Row({"adapter.method": "ucpe"}, seen_in_world="wide, turning"),
            "crepe, no supervision": Row(UNSUPERVISED, seen_in_world="wide, turning"),
            "crepe": Row(seen_in_world="wide, turning"),
        },
        tests={"": TestSet(place="kitti360", in_world="fisheye", most=96)},
        columns=("Pitch", "Roll", "Gravity", "Up"),
        baseline="ucpe",
        judges={"wan": ("geocalib",)},
        pairs=None,
        claims=(
            *(Claim("crepe", "ucpe", metric) for metric in ("Roll", "Gravity", "Up")),
            Claim("crepe", "ucpe", "Pitch", alike=0.1),
            *(Claim("crepe, no supervision", "ucpe", metric) for metric in ("Pitch", "Gravity")),
        ),
        says="The rows and clips of `zero-shot`, KITTI-360's part. The paper calls pitch on par, here within a tenth; "
        "without supervision it has a pitch of 1.478 and a gravity of 2.500.",
    )
)
