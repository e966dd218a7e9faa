"""An estimator whose answers are kept as files, named by the video's pixels, the lens and who answered.

Estimating is the long half of scoring at Wan's size; a metric that changes is computed again from what is kept.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.estimators import Estimate, Estimator
from curvedray.evaluate.estimators.protocol import Frames, UpAndLens
from curvedray.evaluate.scores import Failure
from curvedray.files import write_tensors
from curvedray.inputs import is_file, parsed_json, read_tensors
from curvedray.paper.setting import key_of

ARRAYS = ("poses", "found", "radial")
WORDS = ("note", "suspect", "reprojection", "inliers")


@dataclass(frozen=True)
class KeptEstimates:
    """The same estimator (`evaluate.estimators.protocol`), asked once for each video."""

    judge: Estimator
    folder: Path

    @property
    def name(self) -> str:
        return self.judge.name

    @property
    def version(self) -> str:
        return self.judge.version

    @property
    def floor(self) -> str:
        return self.judge.floor

    @property
    def every_frame(self) -> bool:
        return self.judge.every_frame

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        pixels = hashlib.sha256(np.ascontiguousarray(video).tobytes()).hexdigest()
        # Estimators that read poses recovered before go by the clip's name, so it counts too.
        asked = [self.name, self.version, video.shape, pixels, None if lens is None else _lens_record(lens), clip]
        path = self.folder / f"{key_of(asked)}.safetensors"
        if is_file(path):
            try:
                return read_estimate(path)
            except InputError:
                pass  # damaged: asked again
        answer = self.judge.estimate(video, lens, clip)
        write_estimate(answer, path)
        return answer


def write_estimate(answer: Estimate | Failure, path: Path) -> None:
    """Arrays as tensors, all else in the header; a failure is a header alone."""
    tensors: dict[str, Tensor] = {"is_whole": torch.ones(1)}
    if isinstance(answer, Failure):
        record: dict[str, Any] = {"failure": asdict(answer)}
    else:
        record = {name: getattr(answer, name) for name in WORDS}
        for name in ARRAYS:
            array = getattr(answer, name)
            if array is not None:
                tensors[name] = torch.from_numpy(np.ascontiguousarray(array))
        if answer.view is not None:
            tensors["up"] = torch.from_numpy(np.ascontiguousarray(answer.view.up))
            record["lens"] = _lens_record(answer.view.lens)
    write_tensors(path, tensors, {"estimate": json.dumps(record, sort_keys=True)})


def read_estimate(path: Path) -> Estimate | Failure:
    tensors, header = read_tensors(path, "a kept estimate")
    record = parsed_json(header.get("estimate", "null"), path.name, "a header of write_estimate")
    if not isinstance(record, dict):
        raise InputError(path.name, "a kept estimate", "another file")
    if "failure" in record:
        return Failure(**record["failure"])
    arrays: dict[str, Any] = {name: tensors[name].numpy() if name in tensors else None for name in ARRAYS}
    view = UpAndLens(tensors["up"].numpy(), _lens_of(record["lens"])) if "lens" in record else None
    return Estimate(view=view, **arrays, **{name: record[name] for name in WORDS})


def _lens_record(lens: Lens | Radial) -> dict[str, Any]:
    if isinstance(lens, Radial):
        return {"radial": asdict(lens)}
    numbers = {name: getattr(lens, name).double().tolist() for name in ("focal", "center", "xi")}
    return {"ucm": {**numbers, "size": lens.size, "max_angle": lens.max_angle}}


def _lens_of(record: dict[str, Any]) -> Lens | Radial:
    if "radial" in record:
        return Radial(**record["radial"] | {"size": tuple(record["radial"]["size"])})
    ucm = record["ucm"]
    focal, center, xi = (torch.tensor(ucm[name], dtype=torch.float64) for name in ("focal", "center", "xi"))
    return Lens(focal, center, xi, tuple(ucm["size"]), ucm["max_angle"])
