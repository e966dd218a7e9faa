"""A run is a function that returns a Recipe; an ablation is a function from one Recipe to another.

curvedray train wan_1b_k3 --data panshot -o runs/k3      # the paper's recipe, with three breakpoints
curvedray train quick steps=500 adapter.breakpoints=3    # dotted overrides; unknown keys are refused
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from curvedray.adapter.config import METHODS, AdapterConfig
from curvedray.data.sources import Data
from curvedray.errors import InputError
from curvedray.models.embedded.model import GRID as EMBEDDED_GRID
from curvedray.models.flow import TimestepDraw
from curvedray.radial.mixforcing import MixForcing
from curvedray.training.recipe import Every, Optimiser, Recipe

EMBEDDED_DATA = Data(clips=8192, cache_dtype="float16")


def quick() -> Recipe:
    """A first adapter for the embedded model: two minutes on two cores.

    On a few clips of the world. Where the package has no trained weights, for random ones of its shape.
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
    """The paper's: Wan2.1-1.3B, 10K steps of 8 clips of 81 x 480 x 832.

    AdamW at 1e-4, radial weight 1e-3. One pass takes 32,760 tokens, so it is for GPUs: on one of 80 GB use
    `accumulate=8`, on eight of them nothing.
    """
    return Recipe(
        "wan_1b",
        model="Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
        data=Data(source="panshot", frames=81, height=480, width=832, cache_dtype="float16"),
        precision="bf16",
        gradient_checkpointing=True,
    )


def embedded() -> Recipe:
    """The same method on the embedded model, for the paper's experiments.

    Wider than an eighth of so narrow a backbone, and drawn towards noise, where a clip's camera is decided. Radii are
    held to their targets ten times harder than in the paper, by a loss without its spikes (docs/LOG.md).
    """
    return Recipe(
        "embedded",
        adapter=AdapterConfig(width=72).fitted_to(EMBEDDED_GRID),
        data=EMBEDDED_DATA,
        steps=800,
        batch=8,  # in a trial no worse than 16 for the same clips; how much better, its warm-up hides (docs/LOG.md)
        lr=2e-3,
        decay="linear",
        radial_weight=1e-2,
        radial_floor=0.1,
        timesteps=TimestepDraw("logit_normal", mean=1.8, std=1.0),
        ema=0.99,
        every=Every(log=10, checkpoint=250, validate=0),
    )


def embedded_beginnings() -> Recipe:
    """The embedded model itself, mostly on the beginnings of clips: they cost a sixth.

    At a constant rate, so that it can be made longer; noise levels are drawn as a sampler visits them.
    """
    return Recipe(
        "embedded_beginnings",
        what="backbone",
        data=replace(EMBEDDED_DATA, clips=12_288),
        steps=7000,
        batch=32,
        lr=4e-3,
        warmup=200,
        beginnings=(0.6, 0.15, 0.05, 0.0, 0.2),
        optimiser=Optimiser("muon", betas=(0.9, 0.95)),
        timesteps=TimestepDraw("shifted", shift=4.0),
        text_dropout=0.1,
        radial_weight=0.0,
        ema=0.999,
        every=Every(log=10, checkpoint=250, validate=0),
    )


def embedded_backbone() -> Recipe:
    """The embedded model on whole clips, after `embedded_beginnings`."""
    first = embedded_beginnings()
    return replace(first, name="embedded_backbone", steps=7400, warmup=60, decay="linear", beginnings=())


def embedded_adapter() -> Recipe:
    """The adapter in the package: `embedded_maps_beside`, trained longer."""
    return replace(ABLATIONS["maps_beside"].change(embedded()), name="embedded_adapter", steps=5000)


# -- ablations


@dataclass(frozen=True)
class Ablation:
    """A row of the paper's tables: what it is, and the change of its base."""

    says: str
    change: Callable[[Recipe], Recipe]


def _with_adapter(says: str, **changes: Any) -> Ablation:
    return Ablation(says, lambda base: replace(base, adapter=replace(base.adapter, **changes)))


def _with_maps(says: str, **changes: Any) -> Ablation:
    """An adapter that takes maps, trained with MixForcing over whole videos, and a change of it."""

    def change(base: Recipe) -> Recipe:
        return replace(base, mixforcing=MixForcing("video"), adapter=replace(base.adapter, **changes))

    return Ablation(f"takes maps of distances: {says}", change)


def _breakpoints(count: int) -> Ablation:
    """The paper's breakpoint table: a tenth of the budget, the diffusion loss alone."""

    def change(base: Recipe) -> Recipe:
        return replace(_short(base), radial_weight=0.0, adapter=replace(base.adapter, breakpoints=count))

    return Ablation(f"{count} breakpoint{'s' * (count > 1)}; a tenth of the steps, no radial loss", change)


def _short(base: Recipe) -> Recipe:
    return replace(base, steps=max(1, base.steps // 10), warmup=max(1, base.warmup // 10))


def _curved_blocks(which: str) -> Ablation:
    """Another window of curved blocks, of the base's own width."""

    def change(base: Recipe) -> Recipe:
        return replace(base, adapter=replace(base.adapter, curved_blocks=base.adapter.window(which, DEPTHS[base.name])))

    return Ablation(f"curved rays in {which if which == 'all' else f'the {which}'} blocks", change)


_MAPS_COPY = _with_maps(METHODS["copy_concat"].says, method="copy_concat")
_RAYS_BESIDE = _with_adapter("relative rays beside the curves", rays_beside=True)
DEPTHS = {"wan_1b": 30, "embedded": 8}  # blocks of each base's transformer
OTHER_METHODS = ("endpoint", "point", "ucpe", "prope", "gta", "plucker", "recammaster", "depth_concat", "copy_concat")

# Each row of the paper's tables. The base itself is CRePE, supervised, at full length.
ABLATIONS: dict[str, Ablation] = {
    **{f"k{k}": _breakpoints(k) for k in (1, 2, 3, 5, 7)},
    **{which: _curved_blocks(which) for which in ("first", "middle", "last", "all")},
    "supervised_1k": Ablation("a tenth of the steps", _short),
    "unsupervised_1k": Ablation("a tenth of the steps, no radial loss", _breakpoints(5).change),
    "unsupervised_10k": Ablation("no radial loss", lambda base: replace(base, radial_weight=0.0)),
    "rotation": _with_adapter("queries rotated by their own pixel: beyond the paper", query_rotation=True),
    "rotation_value": _with_adapter(
        "queries rotated by their own pixel and values as their keys: beyond the paper",
        query_rotation=True,
        value_rotation=True,
    ),
    "mixforcing_block": Ablation(
        "takes maps of distances: MixForcing in blocks of frames",
        lambda base: replace(base, mixforcing=MixForcing("block")),
    ),
    "mixforcing_video": Ablation(
        "takes maps of distances: MixForcing of whole videos",
        lambda base: replace(base, mixforcing=MixForcing("video")),
    ),
    # What makes a map obeyed: one change at a time, at the same budget. `mixforcing_video` is the paper's own form.
    "maps_query": _with_maps("queries rotated by their own pixel", query_rotation=True),
    "maps_value": _with_maps("queries and values rotated", query_rotation=True, value_rotation=True),
    "maps_feature": _with_maps(
        "queries and values rotated, the interval a feature too",
        query_rotation=True,
        value_rotation=True,
        interval_feature=True,
    ),
    "maps_everywhere": Ablation(
        "takes maps of distances: queries and values rotated, all blocks curved",
        lambda base: ABLATIONS["all"].change(ABLATIONS["maps_value"].change(base)),
    ),
    "maps_beside": Ablation(
        "takes maps of distances: as maps_feature in all blocks, relative rays beside",
        lambda base: ABLATIONS["all"].change(_RAYS_BESIDE.change(ABLATIONS["maps_feature"].change(base))),
    ),
    "maps_concat": _with_maps(METHODS["depth_concat"].says, method="depth_concat"),
    "maps_copy": Ablation(
        f"{_MAPS_COPY.says}; all blocks", lambda base: ABLATIONS["all"].change(_MAPS_COPY.change(base))
    ),
    **{name: _with_adapter(METHODS[name].says, method=name) for name in OTHER_METHODS},
}
BASES: dict[str, Callable[[], Recipe]] = {"wan_1b": wan_1b, "embedded": embedded}
_RUNS = (quick, embedded_beginnings, embedded_backbone, embedded_adapter)
OWN: dict[str, Callable[[], Recipe]] = {run.__name__: run for run in _RUNS}


def recipe_names() -> list[str]:
    return list(recipe_descriptions())


def recipe_descriptions() -> dict[str, str]:
    """What each recipe is, in one line."""
    own = {name: (make.__doc__ or "").splitlines()[0] for name, make in (OWN | BASES).items()}
    return own | {f"{base}_{name}": i.says for base in BASES for name, i in ABLATIONS.items()}


def recipe(name: str) -> Recipe:
    """A recipe by name: a base, or a base and one of its ablations as `wan_1b_k3`."""
    if name in OWN | BASES:
        return (OWN | BASES)[name]()
    for base, make in BASES.items():
        ablation = ABLATIONS.get(name.removeprefix(f"{base}_"))
        if name.startswith(f"{base}_") and ablation is not None:
            return replace(ablation.change(make()), name=name)
    near = get_close_matches(name, recipe_names(), n=3, cutoff=0.4)
    fix = f"Did you mean {' or '.join(near)}?" if near else ""
    raise InputError("recipe", "one of `curvedray train --list`", name, fix)
