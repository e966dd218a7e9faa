"""What films: a model, an adapter attached to it, a radial map, and the files they came from."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.errors import InputError
from curvedray.generation.settings import check_near
from curvedray.inputs import input_file
from curvedray.models.embedded.model import ADAPTER, WEIGHTS, check_weights
from curvedray.models.interface import BaseIdentity, VideoModel
from curvedray.models.open import EMBEDDED_NAMES, load_model
from curvedray.radial.check import checked
from curvedray.radial.map import RadialMap, read_radial_map

NO_ADAPTER = "none"
# Adapters in the package go by name, so that a recipe is the same wherever the package is installed.
SHIPPED = {"embedded": ADAPTER}


@dataclass(frozen=True)
class Source:
    """A file a video was made from: where it was, or the name of one in the package, and what was in it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> "Source":
        shipped = next((name for name, file in SHIPPED.items() if file == Path(path)), None)
        file = input_file(SHIPPED.get(str(path), path))
        with file.open("rb") as content:
            return cls(shipped or str(path), hashlib.file_digest(content, "sha256").hexdigest())

    @property
    def file(self) -> Path:
        return SHIPPED.get(self.path, Path(self.path))

    def found(self, what: str, elsewhere: str | None) -> "Source":
        """The same file, looked for where it was or `elsewhere`; another one is refused."""
        here = self if elsewhere is None else replace(self, path=elsewhere)
        if Source.of(here.path).sha256 != self.sha256:
            expected = f"the file the video was made with ({self.sha256[:12]})"
            fix = f"Find the original and pass it with --{what}."
            raise InputError(f"{what} {here.path}", expected, "another", fix)
        return here


@dataclass(frozen=True, eq=False)
class Parts:
    """A model, an adapter attached to it, a radial map, and the files they came from.

    `base` says which weights film, for recipes: an attached adapter saw them when it froze them, else they are looked
    at when it is first asked for. Whoever changes a model's weights later attaches its adapter anew, in new Parts.
    """

    model: VideoModel
    adapter: Adapter | None = None
    radial: RadialMap | None = None
    adapter_source: Source | None = None
    radial_source: Source | None = None

    @cached_property
    def base(self) -> BaseIdentity:
        seen = None if self.adapter is None else self.adapter.host_identity
        return seen or BaseIdentity.of(self.model.transformer)

    def check_map(self) -> None:
        """Only an adapter trained with MixForcing knows what to do with a map."""
        if self.radial is not None:
            check_takes_maps(self.adapter)


def load_parts(
    model: VideoModel | str = "",
    adapter: str | Path | None = None,
    radial: str | Path | None = None,
    *,
    near: float | None = None,
    any_weights: bool = False,
    **loading: Any,
) -> Parts:
    """A model, or its name, with an adapter attached, and a map. `none` is no adapter: the model alone.

    Without a name it is the embedded model, which has an adapter of its own, `embedded`.
    `loading` is for `load_model`. Files are looked for before a model is loaded, which may take minutes.
    """
    check_near(near)
    file = adapter_file(model if isinstance(model, str) else model.name, adapter)
    sources = [None if path is None else Source.of(path) for path in (file, radial)]
    distances = None if radial is None else checked(read_radial_map(Path(radial), near), radial)
    model = load_model(model, **loading) if isinstance(model, str) else model
    loaded = None
    if file is not None:
        loaded = load_adapter(file, model.transformer, any_weights=any_weights).eval().requires_grad_(False)
        # An offloaded transformer's weights rest on the CPU, but it runs elsewhere, and the adapter with it.
        loaded.to(model.device).attach(model.transformer, any_weights=any_weights)
    parts = Parts(model, loaded, distances, *sources)
    parts.check_map()
    return parts


def adapter_file(model: str, adapter: str | Path | None) -> Path | None:
    """Which adapter file a user means; without one, a real model would ignore its camera, so that is refused.

    The embedded model has one of its own.
    """
    if adapter is not None and str(adapter) == NO_ADAPTER:
        return None
    if adapter is not None:
        return SHIPPED.get(str(adapter), Path(adapter))
    if model in EMBEDDED_NAMES:
        check_weights(WEIGHTS)
        return ADAPTER
    fix = "Train one with `curvedray train`, or pass --adapter none to see the model without camera control."
    raise InputError("adapter", "an adapter for this model", "none", fix)


def check_takes_maps(adapter: Adapter | None) -> None:
    if adapter is None or not adapter.accepts_radial_maps:
        got = "none" if adapter is None else f"one of method {adapter.config.method} trained without it"
        fix = "Train one with mixforcing, or leave the map out."
        raise InputError("radial map", "an adapter trained with MixForcing", got, fix)
