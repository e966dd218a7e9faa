"""A video's recipe: all it was made from, carried in the video and beside it, enough to make it again to the byte."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from curvedray.cameras import Lens
from curvedray.configs import config_of
from curvedray.errors import InputError
from curvedray.formats import cameras_from_json, cameras_to_json
from curvedray.generation.notices import without_effect
from curvedray.generation.parts import Parts, Source
from curvedray.generation.settings import Settings, check_near
from curvedray.generation.shot import CameraPath, Shot, near_of
from curvedray.inputs import parsed_json, read_json
from curvedray.media.video import read_notes
from curvedray.models.interface import BaseIdentity

FORMAT = 1
RECIPE = "-recipe.json"  # beside NAME.mp4; not NAME.json, which is what people call the cameras they film it with
WORDS = ("prompt", "negative", "model", "dtype")
SINCE_THEN = ("near",)  # that recipes of the first videos did not have


@dataclass(frozen=True, eq=False)
class VideoRecipe:
    """Everything that decides a video's pixels, but for the machine."""

    shot: Shot
    model: str  # a folder or hub id; empty: the embedded model
    base: BaseIdentity
    dtype: str
    adapter: Source | None
    radial: Source | None
    near: float | None = None  # metres: the unit of the radial map

    def to_json(self) -> dict[str, Any]:
        parts = {name: asdict(part) if (part := getattr(self, name)) else None for name in ("adapter", "radial")}
        return {
            "curvedray_video": FORMAT,
            "prompt": self.shot.prompt,
            "negative": self.shot.negative,
            "settings": asdict(self.shot.settings),
            "cameras": cameras_to_json(self.shot.cameras),
            "model": self.model,
            "base": self.base.to_json(),
            "dtype": self.dtype,
            "near": self.near,
        } | parts

    @classmethod
    def from_json(cls, record: Any, name: str = "recipe") -> "VideoRecipe":
        """The recipe that `to_json` wrote; anything missing, extra or of another type is refused by its name."""
        if not isinstance(record, dict) or record.get("curvedray_video") != FORMAT:
            raise InputError(name, f"a curvedray video recipe, format {FORMAT}", "something else")
        known = {"curvedray_video", *WORDS, "settings", "cameras", "base", "adapter", "radial", *SINCE_THEN}
        if odd := sorted((set(record) ^ known) - set(SINCE_THEN)):
            what = "an extra" if odd[0] in record else "a missing"
            raise InputError(name, "a whole recipe", f"one with {what} field: {odd[0]}")
        for word in WORDS:
            if not isinstance(record[word], str):
                raise InputError(f"{name}: {word}", "text", repr(record[word]))
        near = record.get("near")
        check_near(near)
        adapter, radial = (
            None if record[part] is None else config_of(Source, record[part], f"{name}: {part}")
            for part in ("adapter", "radial")
        )
        settings = config_of(Settings, record["settings"], f"{name}: settings")
        cameras = cameras_from_json(record["cameras"], f"{name}: cameras")
        base = config_of(BaseIdentity, record["base"], f"{name}: base")
        shot = Shot(record["prompt"], record["negative"], settings, cameras)
        return cls(shot, record["model"], base, record["dtype"], adapter, radial, near)


def read_recipe(path: str | Path) -> VideoRecipe:
    """The recipe in a video that `curvedray generate` made, or in the JSON beside it."""
    path = Path(path)
    if path.suffix.lower() == ".json":
        stored = read_json(path, "the JSON beside a video")
        return VideoRecipe.from_json(stored.get("recipe") if isinstance(stored, dict) else None, str(path))
    note = read_notes(path).get("recipe")
    if note is None:
        fix = f"Try the JSON beside it: --again {path.with_name(path.stem + RECIPE)}."
        raise InputError(str(path), "a video with its recipe inside", "one without", fix)
    return VideoRecipe.from_json(parsed_json(note, str(path), "a recipe"), str(path))


def new_recipe(
    parts: Parts,
    prompt: str,
    cameras: CameraPath,
    *,
    lens: Lens | str | None = None,
    negative: str | None = None,
    near: float | None = None,
    fps: float | None = None,
    fit: bool = False,
    **settings: Any,
) -> VideoRecipe:
    """Everything resolved: the model's defaults overruled by `settings` (see Settings), moves made cameras."""
    model = parts.model
    near = near_of(cameras, near, parts.radial)
    shot = Shot.of(model, prompt, cameras, lens=lens, negative=negative, near=near, fps=fps, fit=fit, **settings)
    idle = without_effect(shot.settings, settings, negative, parts.adapter is not None, parts.radial is not None)
    shot = replace(shot, notices=(*shot.notices, *idle))
    dtype = str(next(model.transformer.parameters()).dtype).removeprefix("torch.")
    sources = (parts.adapter_source, parts.radial_source)
    return VideoRecipe(
        shot, model.name, parts.base, dtype, *sources, None if parts.radial is None else parts.radial.near
    )


def relocated(recipe: VideoRecipe, adapter: str | None = None, radial: str | None = None) -> VideoRecipe:
    """The same recipe with its files found elsewhere; they must still be the same files."""
    for name, source, elsewhere in (("adapter", recipe.adapter, adapter), ("radial", recipe.radial, radial)):
        if source is None and elsewhere is not None:
            raise InputError(f"--{name}", "nothing, as the video was made without one", elsewhere)
    return replace(
        recipe,
        adapter=None if recipe.adapter is None else recipe.adapter.found("adapter", adapter),
        radial=None if recipe.radial is None else recipe.radial.found("radial", radial),
    )
