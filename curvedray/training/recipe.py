"""A recipe: all that decides a run, as one frozen value, and how it is changed from the command line."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from curvedray.adapter.config import AdapterConfig
from curvedray.configs import check_laws, config_of, flattened, number, record_of, whole
from curvedray.data.sources import Data
from curvedray.errors import InputError
from curvedray.inputs import parsed_json
from curvedray.models.flow import TimestepDraw
from curvedray.radial.mixforcing import MixForcing

MANY = 10**9  # more steps, clips or checkpoints than anybody has
TINY, HUGE = 1e-30, 1e30  # positive numbers that float32 can hold


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
    beginnings: tuple[float, ...] = ()  # of a backbone: shares of steps that see the first 1, 2, ... latent frames only
    radial_weight: float = 1e-3
    radial_alpha: float = 1.0
    radial_floor: float = 1e-3  # the smallest s that the radial loss divides by, in near distances; the paper's
    noisiest: float = 0.03  # share of draws, the noisiest, that the radial loss does not see
    mixforcing: MixForcing | None = None
    ema: float = 0.0  # decay of the average of weights that is kept and validated; 0: none
    precision: Literal["no", "bf16"] = "no"
    gradient_checkpointing: bool = False
    every: Every = field(default_factory=Every)
    keep: int = 2  # checkpoints
    validation_clips: int = 2
    seed: int = 0
    start: str = ""  # an adapter file to start from; empty: from scratch

    def __post_init__(self) -> None:
        data, every, own = self.data, self.every, self.optimiser
        counts = {  # whole numbers, with the least and the most they may be
            "steps": (1, MANY),
            "batch": (1, 10**6),
            "accumulate": (1, 10**6),
            "warmup": (0, MANY),
            "keep": (1, MANY),
            "validation_clips": (0, 10**6),
            "seed": (0, 2**32),
            "data.clips": (1, MANY),
            **{f"data.{key}": (1, 10**5) for key in ("frames", "height", "width") if getattr(data, key) is not None},
            **{f"every.{key}": (0, MANY) for key in vars(every)},
        }
        laws = [
            ("name", bool(self.name) and self.name == Path(self.name).name, "a word, for it names a folder"),
            *(
                (key, whole(value_at(self, key), *i), f"a whole number from {i[0]} to {i[1]}")
                for key, i in counts.items()
            ),
            ("lr", number(self.lr, TINY, HUGE), "a positive number"),
            ("text_dropout", number(self.text_dropout, 0, 1), "a share in [0, 1]"),
            (
                "beginnings",
                not self.beginnings or (self.what == "backbone" and _are_shares(self.beginnings)),
                "nothing, or of a backbone shares of steps that add up to 1",
            ),
            ("noisiest", number(self.noisiest, 0, 1) and self.noisiest < 1, "a share in [0, 1)"),
            ("radial_weight", number(self.radial_weight, 0, HUGE), "0 or more"),
            ("radial_alpha", number(self.radial_alpha, 0, HUGE), "0 or more"),
            ("radial_floor", number(self.radial_floor, TINY, HUGE), "a positive number"),
            ("ema", number(self.ema, 0, 1) and self.ema < 1, "a decay in [0, 1)"),
            ("optimiser.betas", all(number(i, 0, 1) and i < 1 for i in own.betas), "two shares in [0, 1)"),
            ("optimiser.weight_decay", number(own.weight_decay, 0, HUGE), "0 or more"),
            ("optimiser.clip", number(own.clip, TINY, HUGE), "a positive number"),
            ("start", not self.start or self.what == "adapter", "nothing, for a backbone starts from `model`"),
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
        """Without `start` and `beginnings` where they are empty: records are those they were before these were."""
        return {key: value for key, value in record_of(self).items() if key not in ("start", "beginnings") or value}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Recipe":
        return config_of(cls, record, "recipe")


def with_overrides(recipe: Recipe, overrides: Iterable[str]) -> Recipe:
    """A recipe changed by `dotted.key=value`; a value is JSON where it parses as such, else text."""
    changes: dict[str, Any] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise InputError("override", "key=value", override)
        changes[key] = _value(text)
    return changed(recipe, changes)


def changed(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """A recipe with other values, by their dotted keys."""
    record = recipe.to_json()
    for key, value in changes.items():
        *parents, last = key.split(".")
        part: dict[str, Any] = record
        for name in parents:
            inner = part.setdefault(name, {})
            if inner is None:  # an option that is off becomes one with its defaults: mixforcing.kind=block
                inner = part[name] = {}
            if not isinstance(inner, dict):
                raise InputError("recipe", f"no parts in {name}, which is one value", key)
            part = inner
        part[last] = value
    return Recipe.from_json(record)


def value_at(recipe: Recipe, key: str) -> Any:
    """The value at a dotted key."""
    return functools.reduce(getattr, key.split("."), recipe)


def differences(a: Recipe, b: Recipe) -> list[str]:
    """Dotted keys in which two recipes differ, with both values."""
    flat_a, flat_b = flattened(a.to_json()), flattened(b.to_json())
    keys = sorted(set(flat_a) | set(flat_b))
    return [f"{key}: {flat_a.get(key)} / {flat_b.get(key)}" for key in keys if flat_a.get(key) != flat_b.get(key)]


def _are_shares(numbers: tuple[float, ...]) -> bool:
    return all(number(i, 0, 1) for i in numbers) and abs(sum(numbers) - 1) < 1e-6


def _value(text: str) -> Any:
    try:
        value = parsed_json(text, "override")
    except InputError:  # a word, or a number that nobody means: what it is for will say so
        return {"None": None, "True": True, "False": False}.get(text, text)  # `none` is a word: a method bears it
    return int(value) if isinstance(value, float) and value.is_integer() else value  # steps=1e4
