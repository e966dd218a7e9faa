"""KITTI-360's image_0X.yaml: the numbers of a MEI lens, in OpenCV's flat YAML.

OpenCV counts pixels from the first one's centre, we from its corner: half a pixel is added to u0 and v0.
"""

from pathlib import Path

from curvedray.cameras.lens_fits import LensFit, fit_ucm
from curvedray.cameras.lens_models import Mei
from curvedray.formats.source import Source

SECTIONS = {
    "mirror_parameters": ("xi",),
    "distortion_parameters": ("k1", "k2", "p1", "p2"),
    "projection_parameters": ("gamma1", "gamma2", "u0", "v0"),
}


def read_lens(path: str | Path, max_angle: float = 180.0) -> LensFit:
    """The lens of a KITTI-360 calibration file: the UCM lens nearest to it within max_angle degrees, and the fit."""
    source = Source.open(Path(path))
    if source.path.is_dir():
        source.fail("", "a lens calibration file", "a folder")
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
    for name, value, least in (
        ("gamma1", gamma1, 0),
        ("gamma2", gamma2, 0),
        ("width", width, 1),
        ("height", height, 1),
    ):
        if value <= 0 or value < least or value > 1e6:
            source.fail(f"field {name}", "a number of pixels above zero", f"{value:g}")
    if xi < 0:
        source.fail("field mirror_parameters.xi", "at least 0", xi)
    model = Mei(xi, k1, k2, p1, p2, gamma1, gamma2, u0 + 0.5, v0 + 0.5, (int(width), int(height)))
    try:
        return fit_ucm(model, max_angle)
    except (ValueError, ArithmeticError) as error:
        source.fail("", "a lens that the Unified Camera Model can follow", error)


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
