"""UniK3D: metric distance along every pixel's ray. Licensed for non-commercial use only, so it is opt-in.

t frame   h, w pixels
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Frames
from curvedray.evaluate.scores import Failure

INSTALL = "Install it with: pip install git+https://github.com/lpiccinelli-eth/UniK3D"
NOTICE = "UniK3D and its weights are CC BY-NC 4.0: for non-commercial use only."
WEIGHTS = "lpiccinelli/unik3d-vitl"


@dataclass(frozen=True)
class UniK3D:
    """Distances from a loaded UniK3D model, told the lens where it is known."""

    model: Any
    mei: Any  # unik3d.utils.camera.MEI: fx fy cx cy k1 k2 p1 p2 xi, of which UCM is the undistorted case
    version: str
    name: str = "unik3d"
    every_frame: bool = False
    floor: str = f"not measured here. {NOTICE}"
    licence: str = "CC BY-NC 4.0"

    @classmethod
    def load(cls, accept_noncommercial: bool = False) -> "UniK3D":
        """The ViT-L weights, which UniK3D itself fetches on first use, for those who accept the licence."""
        if not accept_noncommercial:
            raise InputError(
                "estimator unik3d", "its licence accepted", "it was not", f"{NOTICE} Add --accept-noncommercial."
            )
        try:
            from unik3d.models import UniK3D as Model  # type: ignore[import-not-found,unused-ignore]
            from unik3d.utils.camera import MEI  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise InputError("estimator unik3d", "the package unik3d", "it is not installed", INSTALL) from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(Model.from_pretrained(WEIGHTS).to(device).eval(), MEI, WEIGHTS)

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        maps = []
        for index, frame in enumerate(video):
            one = lens[index] if lens is not None and lens.batch_shape else lens
            camera = None if one is None else self.mei(params=mei_parameters(one))
            device = next(iter(self.model.parameters()), torch.zeros(0)).device
            maps.append(read_result(self.model.infer(torch.from_numpy(frame).permute(2, 0, 1).to(device), camera)))
        radial = np.stack(maps)
        if radial.shape != video.shape[:3]:
            return Failure(f"UniK3D answered with maps of {radial.shape[1:]} for frames of {video.shape[1:3]}")
        return Estimate(radial=radial)


def mei_parameters(lens: Lens) -> Float[torch.Tensor, "1 9"]:
    """fx, fy, cx, cy, no distortion, xi."""
    return torch.cat([lens.focal, lens.center, torch.zeros(4), lens.xi.reshape(1)]).float()[None]


def read_result(result: dict[str, torch.Tensor]) -> Float[np.ndarray, "h w"]:
    """UniK3D's `points` (1, 3, H, W), in the camera's frame -> distance; NaN where it is not finite and positive."""
    radius = result["points"][0].norm(dim=0).double().cpu().numpy()
    return np.where(np.isfinite(radius) & (radius > 0), radius, np.nan)
