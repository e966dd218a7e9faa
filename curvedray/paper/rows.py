"""Rows that several tables share, so that what is trained alike is trained once."""

from collections.abc import Mapping
from typing import Any

from curvedray.paper.experiment import Row, Window

UNSUPERVISED: dict[str, Any] = {"radial_weight": 0.0}
# Beyond the paper: queries turned by their own pixel's phase, and values turned with their keys.
TURNED_QUERIES: dict[str, Any] = {"adapter.query_rotation": True}
TURNED_VALUES: dict[str, Any] = {**TURNED_QUERIES, "adapter.value_rotation": True}


def method(name: str, **more: Any) -> Row:
    """A method at its full length: the paper's main comparison."""
    return Row({"adapter.method": name}, **more)


def breakpoints(count: int) -> Row:
    """The breakpoint tables' rows: the diffusion loss alone, at a budget at which rows obey."""
    return Row({"adapter.breakpoints": count, **UNSUPERVISED}, budget="sweep")


def window(which: Window) -> Row:
    """The placement table's rows. The paper says 1K steps and no more: K = 5 without supervision has its numbers."""
    return Row(UNSUPERVISED, budget="short", curved=which)


def mix(name: str = "crepe", changes: Mapping[str, Any] | None = None, **more: Any) -> Row:
    """Trained with MixForcing of whole videos, to take maps of distances."""
    return Row({"adapter.method": name, "mixforcing": {"kind": "video"}, **(changes or {})}, **more)


def others(*names: str) -> dict[str, Row]:
    """Videos of other methods, which a user has made: their names in the paper, and the place each is in."""
    return {name: Row(videos=name.lower(), scales=("wan",)) for name in names}


NONE, RECAMMASTER, UCPE, CREPE = (method(name) for name in ("none", "recammaster", "ucpe", "crepe"))
ALL_COLUMNS = (
    "CamMC", "RotErr", "TransErr", "k1", "k2", "Pitch", "Roll", "Gravity", "Lat.", "Up", "Ray", "FoV", "xi", "Words",
    "FVD (estimator)", "FID (estimator)", "CS-I (estimator)",
)  # fmt: skip
