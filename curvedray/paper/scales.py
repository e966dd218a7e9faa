"""The sizes at which the paper's experiments run. A size's model, data, judges and budgets are named here, once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from curvedray.errors import InputError

# Of a row's training: `sweep` is the breakpoints', `short` the other ablations', `tenth` a tenth of `full`.
Budget = Literal["full", "sweep", "short", "tenth"]


@dataclass(frozen=True)
class Desk:
    """What the embedded scale has: the model, the world it knows, and the judge that reads that world."""

    model: str  # for `load_model`: a name, or a file of its kind
    world: str  # of data/sources.py
    judge: str  # for `make_estimator`, or an embedded estimator's file


# The one line that says which embedded model the experiments are run with. Sizes (blocks, tokens) follow from its file.
DESK = Desk(model="embedded", world="world", judge="embedded")


@dataclass(frozen=True)
class Scale:
    """An experiment's size. What a user has elsewhere (weights, data sets) is a place: see needs.py."""

    name: str
    says: str
    recipe: str  # the base in training/recipes.py that every row changes
    model: str  # what `load_model` takes, where no place `wan` is given
    source: str  # training and test clips: a world; empty: the places that the test sets name
    judges: tuple[str, ...]  # who recovers cameras, lenses and distances; each adds its columns
    steps: Mapping[Budget, int]
    clips: int  # of a test set
    together: int  # clips filmed at once
    fits_periods: bool  # whether the adapter's periods follow the model's grid, as they must on a coarse one
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the base recipe
    filming: dict[str, Any] = field(default_factory=dict)  # settings other than the model's own
    probe_steps: int = 600
    is_hidden: bool = False  # for tests

    @property
    def is_world(self) -> bool:
        """Whether its clips are a procedural world's, whose truth is exact."""
        return bool(self.source)


EMBEDDED = Scale(
    name="embedded",
    says="the embedded model on its world: a laptop, two cores, hours",
    recipe="embedded",
    model=DESK.model,
    source=DESK.world,
    judges=(DESK.judge,),
    # With a tenth of the steps a row hardly moves (LOG, 2026-11-16). With half of them lenses are obeyed and turns
    # hardly (LOG, 2026-11-18): enough to tell windows of blocks apart, not breakpoints.
    steps={"full": 800, "sweep": 800, "short": 400, "tenth": 80},
    clips=64,
    together=16,
    fits_periods=True,
    # Cameras are obeyed as well as with the model's own 16 steps; borders of patches show a little. Block guidance,
    # which is no part of the paper, would cost half of the time again.
    filming={"steps": 10, "block_guidance": 1.0},
)
WAN = Scale(
    name="wan",
    says="Wan2.1-T2V-1.3B on PanShot, as in the paper: GPUs, days",
    recipe="wan_1b",
    model="Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
    source="",
    judges=("vipe", "geocalib"),
    steps={"full": 10_000, "sweep": 1000, "short": 1000, "tenth": 1000},
    clips=340,
    together=1,
    fits_periods=False,
    probe_steps=1000,
)
TINY = Scale(
    name="tiny",
    says="random weights of the embedded model's shape: shows that an experiment runs, and nothing else",
    recipe="embedded",
    model="random",
    source=DESK.world,
    judges=(DESK.judge,),
    steps={"full": 2, "sweep": 1, "short": 1, "tenth": 1},
    clips=2,
    together=2,
    fits_periods=True,
    changes={"data.clips": 8, "batch": 1, "every.checkpoint": 1, "ema": 0.0, "warmup": 0},
    filming={"steps": 2, "camera_guidance": 1.0, "block_guidance": 1.0},
    probe_steps=2,
    is_hidden=True,
)
SCALES = {scale.name: scale for scale in (EMBEDDED, WAN, TINY)}


def scale_named(name: str) -> Scale:
    if name not in SCALES:
        raise InputError("scale", " or ".join(key for key, scale in SCALES.items() if not scale.is_hidden), name)
    return SCALES[name]
