"""ASL / EuRoC CSV: nanoseconds, position, quaternion with the real part first, columns named in a header, in metres.

The poses are those of the body (its motion sensor), not of a camera. A camera's `sensor.yaml` says where it sits on the
body (T_BS), and its lens.
"""

import re
from pathlib import Path

import torch
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.other_lens_models import Mei, OpenCVFisheye
from curvedray.formats.build import frame_rate, gather, note
from curvedray.formats.lenses import chosen_lens, fitted, gather_lens, given_lens
from curvedray.formats.quaternion import check_quaternion, quaternions, rotations
from curvedray.formats.source import Source

NAMES = ("timestamp", *(f"p_RS_R_{i}" for i in "xyz"), *(f"q_RS_{i}" for i in "wxyz"))
UNITS = ("ns", "m", "m", "m", "", "", "", "")


def detect(source: Source) -> str | None:
    if source.columns() < len(NAMES):
        return None
    found = _columns(source.column_names)
    return "columns named p_.._x and q_.._w" if found else None


def _columns(names: list[str]) -> list[int] | None:
    """Where position x y z and quaternion w x y z stand, by the header's names."""
    wanted = [rf"p_\w*{i}" for i in "xyz"] + [rf"q_\w*{i}" for i in "wxyz"]
    found = [[k for k, name in enumerate(names) if re.fullmatch(want, name)] for want in wanted]
    return [columns[0] for columns in found] if all(len(columns) == 1 for columns in found) else None


def read(source: Source, *, sensor: str | Path | None = None) -> Cameras:
    """`sensor` is the camera's sensor.yaml, such as mav0/cam0/sensor.yaml."""
    columns = _columns(source.column_names)
    if columns is None:
        source.fail("", "a header that names p_RS_R_x ... q_RS_w ...", ", ".join(source.column_names[:8]) or "none")
    lines, rows = source.table(len(source.column_names))
    where = [f"line {line}" for line in lines]
    chosen = [[row[k] for k in columns] for row in rows]
    for line, row in zip(where, chosen, strict=True):
        check_quaternion(source, line, row[3:])
    poses = torch.eye(4, dtype=torch.float64).repeat(len(rows), 1, 1)
    poses[:, :3, :3] = rotations([row[3:] for row in chosen], "wxyz")
    poses[:, :3, 3] = torch.tensor([row[:3] for row in chosen], dtype=torch.float64)
    lens = None
    if sensor is None:
        note(f"{source.name}: these are poses of the body, not of a camera. Say sensor= (cam0/sensor.yaml).")
    else:
        body_from_camera, lens = _sensor(Source.open(Path(sensor), source.given))
        poses = poses @ body_from_camera
    fps = frame_rate([(row[0] - rows[0][0]) / 1e9 for row in rows], tolerance=1e-6)
    return gather(source, where, poses, lens or chosen_lens(source), "metric", fps)


def _sensor(source: Source) -> tuple[Tensor, Lens | None]:
    """body_from_camera, and the lens, of a camera's sensor.yaml."""
    from_camera = _list(source, r"T_BS:.*?data:", 16)
    body_from_camera = torch.tensor(from_camera, dtype=torch.float64).reshape(4, 4)
    width, height = (int(side) for side in _list(source, r"resolution:", 2))
    if (lens := given_lens(source, (width, height))) is not None:
        return body_from_camera, lens
    fx, fy, cx, cy = _list(source, r"intrinsics:", 4)
    k = _list(source, r"distortion_coefficients:", 4)
    if not (fx > 0 and fy > 0 and 0 < width < 1e6 and 0 < height < 1e6):
        source.fail("intrinsics", "a focal length and a size above zero", f"{fx:g}, {fy:g}, {width} x {height}")
    kind = re.search(r"^distortion_model:\s*(\S+)", source.text, re.MULTILINE)
    name = kind[1] if kind else "none"
    # OpenCV counts pixels from the first one's centre, we from its corner.
    if name == "equidistant":
        model = OpenCVFisheye.of([fx, fy, cx + 0.5, cy + 0.5, *k], (width, height))
    elif name in ("radial-tangential", "radtan"):
        model = Mei.of([0.0, *k, fx, fy, cx + 0.5, cy + 0.5], (width, height))
    else:
        source.fail("distortion_model", "radial-tangential or equidistant", name)
    numbers = fitted(source, "camera", model)
    return body_from_camera, gather_lens(source, ["camera"], [numbers], (width, height))


def _list(source: Source, after: str, count: int) -> list[float]:
    found = re.search(after + r"\s*\[([^\]]*)\]", source.text, re.DOTALL)
    words = found[1].replace(",", " ").split() if found else []
    name = after.rstrip(":").split(":")[0]
    if len(words) != count:
        source.fail(f"field {name}", f"a list of {count} numbers", f"{len(words)} of them", "Is it a sensor.yaml?")
    return [source.number(f"field {name}", word) for word in words]


def write(cameras: Cameras) -> bytes:
    poses = cameras.world_from_camera.double()
    step = 1.0 if cameras.fps is None else 1e9 / cameras.fps
    turns = quaternions(poses[:, :3, :3], "wxyz")
    head = "#" + ",".join(f"{name} [{unit}]" for name, unit in zip(NAMES, UNITS, strict=True))
    rows = [
        ",".join([str(round(i * step)), *(repr(number) for number in (*position, *turn))])
        for i, (position, turn) in enumerate(zip(poses[:, :3, 3].tolist(), turns, strict=True))
    ]
    return ("\n".join([head, *rows]) + "\n").encode()
