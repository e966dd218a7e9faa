"""Quaternions in both orders, real part first (wxyz) or last (xyzw), and which of them a text file uses."""

import math
import re
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.formats.build import note
from curvedray.formats.source import Source

ORDERS = ("wxyz", "xyzw")


def rotations(quaternions: Sequence[Sequence[float]], order: str) -> Float[Tensor, "t 3 3"]:
    """R = I + 2 w [v] + 2 [v][v], of quaternions (w, v) made unit."""
    values = torch.tensor([list(row) for row in quaternions], dtype=torch.float64)
    values = values / values.norm(dim=-1, keepdim=True)
    w, x, y, z = (values[:, order.index(name)] for name in "wxyz")
    zero = torch.zeros_like(w)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).reshape(-1, 3, 3)
    return torch.eye(3, dtype=torch.float64) + 2 * w[:, None, None] * cross + 2 * cross @ cross


def quaternions(matrices: Float[Tensor, "t 3 3"], order: str) -> list[list[float]]:
    """Unit quaternions of rotations."""
    needed("scipy")
    from scipy.spatial.transform import Rotation

    last = torch.from_numpy(Rotation.from_matrix(matrices.numpy()).as_quat())
    return last[:, ["xyzw".index(name) for name in order]].tolist()


def order_in_names(names: Sequence[str]) -> str | None:
    """The order that column names state: qx, q_w, q_RS_w ...; None where they do not."""
    letters = "".join(name[-1] for name in names if re.fullmatch(r"q[a-z_]*[wxyz]", name.lower())).lower()
    return letters if sorted(letters) == sorted("wxyz") else None


def quaternion_order(source: Source, said: str | None, lines: Sequence[int], rows: Sequence[Sequence[float]]) -> str:
    """The order of a headless file's quaternions: the one said, else its column names', else xyzw where that is clear.

    A path usually starts unturned. If it starts at 1 0 0 0, the real part may be first, and only the caller knows.
    """
    if said is not None:
        if said not in ORDERS:
            raise InputError("option quaternion", " or ".join(ORDERS), said)
        return said
    if (found := order_in_names(source.column_names)) is not None:
        return found
    if abs(abs(rows[0][0]) - 1) < 1e-3:
        got = f"{rows[0][0]:g} {rows[0][1]:g} {rows[0][2]:g} {rows[0][3]:g}"
        meaning = "no turn if the real part is first, half a turn if it is last"
        fix = "Say quaternion='wxyz' (real part first) or quaternion='xyzw' (last, as TUM has it)."
        source.fail(f"line {lines[0]}", "to be told the quaternion's order", f"{got}: {meaning}", fix)
    if sum(abs(row[0]) > abs(row[3]) for row in rows) > 0.9 * len(rows):
        note(
            f"{source.name}: quaternions are read with the real part last, which turns nearly every frame by more "
            "than a quarter. If it is first, say quaternion='wxyz'."
        )
    return "xyzw"


def check_quaternion(source: Source, where: str, quaternion: Sequence[float]) -> None:
    """Of unit length, to the few digits that text files keep."""
    if not is_unit(quaternion):
        source.fail(where, "a quaternion of length 1", f"length {math.hypot(*quaternion):.4g}")


def is_unit(quaternion: Sequence[float]) -> bool:
    return abs(math.hypot(*quaternion) - 1) < 1e-2
