"""The lenses that have names, as a table: what each is, without the lens itself. A test holds it to `named_lens`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NamedLens:
    """One row of the table of lenses; hfov in degrees across the width."""

    name: str
    hfov: float
    xi: float
    about: str


USUAL_LENS = "pinhole-70"  # of a move that is made, previewed, blocked out or filmed without one
LENSES = (
    NamedLens("pinhole-60", 60.0, 0.0, "a normal lens, straight lines straight"),
    NamedLens("pinhole-90", 90.0, 0.0, "a wide lens, straight lines straight"),
    NamedLens("wide-110", 110.0, 0.55, "a wide lens with a gentle bend"),
    NamedLens("gopro-wide", 118.0, 1.2, "much like a GoPro's Wide: 118 degrees across, nearly equidistant"),
    NamedLens("fisheye-150", 150.0, 1.0, "a strong fisheye that still fills the frame"),
    NamedLens("fisheye-180", 180.0, 1.3, "half the sphere across the width"),
    NamedLens(
        "kitti360",
        180.0,
        1.744,
        "KITTI-360's left fisheye, within 1.5 pixels of 1400; black beyond 90 degrees from the axis",
    ),
)
