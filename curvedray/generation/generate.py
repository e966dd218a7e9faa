"""Prompt, cameras and, if there is one, a radial map -> video, under the names of diffusers' WanPipeline.

b clip   c lt lh lw latent channel, frame, row, column   t h w video frame, row, column   l e text token, channel
"""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.cameras import Cameras, Lens, stacked
from curvedray.errors import InputError
from curvedray.generation.parts import Parts, load_parts
from curvedray.generation.sampling import Callback, Generated, Given, film, guided_velocity, noise_for, sampled
from curvedray.generation.settings import Settings
from curvedray.generation.shot import CameraPath, Shot, cameras_for, near_of
from curvedray.models.interface import VideoModel
from curvedray.radial.interval import TEACHER_SIGMA, RadialInterval
from curvedray.radial.map import RadialMap

log = logging.getLogger(__name__)


def generate(
    model: VideoModel | str,
    prompt: str,
    cameras: CameraPath = "static",
    *,
    lens: Lens | str | None = None,
    adapter: Adapter | str | Path | None = None,
    radial: RadialMap | None = None,
    negative_prompt: str | None = None,
    num_frames: int | None = None,
    height: int | None = None,
    width: int | None = None,
    num_inference_steps: int | None = None,
    guidance_scale: float | None = None,
    camera_guidance: float | None = None,
    map_guidance: float | None = None,
    block_guidance: float | None = None,
    left_out: int | None = None,
    drop_text: bool | None = None,
    radial_sigma: float = TEACHER_SIGMA,
    seed: int = 0,
    sampler: str = "unipc",
    shift: float | None = None,
    near: float | None = None,
    fps: float | None = None,
    latents: Float[Tensor, "c lt lh lw"] | None = None,
    prompt_embeds: Float[Tensor, "1 l e"] | None = None,
    negative_prompt_embeds: Float[Tensor, "1 l e"] | None = None,
    callback_on_step_end: Callback | None = None,
) -> Generated:
    """A video of `prompt` seen through `cameras`: Cameras, moves in words such as "orbit left 40deg", or poses (t 4 4).

    Names follow diffusers' WanPipeline. A model's name ("embedded", a Wan folder or hub id) and an adapter's file are
    loaded for this one video; to make many, load them once (`load_parts`): an Adapter must be attached to the model's
    transformer. A radial map replaces the predicted radii where it is valid, for an adapter trained with MixForcing.
    `near`, in the cameras' unit, turns their translations into the near distances that models are trained in; a map
    brings its own, in metres, and beside it cameras of an unknown scale need theirs.
    """
    if isinstance(model, str) or isinstance(adapter, str | Path):
        if isinstance(adapter, Adapter):
            raise InputError("adapter", "a file's name beside a model's name", "an adapter of another model")
        own = load_parts(model, adapter)
        model, adapter = own.model, own.adapter
        borrowed = adapter
    else:
        borrowed = None
    try:
        shot = Shot.of(
            model,
            prompt,
            cameras,
            lens=lens,
            negative=negative_prompt,
            near=near_of(cameras, near, radial),
            fps=fps,
            frames=num_frames,
            height=height,
            width=width,
            steps=num_inference_steps,
            guidance=guidance_scale,
            camera_guidance=camera_guidance,
            map_guidance=map_guidance,
            block_guidance=block_guidance,
            left_out=left_out,
            drop_text=drop_text,
            radial_sigma=radial_sigma,
            sampler=sampler,
            shift=shift,
            seed=seed,
        )
        for notice in shot.notices:
            log.warning(notice)
        given = Given(latents, prompt_embeds, negative_prompt_embeds)
        return film(Parts(model, adapter, radial), shot, callback_on_step_end, given)
    finally:
        if borrowed is not None:
            borrowed.detach()


def generate_batch(
    model: VideoModel,
    prompts: Sequence[str],
    cameras: Sequence[Cameras],
    seeds: Sequence[int],
    *,
    adapter: Adapter | None = None,
    radial: tuple[RadialInterval, Bool[Tensor, "b n"]] | None = None,
    near: Sequence[float | None] | None = None,
    radii: list[dict[int, RadialInterval]] | None = None,
    **settings: Any,
) -> UInt8[Tensor, "b t h w 3"]:
    """Many videos at once, for experiments: what `generate` makes of each, but for rounding, and much faster on small
    models. `settings` are for `Settings.of`; `near` is one per clip; the radii that each step predicts go to `radii`.
    """
    chosen = Settings.of(model, **settings)
    grid = model.grid_for(chosen.frames, chosen.height, chosen.width)
    nears = near or [None] * len(cameras)
    seen = [cameras_for(model, path, None, grid, own) for path, own in zip(cameras, nears, strict=True)]
    negative = model.encode_text([model.defaults.negative] * len(prompts)) if chosen.needs_negative else None
    velocity = guided_velocity(
        model, adapter, chosen, model.encode_text(list(prompts)), negative, [] if radii is None else radii
    )
    view = adapter.viewing(stacked(seen), grid=grid, radial=radial) if adapter is not None else nullcontext()
    with view:
        return sampled(model, chosen, velocity, torch.stack([noise_for(model, grid, seed) for seed in seeds]))[1]
