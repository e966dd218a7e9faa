"""The formats we know, as data: each one's name, endings, convention in words, and what it cannot carry.

The code of each is in handlers.py. This table loads nothing heavy, so that the commands that list it answer at once.
"""

from dataclasses import dataclass
from typing import Literal

from curvedray.errors import InputError
from curvedray.formats.options import (
    BOUNDS,
    CAMERA,
    CAMERA_WRITTEN,
    CLIP,
    FILE_PATH,
    FRAMES,
    IMAGE_NAME,
    INDEX,
    INTRINSICS,
    NEAR_DEPTH,
    NEAR_DEPTH_WRITTEN,
    NEAR_DEPTHS,
    POSE,
    PROVENANCE,
    QUATERNION,
    ROOT,
    SENSOR,
    SOURCE_SIZE,
    TEXT,
    TRAJ_NORMALIZATION,
    URL,
    ZERO_YAW,
    Option,
)

EVERYTHING = frozenset({"focal", "fy", "center", "zoom", "xi", "max_angle", "size", "unit", "fps"})


@dataclass(frozen=True)
class Format:
    """One kind of camera file."""

    name: str
    extensions: tuple[str, ...]
    convention: str
    lost: str  # what a reader must be told again, in words
    carries: frozenset[str]  # the parts of Cameras, beside the poses, that survive a round trip
    unit: Literal["metric", "arbitrary"]  # what its translations are taken for, where the file does not say
    options: tuple[Option, ...] = ()  # of its reader, beside those that all readers take
    write_options: tuple[Option, ...] = ()
    reads_folders: bool = False
    written: bool = True  # False: only read


LENSLESS: frozenset[str] = frozenset()
PINHOLE = frozenset({"focal", "fy", "center", "zoom"})

_ALL = (
    Format(
        "curvedray",
        (".json",),
        "world_from_camera, OpenCV axes, pixels with centres at +0.5; says its unit, fps and lens",
        "nothing",
        EVERYTHING,
        "arbitrary",
        write_options=(PROVENANCE,),
    ),
    Format(
        "realestate10k",
        (".txt",),
        "camera_from_world, OpenCV axes, intrinsics divided by width and height, times in microseconds",
        "xi (refused), max_angle, image size, unit",
        PINHOLE | {"fps"},
        "arbitrary",
        options=(SOURCE_SIZE,),
        write_options=(URL,),
    ),
    Format(
        "panshot",
        (".npy",),
        "world_from_camera, OpenCV axes, gravity-aligned world; translations to be divided by near_depth",
        "lens, unit, fps",
        LENSLESS,
        "arbitrary",
        options=(NEAR_DEPTH, NEAR_DEPTHS, CLIP, ZERO_YAW),
        write_options=(NEAR_DEPTH_WRITTEN,),
    ),
    Format(
        "panshot-request",
        (".json",),
        "a pose file (panshot or realestate10k) with its lens: x_fov in degrees across the width, and xi",
        "only read",
        frozenset({"focal", "xi"}),
        "arbitrary",
        options=(INDEX, ROOT, NEAR_DEPTH, NEAR_DEPTHS, CLIP, ZERO_YAW, TRAJ_NORMALIZATION),
        written=False,
    ),
    Format(
        "recammaster",
        (".json",),
        "Unreal's world_from_camera, transposed: x forward, y right, z up, centimetres",
        "lens, unit (taken as metric), fps",
        LENSLESS,
        "metric",
        options=(CAMERA,),
        write_options=(CAMERA_WRITTEN,),
    ),
    Format(
        "nerfstudio",
        (".json",),
        "world_from_camera, OpenGL axes (x right, y up, z back), world z up, intrinsics in pixels",
        "xi (refused), max_angle, unit, fps",
        PINHOLE | {"size"},
        "arbitrary",
        write_options=(FILE_PATH,),
    ),
    Format(
        "nerfstudio-path",
        (".json",),
        "world_from_camera, OpenGL axes, world z up; fov vertical in degrees; perspective or fisheye",
        "xi, a lens off the centre and pixels that are not square (refused), max_angle, unit",
        frozenset({"focal", "zoom", "size", "fps"}),
        "arbitrary",
    ),
    Format(
        "colmap",
        (),
        "camera_from_world, OpenCV axes, quaternion wxyz; a folder, text or binary; UCM is EUCM at beta 1",
        "max_angle, unit, fps",
        PINHOLE | {"xi", "size"},
        "arbitrary",
        write_options=(TEXT, IMAGE_NAME),
        reads_folders=True,
    ),
    Format(
        "kitti",
        (".txt",),
        "world_from_camera, OpenCV axes, 12 numbers per row, metres",
        "lens, unit (taken as metric), fps",
        LENSLESS,
        "metric",
    ),
    Format(
        "kitti360",
        (".txt",),
        "as kitti, the frame's number before the 12 (or 16) numbers",
        "lens, unit (taken as metric), fps",
        LENSLESS,
        "metric",
    ),
    Format(
        "tum",
        (".txt",),
        "world_from_camera, OpenCV axes, seconds, position, quaternion xyzw (real part last)",
        "lens, unit (taken as metric)",
        frozenset({"fps"}),
        "metric",
        options=(QUATERNION,),
    ),
    Format(
        "vipe",
        (".npz",),
        "world_from_camera, OpenCV axes, arrays data and inds, metres; the lens in a second file",
        "lens, unit (taken as metric), fps",
        LENSLESS,
        "metric",
        options=(INTRINSICS,),
    ),
    Format(
        "gaussian-splatting",
        (".json",),
        "world_from_camera (its code says W2C), OpenCV axes, fx and fy in pixels, the centre in the middle",
        "xi and a lens off the centre (refused), max_angle, unit, fps",
        frozenset({"focal", "fy", "zoom", "size"}),
        "arbitrary",
        write_options=(IMAGE_NAME,),
    ),
    Format(
        "motionctrl",
        (".json",),
        "camera_from_world, OpenCV axes, 12 numbers per frame",
        "lens, unit, fps",
        LENSLESS,
        "arbitrary",
    ),
    Format(
        "asl",
        (".csv",),
        "world_from_body, columns named in a header, nanoseconds, quaternion wxyz, metres (EuRoC)",
        "lens, unit (taken as metric)",
        frozenset({"fps"}),
        "metric",
        options=(SENSOR,),
    ),
    Format(
        "ac3d",
        (".json",),
        "camera_from_world, OpenCV axes, 3x3 intrinsics in pixels of imW x imH",
        "xi (refused), max_angle, unit, fps",
        PINHOLE | {"size"},
        "arbitrary",
    ),
    Format(
        "llff",
        (".npy",),
        "world_from_camera, axes down, right, back; height, width, focal, and near and far per image",
        "xi, a lens off the centre and pixels that are not square (refused), max_angle, unit, fps",
        frozenset({"focal", "zoom", "size"}),
        "arbitrary",
        write_options=(BOUNDS,),
    ),
    Format(
        "megasam",
        (".npz",),
        "world_from_camera (cam_c2w), OpenCV axes, one 3x3 intrinsic in pixels of images",
        "xi and a lens that changes (refused), image size, max_angle, unit, fps",
        frozenset({"focal", "fy", "center"}),
        "arbitrary",
    ),
    Format(
        "nerfstudio-list",
        (".json",),
        "world_from_camera, OpenGL axes, z up, as `ns-export cameras` lists them (transform, file_path)",
        "lens, unit, fps",
        LENSLESS,
        "arbitrary",
        write_options=(FILE_PATH,),
    ),
    Format(
        "numpy-poses",
        (),
        "a folder with poses.npy, world_from_camera unless said otherwise, OpenCV axes, and intrinsics.npy",
        "xi (refused), image size, max_angle, unit, fps",
        PINHOLE,
        "arbitrary",
        options=(POSE, INTRINSICS),
        reads_folders=True,
    ),
    Format(
        "trajectorycrafter",
        (".txt",),
        "three lines: degrees up and down, degrees left and right, radius shares; 1 is the distance to the middle",
        "only read",
        frozenset({"focal", "size"}),
        "arbitrary",
        options=(FRAMES,),
        written=False,
    ),
)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise InputError("format", f"one of {', '.join(FORMATS)}", name)
    return FORMATS[name]
