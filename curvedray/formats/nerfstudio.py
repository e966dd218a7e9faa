"""nerfstudio: transforms.json (poses and lenses of a capture) and the camera path (a move to render).

Both are world_from_camera with OpenGL's axes (x right, y up, z back) in a world whose z is up. The Blender add-on
writes and reads the camera path; its fov is vertical, in degrees.
"""

import json
import math
from typing import Any

import torch

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.other_lens_models import Equidistant, LensModel, Mei, OpenCVFisheye, Pinhole
from curvedray.formats.build import from_opengl, gather, note, numbered, to_opengl
from curvedray.formats.lenses import fitted, gather_lens, given_lens, image_size, lens_numbers
from curvedray.formats.source import Node, Source, natural

PERSPECTIVE = ("OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")


def detect(source: Source) -> str | None:
    frames = source.json.get("frames") if source.is_json else None
    first = frames.value[0] if frames and isinstance(frames.value, list) and frames.value else None
    return "frames with a transform_matrix" if isinstance(first, dict) and "transform_matrix" in first else None


def detect_path(source: Source) -> str | None:
    return "a camera_path" if source.is_json and "camera_path" in source.json else None


# -- transforms.json


def read(source: Source) -> Cameras:
    """Frames come in the order of their file names, as nerfstudio takes them."""
    top = source.json
    frames = top["frames"].items()
    if all("file_path" in frame for frame in frames):
        ordered = sorted(frames, key=lambda frame: natural(frame["file_path"].text()))
        if ordered != frames:
            note(f"{source.name}: the frames are taken in the order of their file names, not of the file.")
        frames = ordered
    where = [f"field {frame.where}.transform_matrix" for frame in frames]
    poses = from_opengl(torch.stack([frame["transform_matrix"].pose() for frame in frames]))
    sizes = [_image_size(source, top, frame) for frame in frames]
    lens = given_lens(source, sizes[0]) or _lens(source, top, frames, sizes)
    return gather(source, where, poses, lens, "arbitrary")


def _lens(source: Source, top: Node, frames: list[Node], sizes: list[tuple[int, int]]) -> Lens:
    fits: dict[LensModel, list[float]] = {}
    numbers, where = [], [f"field {frame.where}" for frame in frames]
    for frame_name, frame, size in zip(where, frames, sizes, strict=True):
        model = _model(source, top, frame, size)
        if model not in fits:
            fits[model] = fitted(source, frame_name, model)
        numbers.append(fits[model])
    return gather_lens(source, where, numbers, sizes)


def _model(source: Source, top: Node, frame: Node, size: tuple[int, int]) -> LensModel:
    """The lens of one frame: its own numbers, else the file's."""

    def find(key: str) -> Node | None:
        return frame.get(key) or top.get(key)

    def number(key: str, default: float) -> float:
        node = find(key)
        return default if node is None else node.number()

    width, height = size
    if find("fl_x") is None and find("camera_angle_x") is None:
        source.fail(f"field {frame.where}.fl_x", "fl_x or camera_angle_x", "neither")
    fx = number("fl_x", 0.0) if find("fl_x") else _focal(width, number("camera_angle_x", 0.0))
    fy = number("fl_y", 0.0) if find("fl_y") else _focal(height, number("camera_angle_y", 0.0)) or fx
    if not (fx > 0 and fy > 0):
        source.fail(f"field {frame.where}.fl_x" if "fl_x" in frame else "field fl_x", "above zero", f"{fx:g}, {fy:g}")
    cx, cy = number("cx", width / 2), number("cy", height / 2)
    k1, k2, k3, k4, p1, p2 = (number(key, 0.0) for key in ("k1", "k2", "k3", "k4", "p1", "p2"))
    name = _model_name(source, find("camera_model"), find("is_fisheye"))
    if name == "OPENCV_FISHEYE":
        return OpenCVFisheye(fx, fy, cx, cy, k1, k2, k3, k4, (width, height))
    if name not in PERSPECTIVE or k3 or k4:
        found = f"{name} with k3 and k4" if name in PERSPECTIVE else name
        source.fail("field camera_model", f"{', '.join(PERSPECTIVE)} or OPENCV_FISHEYE", found)
    return Mei(0.0, k1, k2, p1, p2, fx, fy, cx, cy, (width, height))  # at xi 0 it is OpenCV's own model


def _model_name(source: Source, kind: Node | None, is_fisheye: Node | None) -> str:
    """nerfstudio's camera_model, or instant-ngp's is_fisheye; OPENCV where neither is said."""
    fisheye = is_fisheye is not None and is_fisheye.value is True
    name = kind.text() if kind is not None else "OPENCV_FISHEYE" if fisheye else "OPENCV"
    if fisheye and name != "OPENCV_FISHEYE":
        source.fail("field is_fisheye", "OPENCV_FISHEYE as camera_model, as is_fisheye says", name)
    return name


def _image_size(source: Source, top: Node, frame: Node) -> tuple[int, int]:
    w, h = (frame.get(key) or top.get(key) for key in ("w", "h"))
    if w is None or h is None:
        if source.given.size is None:
            source.fail("field w, h", "the image's size", "none", "Say it with size=(width, height).")
        return source.given.size
    if min(w.integer(), h.integer()) < 1:
        source.fail("field w, h", "at least one pixel", (w.value, h.value))
    return w.integer(), h.integer()


def _focal(side: int, angle: float) -> float:
    """Pixels from a field of view in radians; 0 where there is none."""
    return side / 2 / math.tan(angle / 2) if 0 < angle < math.pi else 0.0


def write(cameras: Cameras, *, file_path: str = "images/frame_{:05d}.png") -> bytes:
    """`file_path` names the pictures; {:05d} stands for the frame's number, from 0."""
    keys = ("fl_x", "fl_y", "cx", "cy")
    numbers = lens_numbers(cameras).double()[:, :4]
    shared = bool((numbers == numbers[0]).all())
    width, height = cameras.lens.size
    document: dict[str, Any] = {"camera_model": "OPENCV", "w": width, "h": height}
    if shared:
        document.update(zip(keys, numbers[0].tolist(), strict=True))
    document.update(k1=0.0, k2=0.0, p1=0.0, p2=0.0)
    poses = to_opengl(cameras.world_from_camera.double()).tolist()
    document["frames"] = [
        {
            "file_path": numbered(file_path, i),
            **({} if shared else dict(zip(keys, row, strict=True))),
            "transform_matrix": pose,
        }
        for i, (row, pose) in enumerate(zip(numbers.tolist(), poses, strict=True))
    ]
    return (json.dumps(document, indent=2) + "\n").encode()


# -- the camera path


def read_path(source: Source) -> Cameras:
    """The path's own render size is the image's, else the one given: a size given beside it rescales the lens."""
    top = source.json
    size = None
    if "render_width" in top and "render_height" in top:
        size = top["render_width"].integer(), top["render_height"].integer()
    size = image_size(source, size)
    frames = top["camera_path"].items()
    where = [f"field {frame.where}.camera_to_world" for frame in frames]
    poses = from_opengl(torch.stack([frame["camera_to_world"].pose() for frame in frames]))
    fps = top["fps"].number() if "fps" in top and top["fps"].value is not None else None
    if fps is not None and fps <= 0:
        top["fps"].fail("a positive number of frames per second", fps)
    lens = given_lens(source, size) or _path_lens(source, top, frames, size)
    return gather(source, where, poses, lens, "arbitrary", fps)


def _path_lens(source: Source, top: Node, frames: list[Node], size: tuple[int, int]) -> Lens:
    """Pixels are square, and the fov is vertical.

    A fisheye is equidistant, with the focal length that the fov would give a pinhole: it sees 2 tan(fov / 2).
    """
    fisheye = "camera_type" in top and top["camera_type"].text().lower() == "fisheye"
    if not fisheye and "camera_type" in top and top["camera_type"].text() != "perspective":
        top["camera_type"].fail("perspective or fisheye", top["camera_type"].value, "Export one of them.")
    width, height = size
    fits: dict[LensModel, list[float]] = {}
    numbers, where = [], [f"field {frame.where}" for frame in frames]
    for place, frame in zip(where, frames, strict=True):
        fov = frame["fov"].number()
        if not 0 < fov < 180:
            frame["fov"].fail("vertical degrees above 0 and below 180", fov)
        focal = height / 2 / math.tan(math.radians(fov) / 2)
        model = (Equidistant if fisheye else Pinhole)(focal, focal, width / 2, height / 2, size)
        if model not in fits:
            fits[model] = fitted(source, place, model)
        numbers.append(fits[model])
        _check_aspect(source, frame, width / height)
    return gather_lens(source, where, numbers, size)


def _check_aspect(source: Source, frame: Node, shape: float) -> None:
    """Pixels are square: an aspect that the image does not have is said, for the first frame."""
    said = frame["aspect"].number() if "aspect" in frame else shape
    if frame.where.endswith("[0]") and abs(said / shape - 1) > 0.01:
        note(f"{source.name}: aspect {said:.3f}, but the image's is {shape:.3f}; pixels are taken as square.")


def write_path(cameras: Cameras) -> bytes:
    (width, height), numbers = cameras.lens.size, lens_numbers(cameras).double()
    fy = numbers[:, 1]
    fov = torch.rad2deg(2 * torch.atan2(torch.full_like(fy, height / 2), fy)).tolist()
    flat = to_opengl(cameras.world_from_camera.double()).reshape(-1, 16).tolist()
    fps = cameras.fps
    document = {
        "camera_type": "perspective",
        "render_width": width,
        "render_height": height,
        "fps": fps,
        "seconds": None if fps is None else cameras.frames / fps,
        "keyframes": [],
        "camera_path": [
            {"camera_to_world": pose, "fov": angle, "aspect": width / height}
            for pose, angle in zip(flat, fov, strict=True)
        ],
    }
    return (json.dumps(document, indent=2) + "\n").encode()
