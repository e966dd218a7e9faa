"""Prompt, cameras and, if there is one, a radial map -> video.

b clip   c lt lh lw latent channel, frame, row, column   t h w video frame, row, column   l e text token, channel
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import Cost, generation_cost
from curvedray.cameras import Cameras, Lens, TokenGrid, stacked
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.formats import cameras_of_video
from curvedray.models.flow import SAMPLERS, TRAIN_TIMESTEPS, Velocity, sampling_sigmas
from curvedray.models.interface import VideoModel
from curvedray.moves.trajectory import trajectory
from curvedray.radial.interval import TEACHER_SIGMA, RadialInterval
from curvedray.radial.map import RadialMap

DEFAULT_LENS = "pinhole-70"
# callback(model, step, timestep, {"latents": ..., "clean": ...}) after each step; raise to stop.
Callback = Callable[[VideoModel, int, float, dict[str, Tensor]], Any]


@dataclass(frozen=True)
class Settings:
    """How a video is sampled; `Settings.of(model, ...)` fills what is left open with the model's own defaults."""

    frames: int
    height: int
    width: int
    steps: int
    guidance: float  # towards the text; both passes see the camera. 1: none
    camera_guidance: float  # towards the camera, away from the backbone alone. 1: none
    shift: float  # of the noise levels the sampler visits
    drop_text: bool = False  # camera guidance also guides towards the text, at no extra pass
    radial_sigma: float = TEACHER_SIGMA  # half the width, in log radius, of what a radial map says
    sampler: str = "unipc"
    seed: int = 0
    zoom: int = 1  # the video's pixels per pixel of the model's, when it is written

    @classmethod
    def of(cls, model: VideoModel, **asked: Any) -> "Settings":
        """The model's defaults, overruled by every keyword that is not None."""
        names = ("frames", "height", "width", "steps", "guidance", "camera_guidance", "drop_text", "zoom")
        own = {name: getattr(model.defaults, name) for name in names} | {"shift": model.shift}
        return cls(**(own | {name: value for name, value in asked.items() if value is not None}))

    def __post_init__(self) -> None:
        laws = [
            ("steps", self.steps >= 1, "at least one"),
            ("guidance", math.isfinite(self.guidance), "a finite number, 1 for none"),
            ("camera_guidance", math.isfinite(self.camera_guidance), "a finite number, 1 for none"),
            ("sampler", self.sampler in SAMPLERS, " or ".join(SAMPLERS)),
            ("shift", math.isfinite(self.shift) and self.shift > 0, "a positive number"),
            ("radial_sigma", math.isfinite(self.radial_sigma) and self.radial_sigma >= 0, "a number >= 0"),
            ("seed", 0 <= self.seed < 2**63, "a whole number >= 0"),
            ("zoom", 1 <= self.zoom <= 16, "a whole number from 1 to 16"),
        ]
        for name, holds, expected in laws:
            if not holds:
                raise InputError(name, expected, getattr(self, name))

    @property
    def passes(self) -> int:
        """Calls of the transformer a step: one, and one more for each kind of guidance."""
        return 1 + (self.guidance != 1) + (self.camera_guidance != 1)

    @property
    def needs_negative(self) -> bool:
        return self.guidance != 1 or (self.drop_text and self.camera_guidance != 1)


@dataclass(frozen=True, eq=False)
class Generated:
    """A video, and what was known while it was made."""

    frames: UInt8[Tensor, "t h w 3"]
    latents: Float[Tensor, "c lt lh lw"]
    cameras: Cameras  # as the model saw them
    grid: TokenGrid
    fps: float
    cost: Cost
    radii: list[dict[int, RadialInterval]] = field(default_factory=list)  # by step, then by block: the predictions


def generate(
    model: VideoModel,
    prompt: str,
    cameras: Cameras | str = "static",
    *,
    lens: Lens | str | None = None,
    adapter: Adapter | None = None,
    radial: RadialMap | None = None,
    negative_prompt: str | None = None,
    num_frames: int | None = None,
    height: int | None = None,
    width: int | None = None,
    num_inference_steps: int | None = None,
    guidance_scale: float | None = None,
    camera_guidance: float | None = None,
    drop_text: bool | None = None,
    radial_sigma: float = TEACHER_SIGMA,
    seed: int = 0,
    sampler: str = "unipc",
    shift: float | None = None,
    near: float | None = None,
    latents: Float[Tensor, "c lt lh lw"] | None = None,
    prompt_embeds: Float[Tensor, "1 l e"] | None = None,
    negative_prompt_embeds: Float[Tensor, "1 l e"] | None = None,
    callback_on_step_end: Callback | None = None,
) -> Generated:
    """A video of `prompt` seen through `cameras`: Cameras, or moves in words such as "orbit left 40deg".

    Names follow diffusers' WanPipeline. The adapter must be attached to the model's transformer. A radial map
    replaces the predicted radii where it is valid, for an adapter trained with MixForcing. `near`, in metres, turns
    metric cameras into the near distances that models are trained in; a radial map brings its own.
    """
    settings = Settings.of(
        model,
        frames=num_frames,
        height=height,
        width=width,
        steps=num_inference_steps,
        guidance=guidance_scale,
        camera_guidance=camera_guidance,
        drop_text=drop_text,
        radial_sigma=radial_sigma,
        sampler=sampler,
        shift=shift,
        seed=seed,
    )
    grid = model.grid_for(settings.frames, settings.height, settings.width)
    seen = cameras_for(model, cameras, lens, grid, near if radial is None else radial.near)
    if adapter is not None and not adapter.is_attached_to(model.transformer):
        fix = "Call adapter.attach(model.transformer) first."
        raise InputError("adapter", "one attached to this model", "one that is not, and would not be heard", fix)
    if radial is not None:
        check_radial(adapter)
    given = None if radial is None else radial.on(grid, settings.radial_sigma)
    text = model.encode_text([prompt]) if prompt_embeds is None else prompt_embeds
    unwanted = negative_prompt_embeds
    if unwanted is None and settings.needs_negative:
        unwanted = model.encode_text([model.defaults.negative if negative_prompt is None else negative_prompt])

    radii: list[dict[int, RadialInterval]] = []
    noise = noise_for(model, grid, settings.seed) if latents is None else latents
    velocity = guided_velocity(model, adapter, settings, text, unwanted, radii)
    velocity = _reporting(velocity, model, callback_on_step_end)
    view = adapter.viewing(seen, grid=grid, radial=given) if adapter is not None else nullcontext()
    with view:
        clean, frames = _sampled(model, settings, velocity, noise[None])
    cost = generation_cost(model, adapter, grid, settings.steps, settings.passes)
    return Generated(frames[0], clean[0].cpu(), seen, grid, seen.fps or float(model.defaults.fps), cost, radii)


def generate_batch(
    model: VideoModel,
    prompts: Sequence[str],
    cameras: Sequence[Cameras],
    seeds: Sequence[int],
    *,
    adapter: Adapter | None = None,
    radial: tuple[RadialInterval, Bool[Tensor, "b n"]] | None = None,
    near: Sequence[float | None] | None = None,
    **asked: Any,
) -> UInt8[Tensor, "b t h w 3"]:
    """Many videos at once, for experiments: what `generate` makes of each, but for rounding, and much faster on small
    models. `asked` is for `Settings.of`; `near` is one per clip.
    """
    settings = Settings.of(model, **asked)
    grid = model.grid_for(settings.frames, settings.height, settings.width)
    nears = near or [None] * len(cameras)
    seen = [cameras_for(model, path, None, grid, own) for path, own in zip(cameras, nears, strict=True)]
    unwanted = model.encode_text([model.defaults.negative] * len(prompts)) if settings.needs_negative else None
    velocity = guided_velocity(model, adapter, settings, model.encode_text(list(prompts)), unwanted, [])
    view = adapter.viewing(stacked(seen), grid=grid, radial=radial) if adapter is not None else nullcontext()
    with view:
        return _sampled(model, settings, velocity, torch.stack([noise_for(model, grid, seed) for seed in seeds]))[1]


@torch.no_grad()
def _sampled(
    model: VideoModel, settings: Settings, velocity: Velocity, noise: Float[Tensor, "b c lt lh lw"]
) -> tuple[Float[Tensor, "b c lt lh lw"], UInt8[Tensor, "b t h w 3"]]:
    """Noise -> clean latents, and their frames as bytes."""
    sigmas = sampling_sigmas(settings.steps, settings.shift)
    clean = SAMPLERS[settings.sampler](velocity, noise.to(model.device), sigmas)
    pixels = ((model.decode(clean).float() + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
    return clean, pixels.permute(0, 2, 3, 4, 1).cpu()


def noise_for(model: VideoModel, grid: TokenGrid, seed: int) -> Float[Tensor, "c lt lh lw"]:
    """The noise of a seed, drawn on the CPU so that it is the same for every device."""
    return torch.randn(model.latent_shape(grid), generator=torch.Generator().manual_seed(seed))


def guided_velocity(
    model: VideoModel,
    adapter: Adapter | None,
    settings: Settings,
    text: Float[Tensor, "b l e"],
    unwanted: Float[Tensor, "b l e"] | None,
    radii: list[dict[int, RadialInterval]],
) -> Velocity:
    """v + (g - 1)(v - v_unwanted) + (c - 1)(v - v_off); alone, each kind of guidance is the familiar v' + g (v - v').

    v sees prompt and camera, v_unwanted the negative prompt and the camera, v_off no camera: with the adapter off the
    network is the backbone, so no dropout was needed in training. What the adapter predicts goes to `radii`.
    """
    g, c = settings.guidance, settings.camera_guidance

    def velocity(x: Tensor, sigma: Tensor) -> Tensor:
        level = sigma.to(x).expand(len(x))
        out = wanted = model.velocity(x, level, text)
        if adapter is not None:
            radii.append({block: interval.to("cpu") for block, interval in adapter.predictions.items()})
        if g != 1:
            assert unwanted is not None, "guidance has a negative prompt"
            out = out + (g - 1) * (wanted - model.velocity(x, level, unwanted))
        if c != 1 and adapter is not None:
            with adapter.disabled():
                off = model.velocity(x, level, text if unwanted is None or not settings.drop_text else unwanted)
            out = out + (c - 1) * (wanted - off)
        return out

    return velocity


def cameras_for(
    model: VideoModel,
    cameras: Cameras | Path | str,
    lens: Lens | str | None,
    grid: TokenGrid,
    near: float | None = None,
) -> Cameras:
    """Cameras in near distances, with a lens of the video's size; what cannot be made so is refused, never guessed.

    They are given as they are, as moves in one line (a str), or as the path of a camera file.
    """
    width, height = grid.cols * grid.stride[2], grid.rows * grid.stride[1]
    if isinstance(cameras, Path):
        cameras, lens = cameras_of_video(cameras, width, height, lens=lens), None
    glass = named_lens(lens, width, height) if isinstance(lens, str) else lens
    if isinstance(cameras, str):
        glass = (glass or named_lens(DEFAULT_LENS, width, height)).sized(width, height)
        cameras = trajectory(cameras, glass, grid.video_frames, near=near, fps=float(model.defaults.fps))
    elif glass is not None:
        cameras = replace(cameras, lens=glass)
    if cameras.batch_shape:
        raise InputError("cameras", "one trajectory (T, 4, 4)", f"a batch {cameras.batch_shape}")
    if cameras.unit == "metric":
        if near is None:
            fix = "Give the scene's near distance in metres (near=, --near)."
            raise InputError("cameras", "a trajectory in near distances", "one in metres", fix)
        cameras = cameras.scaled(near)
    cameras.latent_frames(grid)  # refuses a trajectory of the wrong length
    return replace(cameras, lens=cameras.lens.sized(width, height))


def check_radial(adapter: Adapter | None) -> None:
    """Only an adapter trained with MixForcing knows what to do with a map."""
    if adapter is None or not adapter.accepts_radial_maps:
        got = "none" if adapter is None else f"one of method {adapter.config.method} trained without it"
        fix = "Train one with mixforcing, or leave the map out."
        raise InputError("radial map", "an adapter trained with MixForcing", got, fix)


def _reporting(velocity: Velocity, model: VideoModel, callback: Callback | None) -> Velocity:
    """Tell the callback after each evaluation; samplers make one per step."""
    if callback is None:
        return velocity
    done = 0

    def reported(x: Tensor, sigma: Tensor) -> Tensor:
        nonlocal done
        out = velocity(x, sigma)
        callback(model, done, float(sigma) * TRAIN_TIMESTEPS, {"latents": x, "clean": x - sigma.to(x) * out})
        done += 1
        return out

    return reported
