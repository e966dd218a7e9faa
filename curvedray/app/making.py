"""How the worker makes a take: it keeps the model, the adapters and the estimators that it has loaded."""

import logging
import traceback
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from curvedray.app.maps import Maps
from curvedray.app.uploads import Uploads
from curvedray.app.worker import Line
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimator
from curvedray.evaluate.estimators.registry import make_estimator
from curvedray.extras import missing_extra
from curvedray.generation.parts import Parts, Source, adapter_file, load_parts
from curvedray.models.interface import VideoModel
from curvedray.models.open import EMBEDDED_NAMES, load_model

log = logging.getLogger(__name__)


class Maker:
    """One model at a time, an adapter attached to it, and whatever else takes share."""

    def __init__(self, folder: Path, line: Line):
        self.folder, self.line = folder, line
        self.uploads = Uploads(folder / "uploads")
        self.maps = Maps(folder / "maps")
        self.model: VideoModel | None = None
        self.model_name = ""
        self.parts: Parts | None = None
        self.adapter: Path | None = None

    def warm_up(self) -> None:
        """Load what the first take will want."""
        self.parts_for("embedded", None, follows_map=False)
        estimator("embedded")

    def parts_for(self, model: str, adapter: str | None, follows_map: bool) -> Parts:
        """The model with this adapter attached; what was loaded for the take before is used again."""
        name = "" if model in EMBEDDED_NAMES else model
        wanted = adapter_file(name, adapter, follows_map)
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

    def make(self, kind: str, take: str, asked: dict[str, Any]) -> None:
        from curvedray.app.filming import film_take
        from curvedray.app.footage import score_take, transfer_take

        making = {"film": film_take, "score": score_take, "transfer": transfer_take}[kind]
        making(self, self.folder / "takes" / take, asked)


def with_map(parts: Parts, map: Any, file: Path, name: str) -> Parts:
    """The parts with a map, which a recipe names as the command line would: beside the video."""
    made = replace(parts, radial=map, radial_source=replace(Source.of(file), path=name))
    made.check_map()
    return made


@lru_cache(maxsize=2)
def estimator(name: str) -> Estimator:
    return make_estimator(name)


def failure(error: Exception) -> str:
    """What went wrong, in a sentence; a bug goes to the terminal as well."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)) is not None:
        return str(missing)
    if isinstance(error, MemoryError) or "out of memory" in str(error).lower():
        return "There is not enough memory for this; ask for fewer frames or a smaller picture."
    log.error("%s", "".join(traceback.format_exception(error)))
    return f"The studio has a bug here: {type(error).__name__}. The terminal says where."
