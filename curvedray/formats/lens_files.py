"""Files of a lens alone: KITTI-360's image_0X.yaml (a MEI lens in OpenCV's flat YAML) and UniK3D's JSON.

OpenCV counts pixels from the first one's centre, we from its corner: half a pixel is added to KITTI-360's u0 and v0.
UniK3D counts from the corner, as we do.
"""

from pathlib import Path

import numpy as np

from curvedray.cameras.lens_fits import LensFit, fit_ucm
from curvedray.cameras.other_lens_models import LensModel, Mei, OpenCVFisheye, Pinhole
from curvedray.formats.build import note
from curvedray.formats.lenses import checked_size
from curvedray.formats.source import Given, Source

SECTIONS = {
    "mirror_parameters": ("xi",),
    "distortion_parameters": ("k1", "k2", "p1", "p2"),
    "projection_parameters": ("gamma1", "gamma2", "u0", "v0"),
}
# UniK3D's names, and how many params each may have.
UNIK3D = {"Pinhole": (4, 16), "MEI": (9,), "OPENCV": (16,), "Fisheye624": (16,)}


def read_lens(path: str | Path, max_angle: float = 180.0, size: tuple[int, int] | None = None) -> LensFit:
    """The lens of a calibration file: the UCM lens nearest to it within max_angle degrees, and the fit.

    `size` is the image's (width, height), for files that do not state it.
    """
    source = Source.open(Path(path), Given(size=None if size is None else checked_size(size)))
    if source.is_folder:
        source.fail("", "a lens calibration file", "a folder")
    model = _unik3d(source) if source.is_json else _kitti360(source)
    try:
        with np.errstate(all="ignore"):
            return fit_ucm(model, max_angle)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        source.fail("", "a lens that the Unified Camera Model can follow", error)


def _unik3d(source: Source) -> LensModel:
    """{"name": ..., "params": [fx, fy, cx, cy, ...]}, the image's size said apart, or twice the centre."""
    top = source.json
    name, numbers = top["name"].text(), [node.number() for node in top["params"].items()]
    if name not in UNIK3D:
        top["name"].fail(", ".join(UNIK3D), name)
    if len(numbers) not in UNIK3D[name]:
        top["params"].fail(f"{' or '.join(map(str, UNIK3D[name]))} numbers for {name}", len(numbers))
    fx, fy, cx, cy, *rest = numbers
    if not (fx > 0 and fy > 0):
        top["params"].fail("a focal length above zero", f"{fx:g}, {fy:g}")
    size = source.given.size
    if size is None:
        size = checked_size((max(1, round(2 * cx)), max(1, round(2 * cy))))
        note(f"{source.name} does not say its image size: {size}, twice its centre. Say otherwise with size=.")
    k = [*rest, *[0.0] * 16]
    if name == "Pinhole":
        return Pinhole(fx, fy, cx, cy, size)
    if name == "MEI":  # k1 k2 p1 p2 xi
        if k[4] < 0:
            top["params"].fail("xi of at least 0", k[4])
        return Mei.of([k[4], *k[:4], fx, fy, cx, cy], size)
    radial, tangential, prism = k[:6], k[6:8], k[8:12]
    if name == "OPENCV" and not any(radial[2:]) and not any(prism):
        return Mei.of([0.0, *radial[:2], *tangential, fx, fy, cx, cy], size)
    if name == "Fisheye624" and not any(radial[4:]) and not any(tangential) and not any(prism):
        return OpenCVFisheye.of([fx, fy, cx, cy, *radial[:4]], size)
    kept = "k1, k2, p1 and p2" if name == "OPENCV" else "k1 to k4"
    return top["params"].fail(f"{name} with {kept} alone, and no thin prism", "more of them")


def _kitti360(source: Source) -> LensModel:
    fields = _fields(source)
    if fields.get("model_type", "MEI") != "MEI":
        source.fail("field model_type", "MEI", fields["model_type"])

    def number(key: str) -> float:
        if key not in fields:
            source.fail(f"field {key}", "to find it", "nothing", "Is it a KITTI-360 image_0X.yaml?")
        return source.number(f"field {key}", fields[key])

    xi, k1, k2, p1, p2, gamma1, gamma2, u0, v0 = (
        number(f"{section}.{key}") for section, keys in SECTIONS.items() for key in keys
    )
    width, height = number("image_width"), number("image_height")
    limits = (("gamma1", gamma1, 0), ("gamma2", gamma2, 0), ("width", width, 1), ("height", height, 1))
    for name, value, least in limits:
        if value <= 0 or value < least or value > 1e6:
            source.fail(f"field {name}", "a number of pixels above zero", f"{value:g}")
    if xi < 0:
        source.fail("field mirror_parameters.xi", "at least 0", xi)
    return Mei(xi, k1, k2, p1, p2, gamma1, gamma2, u0 + 0.5, v0 + 0.5, (int(width), int(height)))


def _fields(source: Source) -> dict[str, str]:
    """`section.key: value` of every line; a line that ends in a colon opens a section, an indented one is in it."""
    fields, section = {}, ""
    for number, line in enumerate(source.text.splitlines(), 1):
        stripped = line.split("#")[0].rstrip()
        if not stripped or stripped.startswith(("%", "---", "...")):
            continue
        key, colon, value = (part.strip() for part in stripped.partition(":"))
        if not colon:
            source.fail(f"line {number}", "key: value", stripped)
        indented = stripped[0] in " \t"
        section = section if indented else ("" if value else f"{key}.")
        if value:
            fields[(section if indented else "") + key] = value.strip("\"'")
    return fields
