"""Cameras never trained on: KITTI-360 and RealCam-Vid at Wan's size; families of them at the embedded scale."""

from curvedray.paper.experiment import Experiment, Row, TestSet
from curvedray.paper.rows import UNSUPERVISED
from curvedray.paper.run import Table

runner = Table(
    Experiment(
        rows={
            "ucpe": Row({"adapter.method": "ucpe"}, seen_in_world="wide, turning"),
            "crepe, no supervision": Row(UNSUPERVISED, seen_in_world="wide, turning"),
            "crepe": Row(seen_in_world="wide, turning"),
        },
        tests={
            "KITTI-360": TestSet(place="kitti360", in_world="fisheye", most=96),
            "RealCam-Vid": TestSet(place="realcam", in_world="pinhole", most=100),
        },
        columns=("CamMC", "RotErr", "TransErr"),
        baseline="ucpe",
        pairs=(("crepe", "ucpe"), ("crepe, no supervision", "ucpe"), ("crepe", "crepe, no supervision")),
        judges={"wan": ("vipe",)},
        says="At the embedded scale every row is trained on clips through wide lenses whose camera turns, and tested "
        "through two families of lenses it never saw, on all moves, those that do not turn it never saw either: "
        "fisheyes in KITTI-360's place, pinholes in RealCam-Vid's. At Wan's size rows are trained on all of PanShot, "
        "as in the paper.",
    )
)
