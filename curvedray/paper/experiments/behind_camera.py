"""The coordinate behind the camera: the paper's jumps where a path crosses beta = 0, ours does not."""

from curvedray.paper.checks import Check, behind_camera

runner = Check(behind_camera)
