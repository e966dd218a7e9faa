"""An experiment's circumstances: its scale, a user's places, changes from the command line, and where files lie."""

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch

from curvedray.cameras import TokenGrid
from curvedray.data.clips import VideoShape
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.sources import WORLDS
from curvedray.engine import HERE, Engine
from curvedray.errors import InputError
from curvedray.generation.settings import GUIDED, Settings
from curvedray.inputs import parsed_json, read_json
from curvedray.models.embedded.model import WEIGHTS, training_key
from curvedray.models.interface import VideoModel, self_attentions
from curvedray.models.open import EMBEDDED_NAMES, is_embedded, load_model, usual_shape
from curvedray.paper.experiment import Row
from curvedray.paper.needs import Places
from curvedray.paper.scales import Scale
from curvedray.training.precision import quick_precision
from curvedray.training.recipe import Recipe, changed, with_overrides
from curvedray.training.recipes import recipe

FILM = "film."  # overrides that begin so are of filming: film.steps=2
WAN_DEPTH = 30  # blocks, where no folder tells


@dataclass(frozen=True, eq=False)
class Setting:
    """Where and how large: everything a step needs beside the row itself."""

    scale: Scale
    store: Path  # what is trained, filmed, estimated and scored, by what made it; shared by all experiments
    places: Places = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    clips: int | None = None
    seeds: int = 1
    engine: Engine = HERE  # where clips are filmed

    @property
    def model(self) -> str:
        return self.places.get("wan", self.scale.model) if self.scale.name == "wan" else self.scale.model

    @cached_property
    def model_key(self) -> str:
        """Which weights, by their content where they are on this disk."""
        if self.embedded_file is not None:
            return weights_key(self.embedded_file)
        if Path(self.model).is_dir():
            return file_fingerprint(Path(self.model) / "transformer")
        return self.model

    @cached_property
    def training_model_key(self) -> str:
        """The same of what a training sees: an embedded model's decoder may change, and its adapters stay."""
        return self.model_key if self.embedded_file is None else training_key(self.embedded_file)

    @property
    def embedded_file(self) -> Path | None:
        """The file of an embedded model, where there is one: random weights have none."""
        path = WEIGHTS if self.model in EMBEDDED_NAMES else Path(self.model)
        return path if is_embedded(self.model) and path.is_file() else None

    @cached_property
    def shape(self) -> VideoShape:
        asked = (self.base.data.frames, self.base.data.height, self.base.data.width)
        if all(asked):  # Wan's recipe says its own, and asking Wan would import diffusers
            own = asked
        elif is_embedded(self.model):
            own = _embedded_sizes(self.model, self.model_key)[2]
        else:
            own = usual_shape(self.model)
        return VideoShape(*(i or j for i, j in zip(asked, own, strict=True)))  # type: ignore[arg-type]

    @cached_property
    def depth(self) -> int:
        """Blocks of the model's transformer."""
        if is_embedded(self.model):
            return _embedded_sizes(self.model, self.model_key)[0]
        config = Path(self.model) / "transformer" / "config.json"
        return int(read_json(config)["num_layers"]) if config.is_file() else WAN_DEPTH

    @cached_property
    def grid(self) -> TokenGrid:
        shape = (self.shape.frames, self.shape.height, self.shape.width)
        if is_embedded(self.model):
            return TokenGrid.from_video(*shape, _embedded_sizes(self.model, self.model_key)[1])
        return TokenGrid.from_video(*shape)

    @cached_property
    def base(self) -> Recipe:
        """The recipe that every row changes, at its full length."""
        scale = self.scale
        source = scale.source or self.places.get("panshot", "panshot")
        changes: dict[str, Any] = {"model": self.model, "data.source": source, "every.validate": 0, "every.log": 1}
        if scale.is_world:  # a GPU's recipe says its own
            changes["precision"] = quick_precision()
        changes |= {"steps": scale.steps["full"], **scale.changes}
        own = [i for i in self.overrides if not i.startswith(FILM)]
        return with_overrides(changed(recipe(scale.recipe), changes), own)

    def __post_init__(self) -> None:
        """A mistake in an override is found before anything is done."""
        _ = self.film_overrides, self.base

    @cached_property
    def film_overrides(self) -> dict[str, Any]:
        known = {field.name for field in fields(Settings)}
        found = {}
        for override in self.overrides:
            key, _, text = override.removeprefix(FILM).partition("=")
            if override.startswith(FILM):
                if key not in known:
                    raise InputError(override, f"{FILM}KEY=VALUE with a key among {', '.join(sorted(known))}", key)
                found[key] = parsed_json(text, override, "a number, true or false after the =")
        return found

    @property
    def filming(self) -> dict[str, Any]:
        """Settings of filming that are not the model's own."""
        chosen = self.scale.filming | self.film_overrides
        shape = {"frames": self.shape.frames, "height": self.shape.height, "width": self.shape.width}
        return shape | chosen

    @cached_property
    def film_settings(self) -> dict[str, float]:
        """How rows are filmed, as far as that can be told without opening a large model."""
        own = vars(load_model(self.model).defaults) if is_embedded(self.model) else {}
        names = ("steps", *GUIDED)
        return {name: own[name] for name in names if name in own} | self.scale.filming | self.film_overrides

    def steps(self, row: Row) -> int:
        """A row's steps: its budget, in proportion where the full one was changed from the command line."""
        budget = self.scale.steps[row.budget]
        return max(1, round(budget * self.base.steps / self.scale.steps["full"]))

    @property
    def probe_steps(self) -> int:
        """Of a probe's training, in proportion likewise."""
        return max(1, round(self.scale.probe_steps * self.base.steps / self.scale.steps["full"]))

    def recipe_of(self, row: Row, seed: int = 0) -> Recipe:
        """All that decides a row's training. Rows of several tables that are trained alike have the same."""
        base, steps = self.base, self.steps(row)
        changes: dict[str, Any] = {
            "steps": steps,
            "warmup": base.warmup * steps // base.steps,
            "seed": base.seed + seed,
            **row.changes,
        }
        if not self.scale.is_world and row.learns_radii:
            changes["data.labels"] = self.places.get(row.labels, row.labels)
        made = changed(base, changes)
        adapter = made.adapter
        if self.scale.fits_periods:
            adapter = adapter.fitted_to(self.grid)
        if row.curved and self.window(row.curved) != adapter.window("middle", self.depth):
            adapter = replace(adapter, curved_blocks=self.window(row.curved))
        return replace(made, name=adapter.method, adapter=adapter)

    def window(self, which: str) -> tuple[int, int]:
        """The first, middle or last third of the blocks, or all of them: windows of one width, as in the paper."""
        return self.base.adapter.window(which, self.depth)

    def training_key(self, row: Row, seed: int = 0) -> str:
        """What a row's weights follow from: its recipe, the model, the clips, the teacher. Names do not count, nor does
        precision, which is the machine's: rows of several machines are compared."""
        record = self.recipe_of(row, seed).to_json()
        for free in ("name", "model", "every", "keep", "precision"):  # the model is named by its weights, below
            record.pop(free)
        # An option counts when it is on: what was trained before there was such an option is found.
        adapter = {key: value for key, value in record["adapter"].items() if value not in (None, False)}
        data = record["data"] | {"cache": "", "labels": _folder_key(record["data"]["labels"])}
        source = data.pop("source")
        made_of = [
            record | {"adapter": adapter, "data": data},
            self.training_model_key,
            _source_key(source),
            row.teacher_at(self.scale),
            row.seen_at(self.scale),
        ]
        return key_of(made_of)

    def trained_file(self, row: Row, seed: int = 0) -> Path:
        """Where a row's weights are, once it is trained."""
        method = self.recipe_of(row, seed).adapter.method
        return self.folder("trained", f"{method}-{self.training_key(row, seed)}", "adapter.safetensors")

    def folder(self, *parts: str) -> Path:
        return self.store.joinpath(*parts)

    @property
    def device(self) -> str:
        return "cuda" if torch.cuda.is_available() else "cpu"

    def open_model(self) -> VideoModel:
        return load_model(self.model, device=self.device)


@lru_cache(maxsize=10)
def _embedded_sizes(model: str, key: str) -> tuple[int, tuple[int, int, int], tuple[int, int, int]]:
    """Blocks, the strides of a token, and the shape of a video of an embedded model, which its file alone says."""
    opened = load_model(model)
    shape = (opened.defaults.frames, opened.defaults.height, opened.defaults.width)
    return len(self_attentions(opened.transformer)), opened.grid_for(*shape).stride, shape


def _source_key(source: str) -> Any:
    """A world is its number, a folder the files in it that name the clips."""
    if source in WORLDS:
        return WORLDS[source][0]
    return [Path(source).name, file_fingerprint(Path(source))] if Path(source).is_dir() else source


def _folder_key(place: str | None) -> str:
    """A folder of labels by its files; none by nothing."""
    if place is None:
        return ""
    return file_fingerprint(Path(place)) if Path(place).is_dir() else place


def key_of(made_of: Any) -> str:
    """Twelve letters that change when anything in it changes."""
    return hashlib.sha256(json.dumps(made_of, sort_keys=True, default=str).encode()).hexdigest()[:12]


def weights_key(path: Path | None) -> str:
    """Of an adapter's file, whole; of none, a word."""
    if path is None:
        return "none"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
