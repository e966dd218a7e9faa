"""What a recipe names, opened: its model, its footage, its clips."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from curvedray.cache import CachedClips, CacheReport, build_cache
from curvedray.clips import ClipSource, EncodedOnTheFly, Footage, FootageSource, VideoShape, Without
from curvedray.errors import InputError
from curvedray.folders import FolderFootage
from curvedray.models import VideoModel
from curvedray.radial import RadialMap
from curvedray.recipes import Data, Recipe
from curvedray.video_recipe import load_model
from curvedray.world import WORDS, Split, world_clip

WORLD_VERSION = 1  # of what a clip number looks like; a change of it makes old caches another thing


@dataclass(frozen=True)
class WorldFootage:
    """Clips of the procedural world, drawn as they are asked for."""

    clips: int
    split: Split
    shape: VideoShape
    first: int = 0

    def __len__(self) -> int:
        return self.clips

    def __getitem__(self, index: int) -> Footage:
        clip = world_clip(self.first + index, self.split, self.shape.frames, self.shape.height, self.shape.width)
        return Footage(clip.id, clip.caption, clip.video, clip.cameras, RadialMap.from_metric(clip.radius, clip.valid))

    def name_of(self, index: int) -> str:
        return f"{self.split}-{self.first + index:06d}"

    def describe(self) -> dict[str, object]:
        return {
            "kind": "world",
            "version": WORLD_VERSION,
            "split": self.split,
            "first": self.first,
            "clips": self.clips,
        }


def open_model(name: str, device: torch.device) -> VideoModel:
    """`embedded`: the one in the package; `random`: its shape untrained; a .safetensors of ours; a Wan folder or id."""
    if name == "random":
        from curvedray.embedded import EmbeddedModel, EmbeddedShape

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return EmbeddedModel(EmbeddedShape(tuple(WORDS))).eval().requires_grad_(False).to(device)
    return load_model("" if name == "embedded" else name, device=str(device))


def video_shape(data: Data, model: VideoModel) -> VideoShape:
    """The recipe's shape, with the model's own where it says none; checked against the model's strides."""
    own = model.defaults
    shape = VideoShape(data.frames or own.frames, data.height or own.height, data.width or own.width)
    model.grid_for(shape.frames, shape.height, shape.width)
    return shape


def open_footage(source: str, shape: VideoShape, clips: int, split: Split = "train") -> FootageSource:
    if source == "world":
        return WorldFootage(clips, split, shape)
    return FolderFootage(Path(source))


def open_clips(
    recipe: Recipe,
    model: VideoModel,
    out: Path,
    *,
    share: tuple[int, int] = (0, 1),
    wait: Callable[[], None] = lambda: None,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[ClipSource, CacheReport | None]:
    """The clips to train on, less those held out: from the recipe's cache, made or finished first, or on the fly.

    Where several processes train, each makes its `share` of the cache, and they `wait` for one another to open it.
    """
    shape = video_shape(recipe.data, model)
    footage = open_footage(recipe.data.source, shape, recipe.data.clips)
    held_out = {footage.name_of(i) for i in _held_out(recipe, footage)}
    if recipe.data.cache == "off":
        return Without(EncodedOnTheFly(footage, model, shape), held_out), None
    folder = out / "cache" if recipe.data.cache == "auto" else Path(recipe.data.cache)
    report = build_cache(footage, model, shape, folder, dtype=recipe.data.cache_dtype, share=share, tick=tick)
    wait()
    return Without(CachedClips(folder), held_out), report


def validation_clips(recipe: Recipe, model: VideoModel) -> list[Footage]:
    """Clips that training never sees: of the world's validation split, or the last of a folder.

    One that cannot be read is left out here; it was named when the cache was made.
    """
    shape = video_shape(recipe.data, model)
    footage = open_footage(recipe.data.source, shape, recipe.validation_clips, "val")
    found: list[Footage] = []
    for index in range(len(footage)) if recipe.data.source == "world" else _held_out(recipe, footage):
        with suppress(InputError):
            found.append(footage[index])
    return found


def _held_out(recipe: Recipe, footage: FootageSource) -> range:
    """The last clips of a folder, at most a quarter of it; the world has a split of its own."""
    if recipe.data.source == "world":
        return range(0)
    return range(len(footage) - min(recipe.validation_clips, len(footage) // 4), len(footage))
