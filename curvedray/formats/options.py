"""What a reader or writer can be told beside the file, as data: names, types, meanings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curvedray.errors import InputError


@dataclass(frozen=True)
class Option:
    """One thing that a reader or writer can be told."""

    name: str
    kinds: tuple[type, ...]  # of its value; None always stands for "not said"
    meaning: str

    def check(self, value: object, said: str = "option") -> None:
        kinds = self.kinds + ((int,) if float in self.kinds else ()) + ((list,) if tuple in self.kinds else ())
        if value is None or (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))):
            return
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{said} {self.name}", wanted, f"{value!r}, a {type(value).__name__}")


SOURCE_SIZE = Option("source_size", (tuple,), "the video's own (width, height), if it was cropped to another shape")
NEAR_DEPTH = Option("near_depth", (float,), "the near distance, by which translations are divided; the unit is near")
NEAR_DEPTHS = Option("near_depths", (str, Path), "PanShot's .jsonl of near distances")
CLIP = Option("clip", (str,), "which clip of near_depths, as video_id-clip_id; the pose file's name if left out")
ZERO_YAW = Option("zero_yaw", (bool,), "turn the world about y so that the first camera has no yaw, as UCPE does")
INDEX = Option("index", (int,), "which of several, from 0")
ROOT = Option("root", (str, Path), "the folder that the request's pose_path starts from")
CAMERA = Option("camera", (str,), "which of the file's cameras, such as cam01")
INTRINSICS = Option("intrinsics", (str, Path), "the file of the lens, if it is not in its usual place")
QUATERNION = Option("quaternion", (str,), "wxyz (real part first) or xyzw (last), where no header says it")
SENSOR = Option("sensor", (str, Path), "the camera's sensor.yaml: its place on the body, and its lens")
POSE = Option("pose", (str,), "world_from_camera or camera_from_world")
FRAMES = Option("frames", (int,), "the video's length, over which the curves are spread (49)")
TRAJ_NORMALIZATION = Option("traj_normalization", (float,), "multiplies RealEstate10K's translations, as UCPE does")

BOUNDS = Option("bounds", (tuple,), "the nearest and farthest distance of the scene (0.1, 100)")
NEAR_DEPTH_WRITTEN = Option("near_depth", (float,), "multiplies translations, for a reader that will divide by it")
PROVENANCE = Option("provenance", (Mapping,), "names and texts for people: where the cameras come from")
URL = Option("url", (str,), "the first line: the video's address")
CAMERA_WRITTEN = Option("camera", (str,), "the camera's name in the file (cam01)")
FILE_PATH = Option("file_path", (str,), "the images' names; {:05d} stands for the frame's number")
IMAGE_NAME = Option("image_name", (str,), "the images' names; {:05d} stands for the frame's number")
TEXT = Option("text", (bool,), "text files instead of binary ones")


def check_options(format: str, known: Iterable[Option], said: Mapping[str, Any]) -> None:
    """Refuse an option that the format does not take, or a value of another type than it takes."""
    table = {option.name: option for option in known}
    for name, value in said.items():
        if name not in table:
            raise InputError(f"option {name}", f"one that {format} takes ({', '.join(table) or 'none'})", name)
        table[name].check(value)
