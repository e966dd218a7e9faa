"""What is asked of a model, with everything resolved: settings, words it was trained on, cameras on its pixels."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.generation.notices import notices, understood
from curvedray.generation.settings import LONGEST_PATH, Settings, check_near
from curvedray.models.interface import VideoModel
from curvedray.moves.trajectory import fitted_to, trajectory
from curvedray.radial.map import RadialMap, check_scale

CameraPath = Cameras | str | Tensor | np.ndarray  # cameras, moves in words, or poses (t 4 4), world from camera


@dataclass(frozen=True, eq=False)
class Shot:
    """Everything that decides a video, but for the weights, the map and the machine."""

    prompt: str
    negative: str
    settings: Settings
    cameras: Cameras  # in near distances, on the video's pixels
    notices: tuple[str, ...] = ()  # to be said before filming: what was understood, what the model never saw

    @classmethod
    def of(
        cls,
        model: VideoModel,
        prompt: str,
        cameras: CameraPath = "static",
        *,
        lens: Lens | str | None = None,
        negative: str | None = None,
        near: float | None = None,
        fps: float | None = None,
        fit: bool = False,
        **settings: Any,
    ) -> "Shot":
        """Resolve what a user asks for. `settings` overrule the model's defaults.

        With `fit` a path of another length or image is resampled and refitted, and a notice says so; without it, it is
        refused.
        """
        chosen = Settings.of(model, **settings)
        grid = model.grid_for(chosen.frames, chosen.height, chosen.width)
        said: list[str] = []
        if fit and isinstance(cameras, Cameras):
            lens_is_new = lens is not None  # a new lens is made for the video's image, so only the path is fitted
            image = cameras.lens.size if lens_is_new else (chosen.width, chosen.height)
            cameras, said = fitted_to(cameras, chosen.frames, *image)
        text, understanding = understood(model, prompt)
        path = cameras_for(model, cameras, lens, grid, near, fps).to("cpu")
        said += [*understanding, *notices(model, chosen, path)]
        negative = model.defaults.negative if negative is None else negative
        return cls(text, negative, chosen, path, tuple(said))

    def grid(self, model: VideoModel) -> TokenGrid:
        return model.grid_for(self.settings.frames, self.settings.height, self.settings.width)


def near_of(cameras: CameraPath, near: float | None, map: RadialMap | None) -> float | None:
    """What divides the cameras' translations: a map's near distance, in metres, or `near`, in the cameras' own unit.

    Poses of an unknown scale beside a map need their own; training refuses them likewise. None is ignored.
    """
    check_near(near)
    unit = "near" if isinstance(cameras, str) else cameras.unit if isinstance(cameras, Cameras) else "arbitrary"
    if map is None:
        if isinstance(cameras, Cameras) and unit == "near" and near is not None:
            raise InputError("near", "none, as the cameras are in near distances already", f"{near:g}")
        return near
    if unit == "arbitrary" and map.unit != "cameras":
        check_scale("cameras", unit, near, map)
        return near
    if unit == "metric" and map.unit == "cameras":
        fix = "Give the map the cameras that it was triangulated between, or a map in metres."
        raise InputError("cameras", "those of the map, in whose unit its distances are", "others, in metres", fix)
    if near is not None and not math.isclose(near, map.near, rel_tol=1e-6):
        raise InputError("near", f"the map's own, {map.near:g} m", f"{near:g}", "Read the map with this near instead.")
    return map.near


def cameras_for(
    model: VideoModel,
    cameras: CameraPath,
    lens: Lens | str | None,
    grid: TokenGrid,
    near: float | None = None,
    fps: float | None = None,
) -> Cameras:
    """Cameras in near distances, with a lens of the video's size; what cannot be made so is refused, never guessed."""
    check_near(near)
    width, height = grid.cols * grid.stride[2], grid.rows * grid.stride[1]
    wanted = named_lens(lens, width, height) if isinstance(lens, str) else lens
    if isinstance(cameras, str):
        wanted = (wanted or named_lens(USUAL_LENS, width, height)).sized(width, height)
        rate = float(model.defaults.fps) if fps is None else fps
        cameras = trajectory(cameras, wanted, grid.video_frames, near=near, fps=rate)
    elif not isinstance(cameras, Cameras):
        poses = torch.as_tensor(cameras, dtype=torch.float32)
        cameras = Cameras(wanted or named_lens(USUAL_LENS, width, height), poses)
    elif wanted is not None:
        cameras = replace(cameras, lens=wanted)
    if cameras.batch_shape:
        raise InputError("cameras", "one trajectory (T, 4, 4)", f"a batch {cameras.batch_shape}")
    if cameras.unit == "arbitrary" and near is not None:  # a near distance in the unit of the poses
        cameras = cameras.scaled(near)
    if cameras.unit == "metric":
        if near is None:
            fix = "Give the scene's near distance in metres: near=."
            raise InputError("cameras", "a trajectory in near distances", "one in metres", fix)
        cameras = cameras.scaled(near)
    cameras.latent_frames(grid)  # refuses a trajectory of the wrong length
    farthest = cameras.relative_to_first().world_from_camera[..., :3, 3].norm(dim=-1).max().item()
    if not farthest <= LONGEST_PATH:
        raise InputError("cameras", f"a path within {LONGEST_PATH:g} near distances", f"one of {farthest:.3g}")
    cameras = cameras if fps is None else replace(cameras, fps=float(fps))
    return replace(cameras, lens=cameras.lens.sized(width, height))
