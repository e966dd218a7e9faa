"""GeoCalib: the lens (radial model, shared by the clip) and the up direction of every frame.

The paper's protocol: distorted weights, radial model, shared intrinsics, every 4th frame, the generated clip's estimate
compared with that of the reference clip.

    t frame   h, w pixels
"""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import torch

from curvedray.cameras import Lens
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Frames, UpAndLens
from curvedray.evaluate.scores import Failure

INSTALL = "Install it with: pip install git+https://github.com/cvg/GeoCalib"


@dataclass(frozen=True)
class GeoCalib:
    """Lens and horizon from a loaded GeoCalib model."""

    model: Any
    version: str
    name: str = "geocalib"
    every_frame: bool = False
    floor: str = "not measured here; k1 and k2 are not identifiable beyond about 100 degrees"

    @classmethod
    def load(cls) -> "GeoCalib":
        """The distorted weights, which GeoCalib itself fetches on first use."""
        try:
            from geocalib import GeoCalib as Model  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise InputError("estimator geocalib", "the package geocalib", "it is not installed", INSTALL) from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(Model(weights="distorted").to(device), f"geocalib {_version('geocalib')}, distorted weights, radial")

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        images = torch.from_numpy(video).permute(0, 3, 1, 2).float() / 255
        device = next(iter(self.model.parameters()), images).device
        result = self.model.calibrate(images.to(device), camera_model="radial", shared_intrinsics=True)
        return read_result(result, (video.shape[2], video.shape[1]), len(video))


def read_result(result: dict[str, Any], size: tuple[int, int], frames: int) -> Estimate | Failure:
    """GeoCalib's answer: `camera` with f, c (N, 2), k1, k2 (N) in pixels, `gravity.vec3d` (N, 3)."""
    camera = result["camera"]
    up = result["gravity"].vec3d.detach().double().cpu().numpy().reshape(-1, 3)
    focal, center = (np.asarray(x.detach().double().cpu()).reshape(-1, 2) for x in (camera.f, camera.c))
    k1, k2 = (float(np.asarray(x.detach().cpu()).reshape(-1)[0]) for x in (camera.k1, camera.k2))
    if len(up) != frames or not (np.isfinite(up).all() and np.isfinite(focal).all() and np.isfinite([k1, k2]).all()):
        return Failure(f"GeoCalib answered for {len(up)} of {frames} frames, or with numbers that are not finite")
    f = float(focal[0].mean())
    lens = Radial(f, f, float(center[0, 0]), float(center[0, 1]), k1, k2, size)
    return Estimate(view=UpAndLens(up, lens))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
