"""What tokens will see of a map of distances, and what is odd about it."""

from dataclasses import asdict, dataclass
from typing import Any

from curvedray.cameras import Lens, TokenGrid
from curvedray.errors import InputError
from curvedray.radial.map import FARTHEST, RadialMap

NEAREST_ROOM, FARTHEST_ROOM = 0.05, 15.0  # metres of a near distance; beyond them a unit is suspected
FEWEST = 0.05  # share of valid tokens


@dataclass(frozen=True)
class MapFindings:
    """A map as tokens see it."""

    frames: int
    width: int
    height: int
    near: float  # metres
    valid_pixels: float  # share
    valid_tokens: float  # share
    nearest: float  # of tokens, in near distances
    farthest: float
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.frames} frames of {self.width} x {self.height}; near distance {self.near:.3g} m",
            f"valid: {self.valid_pixels:.0%} of pixels, {self.valid_tokens:.0%} of tokens",
            f"tokens see {self.nearest:.2f} to {self.farthest:.2f} near distances",
        ]
        return "\n".join([*lines, *(f"odd: {problem}" for problem in self.problems)])


def checked(map: RadialMap, name: object) -> RadialMap:
    """A map that says something: one that is in centimetres has nothing within reach."""
    if not map.valid.any():
        fix = "Say the unit: --radial-meaning radius --radial-scale cm (or mm, or metres per unit)."
        raise InputError(str(name), "at least one distance within 20 m", "none", f"Are they metres? {fix}")
    return map


def check_map(map: RadialMap, grid: TokenGrid, lens: Lens | None = None) -> MapFindings:
    """What a video of this grid would be given. A map that cannot be used is an error, as it is in generation."""
    interval, known = map.on(grid)
    problems = []
    if map.near < NEAREST_ROOM or map.near > FARTHEST_ROOM:
        problems.append(f"a near distance of {map.near:.3g} m: are the distances metres?")
    if map.valid.any() and map.radius[map.valid].max() <= 1.0:
        problems.append("nothing is farther than a metre: is it a disparity, or a picture scaled to 0..1?")
    pixels, tokens = map.valid.float().mean().item(), known.float().mean().item()
    if tokens < FEWEST:
        problems.append(f"{tokens:.1%} of tokens have a distance: none beyond {FARTHEST:g} m counts")
    radii = interval.radius[known]
    if len(radii) and (radii.max() / radii.min()).item() < 1.01:
        problems.append("every token is equally far: a flat map says nothing")
    if lens is not None:
        try:
            rays = lens.sized(map.radius.shape[2], map.radius.shape[1]).mask()
        except InputError as error:
            problems.append(str(error))
        else:
            clash = (map.valid & ~rays).any(0).float().mean().item()
            if clash:
                problems.append(f"{clash:.0%} of the frame has distances but no ray of this lens")
    low, high = (radii.min().item(), radii.max().item()) if len(radii) else (0.0, 0.0)
    frames, height, width = map.radius.shape
    return MapFindings(frames, width, height, map.near, pixels, tokens, low, high, tuple(problems))
