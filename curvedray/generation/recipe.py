"""A video's recipe: all it was made from, carried in the mp4 and beside it, enough to make it again to the byte."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.cameras import Cameras
from curvedray.errors import InputError
from curvedray.formats import cameras_from_json, cameras_to_json
from curvedray.generation.generate import Settings, cameras_for, check_radial
from curvedray.media.video import read_video
from curvedray.models.interface import BaseIdentity, VideoModel
from curvedray.models.open import load_model
from curvedray.radial.map import RadialMap, read_radial_map

FORMAT = 1
NO_ADAPTER = "none"


@dataclass(frozen=True)
class Source:
    """A file a video was made from: where it was, and what was in it."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> "Source":
        if not Path(path).is_file():
            raise InputError(str(path), "a file", "a folder" if Path(path).is_dir() else "nothing there")
        with Path(path).open("rb") as file:
            return cls(str(path), hashlib.file_digest(file, "sha256").hexdigest())

    def check(self, what: str) -> None:
        if Source.of(self.path).sha256 != self.sha256:
            fix = f"Find the original and pass it with --{what}."
            raise InputError(
                f"{what} {self.path}", f"the file the video was made with ({self.sha256[:12]})", "another", fix
            )


@dataclass(frozen=True, eq=False)
class VideoRecipe:
    """Everything that decides a video's pixels, but for the machine."""

    prompt: str
    negative: str
    settings: Settings
    cameras: Cameras  # in near distances, on the video's pixels
    model: str  # a folder or hub id; empty: the embedded model
    base: BaseIdentity
    dtype: str
    adapter: Source | None
    radial: Source | None

    def to_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("prompt", "negative", "model", "dtype")}
        parts = {name: asdict(part) if (part := getattr(self, name)) else None for name in ("adapter", "radial")}
        said = {
            "settings": asdict(self.settings),
            "base": self.base.to_json(),
            "cameras": cameras_to_json(self.cameras),
        }
        return {"curvedray_video": FORMAT} | plain | parts | said

    @classmethod
    def from_json(cls, record: Any, name: str = "recipe") -> "VideoRecipe":
        if not isinstance(record, dict) or record.get("curvedray_video") != FORMAT:
            raise InputError(name, f"a curvedray video recipe, format {FORMAT}", "something else")
        try:
            return cls(
                prompt=str(record["prompt"]),
                negative=str(record["negative"]),
                settings=Settings(**record["settings"]),
                cameras=cameras_from_json(record["cameras"], f"{name}: cameras"),
                model=str(record["model"]),
                base=BaseIdentity(**record["base"]),
                dtype=str(record["dtype"]),
                adapter=Source(**record["adapter"]) if record["adapter"] else None,
                radial=Source(**record["radial"]) if record["radial"] else None,
            )
        except (KeyError, TypeError) as error:
            raise InputError(name, "a whole recipe", f"one with a wrong or missing field ({error})") from error


def read_recipe(path: str | Path) -> VideoRecipe:
    """The recipe in a video that `curvedray generate` made, or in the JSON beside it."""
    path = Path(path)
    if path.suffix == ".json":
        try:
            return VideoRecipe.from_json(json.loads(path.read_text()).get("recipe"), str(path))
        except (OSError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(str(path), "a JSON file of a video's recipe", str(error)) from error
    note = read_video(path).metadata.get("recipe")
    if note is None:
        fix = f"Try the JSON beside it: --again {path.with_suffix('.json')}."
        raise InputError(str(path), "a video with its recipe inside", "one without", fix)
    return VideoRecipe.from_json(json.loads(note), str(path))


@dataclass(frozen=True, eq=False)
class Parts:
    """What a recipe is cooked with: a model, an adapter attached to it, a radial map, and the files they came from."""

    model: VideoModel
    adapter: Adapter | None = None
    radial: RadialMap | None = None
    adapter_source: Source | None = None
    radial_source: Source | None = None


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

    Without a name it is the embedded model, which has an adapter of its own. `loading` is for `load_model`. Files
    are looked for before a model is loaded, which may take minutes.
    """
    file = adapter_file(model if isinstance(model, str) else model.name, adapter, follows_map=radial is not None)
    sources = [None if path is None else Source.of(path) for path in (file, radial)]
    model = load_model(model, **loading) if isinstance(model, str) else model
    loaded = None
    if file is not None:
        loaded = load_adapter(file, model.transformer, any_weights=any_weights).eval().requires_grad_(False)
        # An offloaded transformer's weights rest on the CPU, but it runs elsewhere, and the adapter with it.
        loaded.to(model.device).attach(model.transformer, any_weights=any_weights)
    if radial is not None:
        check_radial(loaded)
    return Parts(
        model,
        loaded,
        None if radial is None else read_radial_map(Path(radial), near),
        *sources,
    )


def adapter_file(model: str, adapter: str | Path | None, follows_map: bool = False) -> Path | None:
    """Which adapter file a user means; without one, a real model would ignore its camera, so that is refused.

    The embedded model has two of its own: one for cameras alone, and one that was trained with maps.
    """
    if adapter is not None and str(adapter) == NO_ADAPTER:
        return None
    if adapter is not None:
        return Path(adapter)
    if not model:
        from curvedray.models.embedded.model import ADAPTER, MAP_ADAPTER, WEIGHTS, check_weights

        check_weights(WEIGHTS)
        return MAP_ADAPTER if follows_map else ADAPTER
    fix = "Train one with `curvedray train`, or pass --adapter none to see the model without camera control."
    raise InputError("adapter", "an adapter for this model", "none", fix)


def new_recipe(
    parts: Parts,
    prompt: str,
    cameras: Cameras | Path | str,
    *,
    lens: str | None = None,
    negative: str | None = None,
    near: float | None = None,
    **asked: Any,
) -> VideoRecipe:
    """Everything resolved: the model's defaults overruled by what is `asked` (see Settings), moves made cameras."""
    model = parts.model
    settings = Settings.of(model, **asked)
    grid = model.grid_for(settings.frames, settings.height, settings.width)
    near = near if parts.radial is None else parts.radial.near
    return VideoRecipe(
        prompt=prompt,
        negative=model.defaults.negative if negative is None else negative,
        settings=settings,
        cameras=cameras_for(model, cameras, lens, grid, near).to("cpu"),
        model=model.name,
        base=BaseIdentity.of(model.transformer),
        dtype=str(next(model.transformer.parameters()).dtype).removeprefix("torch."),
        adapter=parts.adapter_source,
        radial=parts.radial_source,
    )


def relocated(recipe: VideoRecipe, adapter: str | None = None, radial: str | None = None) -> VideoRecipe:
    """The same recipe with its files found elsewhere; they must still be the same files."""
    return replace(
        recipe, adapter=_found("adapter", recipe.adapter, adapter), radial=_found("radial", recipe.radial, radial)
    )


def _found(name: str, source: Source | None, elsewhere: str | None) -> Source | None:
    if source is None:
        if elsewhere is not None:
            raise InputError(f"--{name}", "nothing, as the video was made without one", elsewhere)
        return None
    source = source if elsewhere is None else replace(source, path=elsewhere)
    source.check(name)
    return source
