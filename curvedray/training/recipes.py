"""A run is a function that returns a Recipe; an ablation is a function from one Recipe to another.

curvedray train wan_1b_k3 --data panshot -o runs/k3      # the paper's recipe, with three breakpoints
curvedray train quick steps=500 adapter.breakpoints=3    # dotted overrides; unknown keys are refused
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

from curvedray.adapter.config import AdapterConfig
from curvedray.configs import check_laws, config_of, flattened, record_of
from curvedray.data.sources import Data
from curvedray.errors import InputError
from curvedray.models.embedded.model import GRID as EMBEDDED_GRID
from curvedray.models.flow import TimestepDraw
from curvedray.radial.mixforcing import MixForcing


@dataclass(frozen=True)
class Optimiser:
    kind: Literal["adamw", "muon"] = "adamw"  # muon: for the matrices of blocks, AdamW for the rest
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient


@dataclass(frozen=True)
class Every:
    """Steps between events; 0 is never."""

    log: int = 1
    checkpoint: int = 500
    validate: int = 1000


@dataclass(frozen=True)
class Recipe:
    """All that decides a run. It is saved beside every checkpoint."""

    name: str
    model: str = "embedded"  # the one in the package, `random` weights of its shape, a .safetensors, a Wan folder or id
    what: Literal["adapter", "backbone"] = "adapter"
    adapter: AdapterConfig = field(default_factory=AdapterConfig)
    data: Data = field(default_factory=Data)
    steps: int = 10_000
    batch: int = 8  # clips per step, over all processes
    accumulate: int = 1  # passes per step, each over its share of the batch
    lr: float = 1e-4
    warmup: int = 100
    decay: Literal["constant", "linear", "cosine"] = "constant"
    optimiser: Optimiser = field(default_factory=Optimiser)
    timesteps: TimestepDraw = field(default_factory=TimestepDraw)
    text_dropout: float = 0.0  # share of clips trained on the empty caption
    radial_weight: float = 1e-3
    radial_alpha: float = 1.0
    radial_floor: float = 1e-3  # the least uncertainty the radial loss believes, in near distances; the paper's
    noisiest: float = 0.03  # share of draws, the noisiest, that the radial loss does not see
    mixforcing: MixForcing | None = None
    ema: float = 0.0  # decay of the average of weights that is kept and validated; 0: none
    precision: Literal["no", "bf16"] = "no"
    gradient_checkpointing: bool = False
    every: Every = field(default_factory=Every)
    keep: int = 2  # checkpoints
    validation_clips: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        laws = [
            ("steps", self.steps >= 1, "at least 1"),
            ("batch", self.batch >= 1, "at least 1"),
            ("accumulate", self.accumulate >= 1, "at least 1"),
            ("lr", self.lr > 0, "a positive number"),
            ("text_dropout", 0 <= self.text_dropout <= 1, "a share in [0, 1]"),
            ("noisiest", 0 <= self.noisiest < 1, "a share in [0, 1)"),
            ("radial_weight", self.radial_weight >= 0, "0 or more"),
            ("radial_floor", self.radial_floor > 0, "a positive number"),
            ("ema", 0 <= self.ema < 1, "a decay in [0, 1)"),
            ("keep", self.keep >= 1, "at least 1"),
            ("data.clips", self.data.clips >= 1, "at least 1"),
            ("optimiser.clip", self.optimiser.clip > 0, "a positive number"),
        ]
        check_laws(self, laws)
        if self.mixforcing is not None and not (self.what == "adapter" and self.adapter.rule.predicts_radius):
            got = self.adapter.method if self.what == "adapter" else "the backbone"
            raise InputError("mixforcing", "an adapter of a method that predicts radii", got)

    @property
    def radial(self) -> bool:
        """Whether the radial loss has anything to act on."""
        return self.what == "adapter" and self.radial_weight > 0 and self.adapter.rule.predicts_radius

    def to_json(self) -> dict[str, Any]:
        return record_of(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Recipe":
        return config_of(cls, record, "recipe")


# -- overrides


def with_overrides(recipe: Recipe, overrides: Iterable[str]) -> Recipe:
    """A recipe changed by `dotted.key=value`; a value is JSON where it parses as such, else text."""
    record = recipe.to_json()
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise InputError("override", "key=value", override)
        *parents, last = key.split(".")
        place: dict[str, Any] = record
        for name in parents:
            inner = place.setdefault(name, {})
            if inner is None:  # an option that is off becomes one with its defaults: mixforcing.kind=block
                inner = place[name] = {}
            if not isinstance(inner, dict):
                raise InputError("recipe", f"no parts in {name}, which is one value", key)
            place = inner
        place[last] = _value(text)
    return Recipe.from_json(record)


def differences(a: Recipe, b: Recipe) -> list[str]:
    """Dotted keys in which two recipes differ, with both values."""
    flat_a, flat_b = flattened(a.to_json()), flattened(b.to_json())
    keys = sorted(set(flat_a) | set(flat_b))
    return [f"{key}: {flat_a.get(key)} / {flat_b.get(key)}" for key in keys if flat_a.get(key) != flat_b.get(key)]


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
        return int(value) if isinstance(value, float) and value.is_integer() else value  # steps=1e4
    except ValueError:
        return {"None": None, "True": True, "False": False}.get(text, text)  # `none` is a word: a method bears it


# -- the runs

EMBEDDED_DATA = Data(clips=20_480, cache_dtype="float16")


def quick() -> Recipe:
    """Two minutes on two cores: an adapter for the embedded model, on a few clips of the world.

    Where the package has no trained weights, for random ones of its shape.
    """
    from curvedray.models.embedded.model import WEIGHTS

    return Recipe(
        "quick",
        model="embedded" if WEIGHTS.exists() else "random",
        data=Data(clips=32),
        steps=120,
        batch=4,
        lr=1e-3,
        warmup=10,
        timesteps=TimestepDraw("logit_normal", mean=1.8, std=1.0),
        every=Every(checkpoint=60, validate=120),
        validation_clips=1,
    )


def wan_1b() -> Recipe:
    """The paper's: Wan2.1-1.3B, 10K steps of 8 clips, 81 x 480 x 832, AdamW at 1e-4, radial weight 1e-3.

    One pass takes 32,760 tokens, so it is for GPUs: on one of 80 GB use `accumulate=8`, on eight of them nothing.
    """
    return Recipe(
        "wan_1b",
        model="Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
        data=Data(source="panshot", frames=81, height=480, width=832, cache_dtype="float16"),
        precision="bf16",
        gradient_checkpointing=True,
    )


def embedded() -> Recipe:
    """The embedded model's camera adapter, on the procedural world: the paper's experiments at a desk.

    Wider than an eighth of so narrow a backbone, and drawn towards noise, where a clip's camera is decided. Radii are
    held to their targets ten times harder than in the paper, by a loss without its spikes (docs/LOG.md).
    """
    return Recipe(
        "embedded",
        adapter=AdapterConfig(width=72).fitted_to(EMBEDDED_GRID),
        data=EMBEDDED_DATA,
        steps=2000,
        batch=16,
        lr=2e-3,
        decay="linear",
        radial_weight=1e-2,
        radial_floor=0.1,
        timesteps=TimestepDraw("logit_normal", mean=1.8, std=1.0),
        ema=0.995,
        every=Every(log=10, checkpoint=250, validate=0),
    )


def embedded_backbone() -> Recipe:
    """The embedded model itself: its transformer, text and all, on the procedural world."""
    return Recipe(
        "embedded_backbone",
        what="backbone",
        data=EMBEDDED_DATA,
        steps=4200,
        batch=32,
        lr=4e-3,
        warmup=200,
        decay="linear",
        optimiser=Optimiser("muon", betas=(0.9, 0.95)),
        timesteps=TimestepDraw("logit_normal", mean=0.5, std=1.2),
        text_dropout=0.1,
        radial_weight=0.0,
        ema=0.999,
        every=Every(log=10, checkpoint=300, validate=1250),
        validation_clips=4,
    )


def embedded_backbone_longer() -> Recipe:
    """A second run from the weights of the first, whose validation loss was still falling."""
    first = embedded_backbone()
    every = replace(first.every, validate=1500)
    return replace(first, name="embedded_backbone_longer", steps=6000, lr=3e-3, every=every)


def _method(name: str) -> Callable[[Recipe], Recipe]:
    return lambda base: replace(base, adapter=replace(base.adapter, method=name))


def _without_supervision(breakpoints: int) -> Callable[[Recipe], Recipe]:
    """The paper's breakpoint table: a tenth of the budget, the diffusion loss alone."""
    return lambda base: replace(_short(base), radial_weight=0.0, adapter=replace(base.adapter, breakpoints=breakpoints))


def _short(base: Recipe) -> Recipe:
    return replace(base, steps=max(1, base.steps // 10), warmup=max(1, base.warmup // 10))


def _placed(first: float, last: float) -> Callable[[Recipe], Recipe]:
    """Curved blocks from one share of the depth to another."""

    def change(base: Recipe) -> Recipe:
        depth = DEPTHS[base.name]
        return replace(base, adapter=replace(base.adapter, curved_blocks=(round(first * depth), round(last * depth))))

    return change


DEPTHS = {"wan_1b": 30, "embedded": 6}  # blocks of each base's transformer

# Each row of the paper's tables, as a change of its base. The base itself is CRePE, supervised, at full length.
ABLATIONS: dict[str, Callable[[Recipe], Recipe]] = {
    **{f"k{k}": _without_supervision(k) for k in (1, 2, 3, 5, 7)},
    "first": _placed(0, 1 / 3),
    "middle": _placed(1 / 3, 2 / 3),
    "last": _placed(2 / 3, 1),
    "all": _placed(0, 1),
    "supervised_1k": _short,
    "unsupervised_1k": _without_supervision(5),
    "unsupervised_10k": lambda base: replace(base, radial_weight=0.0),
    "rotation": lambda base: replace(base, adapter=replace(base.adapter, query_rotation=True)),
    "mixforcing_block": lambda base: replace(base, mixforcing=MixForcing("block")),
    "mixforcing_video": lambda base: replace(base, mixforcing=MixForcing("video")),
    **{
        name: _method(name)
        for name in ("endpoint", "point", "ucpe", "prope", "gta", "plucker", "recammaster", "depth_concat")
    },
}
BASES: dict[str, Callable[[], Recipe]] = {"wan_1b": wan_1b, "embedded": embedded}
OWN: dict[str, Callable[[], Recipe]] = {
    own.__name__: own for own in (quick, embedded_backbone, embedded_backbone_longer)
}


def recipe_names() -> list[str]:
    return [*OWN, *BASES, *(f"{base}_{change}" for base in BASES for change in ABLATIONS)]


def recipe(name: str) -> Recipe:
    """A recipe by name: a base, or a base and one of its ablations as `wan_1b_k3`."""
    if name in OWN | BASES:
        return (OWN | BASES)[name]()
    for base, make in BASES.items():
        change = ABLATIONS.get(name.removeprefix(f"{base}_"))
        if name.startswith(f"{base}_") and change is not None:
            return replace(change(make()), name=name)
    near = get_close_matches(name, recipe_names(), n=3, cutoff=0.4)
    fix = f"Did you mean {' or '.join(near)}?" if near else ""
    raise InputError("recipe", "one of `curvedray train --list`", name, fix)
