"""Distances from a network that knows pinhole pictures: through any lens, by views that are cut out and merged.

t frame   h, w pixels
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.evaluate.estimators.protocol import Estimate, Frames
from curvedray.evaluate.scores import Failure
from curvedray.radial.views import covering_views, cut, is_one_view, merge

Depth = Callable[[UInt8[Tensor, "t h w 3"], Lens], Float[Tensor, "t h w"]]  # metres along the axis, NaN where in doubt
VIEW_SIDE = 256  # pixels of a view


@dataclass(frozen=True)
class Perspective:
    """An estimator of distances around a network's depth of pinhole pictures. Its answer is dense, in metres."""

    depth: Depth
    name: str
    version: str
    licence: str
    floor: str = "not measured here"
    every_frame: bool = True

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        if lens is None:
            return Failure(f"{self.name} sees depth along the axis; a lens is needed to turn it into distances", clip)
        if lens.batch_shape:
            return Failure(f"{self.name} takes one lens for the whole clip; this one changes", clip)
        frames = torch.from_numpy(video)
        lens = lens.to("cpu", torch.float32)
        with torch.no_grad():
            if is_one_view(lens):
                rays, exists = lens.rays()
                radius = self.depth(frames, lens) / rays[..., 2]
                return Estimate(radial=torch.where(exists, radius, torch.nan).double().numpy())
            views = covering_views(lens, VIEW_SIDE)
            depths = [self.depth(cut(frames, lens, view), view.lens) for view in views]
            radius, known = merge(depths, views, lens)
        note = f"merged from {len(views)} pinhole views"
        return Estimate(radial=np.where(known.numpy(), radius.double().numpy(), np.nan), note=note)
