"""What takes share in the worker: the model, its adapters and the estimators, loaded once."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from curvedray.app.maps import Maps
from curvedray.app.uploads import Uploads
from curvedray.app.worker_channel import Channel
from curvedray.evaluate.estimators import Estimator
from curvedray.evaluate.estimators.registry import make_estimator
from curvedray.generation.parts import Parts, Source, adapter_file, load_parts
from curvedray.models.interface import VideoModel
from curvedray.models.open import EMBEDDED_NAMES, load_model


class WorkerModels:
    """One model at a time, an adapter attached to it, and whatever else takes share."""

    def __init__(self, folder: Path, channel: Channel):
        self.folder, self.channel = folder, channel
        self.uploads = Uploads(folder / "uploads")
        self.maps = Maps(folder / "maps")
        self.model: VideoModel | None = None
        self.model_name = ""
        self.parts: Parts | None = None
        self.adapter: Path | None = None

    def warm_up(self) -> None:
        """Load what the first take will want."""
        self.parts_for("embedded", None)
        estimator("embedded")

    def parts_for(self, model: str, adapter: str | None) -> Parts:
        """The model with this adapter attached; what was loaded for the take before is used again."""
        name = "" if model in EMBEDDED_NAMES else model
        wanted = adapter_file(name, adapter)
        if self.model is not None and self.parts is not None and (self.model_name, self.adapter) == (name, wanted):
            return self.parts
        if self.parts is not None and self.parts.adapter is not None:
            self.parts.adapter.detach()
        self.parts = None
        if self.model is None or self.model_name != name:
            self.model = None  # two large ones would not fit
            self.model, self.model_name = load_model(name), name
        self.parts = load_parts(self.model, "none" if wanted is None else wanted)
        self.adapter = wanted
        return self.parts


def with_map(parts: Parts, map: Any, file: Path, name: str) -> Parts:
    """The parts with a map, which a recipe names as the command line would: beside the video."""
    made = replace(parts, radial=map, radial_source=replace(Source.of(file), path=name))
    made.check_map()
    return made


@lru_cache(maxsize=2)
def estimator(name: str) -> Estimator:
    return make_estimator(name)
