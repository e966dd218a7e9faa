"""Lenses by name: `fisheye-150`, `pinhole-60`, `kitti360`, `wide-110@0.4`, and the table of them.

The field of view is across the width, whatever the image's shape. Other models are fitted in lens_fits.
"""

import difflib
import math
import re
from dataclasses import replace

import torch

from curvedray.cameras.arrays import as_size, kind_of
from curvedray.cameras.lens import Lens
from curvedray.cameras.lens_fits import LensFit, fit_model, fit_ucm
from curvedray.cameras.lens_table import LENSES, NamedLens
from curvedray.cameras.other_lens_models import (
    EUCM,
    DoubleSphere,
    Equidistant,
    LensModel,
    Mei,
    OpenCVFisheye,
    Pinhole,
    Radial,
    ucm_lens,
)
from curvedray.errors import InputError

__all__ = [
    "EUCM",
    "DoubleSphere",
    "Equidistant",
    "LensFit",
    "LensModel",
    "Mei",
    "NamedLens",
    "OpenCVFisheye",
    "Pinhole",
    "Radial",
    "fit_model",
    "fit_ucm",
    "list_lenses",
    "named_lens",
]

NAMES = tuple(row.name for row in LENSES)
# Each family's degrees, and its xi at the first and the last of them, straight between.
FAMILIES = {"pinhole": (1.0, 175.0, 0.0, 0.0), "wide": (90.0, 130.0, 0.3, 0.8), "fisheye": (130.0, 180.0, 0.8, 1.3)}

# The UCM lens nearest to the Mei calibration of KITTI-360's image_02 within 90 degrees of the axis: 0.73 pixels rms.
# A test reads the calibration and fits it anew. Its centre has the half pixel that formats/lens_files.py adds.
KITTI360 = replace(
    ucm_lens(1127.75852, 1127.30723, 717.55906, 706.38020, 1.74376320, (1400, 1400)), max_angle=math.radians(90)
)


def named_lens(name: str, width: int = 832, height: int = 480, xi: float | None = None) -> Lens:
    """The lens of that name on an image of width x height; `xi`, or `name@xi`, bends it otherwise."""
    if not isinstance(name, str):
        raise InputError("lens", "a name such as pinhole-90", kind_of(name))
    width, height = as_size("image of a lens", (width, height))
    base, _, bend = name.strip().lower().partition("@")
    if bend:
        if xi is not None:
            raise InputError("lens", "xi said once", f"{name!r} and xi={xi}")
        try:
            xi = float(bend)
        except ValueError as error:
            raise InputError("lens", "a number after @, as in fisheye-150@0.9", repr(name)) from error
    if base == "kitti360":
        if xi is not None:
            raise InputError("lens", "kitti360 as it was measured", f"{name!r} with xi {xi:g}", "Leave xi out.")
        # Scaled to the width; a wider image is a window in the middle of it.
        return (
            KITTI360.resized(width, width)
            .cropped(0, (width - height) // 2, width, height)
            .to(torch.get_default_dtype())
        )
    if base == "gopro-wide":
        return Lens.from_fov(118.0, 1.2 if xi is None else xi, width, height)
    match = re.fullmatch(r"(pinhole|wide|fisheye)-(\d+(?:\.\d+)?)", base)
    if match is None:
        close = difflib.get_close_matches(base, NAMES, n=1, cutoff=0.5)
        expected = f"one of {', '.join(NAMES)}, or pinhole-N, wide-N, fisheye-N with N degrees across"
        raise InputError("lens", expected, repr(name), f"Did you mean {close[0]}?" if close else "")
    hfov = float(match[2])
    return Lens.from_fov(hfov, _family_xi(match[1], hfov) if xi is None else xi, width, height)


def list_lenses() -> list[NamedLens]:
    """The named lenses as rows of a table, seen on a square image."""
    return list(LENSES)


def _family_xi(family: str, hfov: float) -> float:
    first, last, low, high = FAMILIES[family]
    if not first <= hfov <= last:
        kin = ", ".join(f"{k} {a:g} to {b:g}" for k, (a, b, *_) in FAMILIES.items())
        fix = f"Or choose the bend yourself: {family}-{hfov:g}@1.2." if family != "pinhole" else ""
        raise InputError("lens", f"degrees within the family ({kin})", f"{family}-{hfov:g}", fix)
    return low + (high - low) * (hfov - first) / (last - first)
