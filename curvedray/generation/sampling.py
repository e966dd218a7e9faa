"""Parts and a shot -> frames: the core of generation, on values alone. `generate` and the command both end here.

b clip   c lt lh lw latent channel, frame, row, column   t h w video frame, row, column   l e text token, channel
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.cost import Cost, generation_cost
from curvedray.cameras import Cameras, TokenGrid
from curvedray.errors import InputError
from curvedray.generation.parts import Parts
from curvedray.generation.settings import Settings
from curvedray.generation.shot import Shot
from curvedray.media.pixels import frames_from_video
from curvedray.models.flow import SAMPLERS, TRAIN_TIMESTEPS, Velocity, sampling_sigmas
from curvedray.models.interface import VideoModel, without_block
from curvedray.radial.interval import RadialInterval

# callback(model, step, timestep, {"latents": ..., "clean": ...}) after each step; raise to stop.
Callback = Callable[[VideoModel, int, float, dict[str, Tensor]], Any]


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


@dataclass(frozen=True, eq=False)
class Given:
    """What a caller has at hand already, in place of what film would compute."""

    noise: Float[Tensor, "c lt lh lw"] | None = None
    text: Float[Tensor, "1 l e"] | None = None
    negative: Float[Tensor, "1 l e"] | None = None


def film(parts: Parts, shot: Shot, callback: Callback | None = None, given: Given | None = None) -> Generated:
    """The shot's prompt seen through its cameras; a map in `parts` replaces the predicted radii where it is valid."""
    model, adapter, settings, given = parts.model, parts.adapter, shot.settings, given or Given()
    grid = shot.grid(model)
    if adapter is not None and not adapter.is_attached_to(model.transformer):
        fix = "Call adapter.attach(model.transformer) first."
        raise InputError("adapter", "one attached to this model", "one that is not, and would change nothing", fix)
    parts.check_map()
    if settings.map_guidance != 1 and parts.radial is None:
        fix = "Give a map (--radial, --blocks), or leave map guidance at 1."
        raise InputError("map guidance", "a radial map to guide towards", "none", fix)
    radial = None if parts.radial is None else parts.radial.on(grid, settings.radial_sigma)
    text = model.encode_text([shot.prompt]) if given.text is None else given.text
    negative = given.negative
    if negative is None and settings.needs_negative:
        negative = model.encode_text([shot.negative])
    radii: list[dict[int, RadialInterval]] = []
    noise = noise_for(model, grid, settings.seed) if given.noise is None else given.noise
    velocity = guided_velocity(model, adapter, settings, text, negative, radii)
    velocity = _reporting(_finite(velocity, parts, settings), model, callback)
    view = adapter.viewing(shot.cameras, grid=grid, radial=radial) if adapter is not None else nullcontext()
    with view:
        clean, frames = sampled(model, settings, velocity, noise[None])
    fps = shot.cameras.fps or float(model.defaults.fps)
    return Generated(frames[0], clean[0].cpu(), shot.cameras, grid, fps, cost_of(parts, shot), radii)


def cost_of(parts: Parts, shot: Shot) -> Cost:
    """What filming a shot takes, known before it starts."""
    settings = shot.settings
    passes = settings.passes(parts.adapter is not None)
    return generation_cost(parts.model, parts.adapter, shot.grid(parts.model), settings.steps, passes)


@torch.no_grad()
def sampled(
    model: VideoModel, settings: Settings, velocity: Velocity, noise: Float[Tensor, "b c lt lh lw"]
) -> tuple[Float[Tensor, "b c lt lh lw"], UInt8[Tensor, "b t h w 3"]]:
    """Noise -> clean latents, and their frames as bytes."""
    sigmas = sampling_sigmas(settings.steps, settings.shift)
    clean = SAMPLERS[settings.sampler](velocity, noise.to(model.device), sigmas)
    video = model.decode(clean)
    for what, values in (("latents", clean), ("pixels", video)):
        if not torch.isfinite(values).all():
            raise InputError(f"the video's {what}", "finite numbers", "NaN or infinity", "Are the weights sound?")
    return clean, frames_from_video(video).cpu()


def noise_for(model: VideoModel, grid: TokenGrid, seed: int) -> Float[Tensor, "c lt lh lw"]:
    """The noise of a seed, drawn on the CPU so that it is the same for every device."""
    return torch.randn(model.latent_shape(grid), generator=torch.Generator().manual_seed(seed))


def guided_velocity(
    model: VideoModel,
    adapter: Adapter | None,
    settings: Settings,
    text: Float[Tensor, "b l e"],
    negative: Float[Tensor, "b l e"] | None,
    radii: list[dict[int, RadialInterval]],
) -> Velocity:
    """v + (g - 1)(v - v_negative) + (c - 1)(v - v_off) + (m - 1)(v - v_free) + (b - 1)(v - v_weak).

    Each term alone is the familiar v' + g (v - v').

    v sees prompt, camera and radial map, v_negative the negative prompt in place of the prompt, v_off no camera: with
    the adapter off the network is the backbone, so no dropout was needed in training. v_free sees no map: MixForcing
    trained the adapter to go on with its own radii. v_weak is told all that v is and lacks one of the transformer's
    blocks: what it draws worse is moved away from (skip-layer guidance). What the adapter predicts goes to `radii`.
    """
    g, c, m, b = settings.guidance, settings.camera_guidance, settings.map_guidance, settings.block_guidance

    def velocity(x: Tensor, sigma: Tensor) -> Tensor:
        level = sigma.to(x).expand(len(x))
        out = wanted = model.velocity(x, level, text)
        if adapter is not None:
            radii.append({block: interval.to("cpu") for block, interval in adapter.predictions.items()})
        if g != 1:
            assert negative is not None, "guidance has a negative prompt"
            out = out + (g - 1) * (wanted - model.velocity(x, level, negative))
        if settings.guides_camera(adapter is not None):
            with nullcontext() if adapter is None else adapter.disabled():
                off = model.velocity(x, level, text if negative is None or not settings.drop_text else negative)
            out = out + (c - 1) * (wanted - off)
        if m != 1 and adapter is not None:
            with adapter.without_map():
                out = out + (m - 1) * (wanted - model.velocity(x, level, text))
        if b != 1:
            with without_block(model.transformer, settings.left_out):
                out = out + (b - 1) * (wanted - model.velocity(x, level, text))
        return out

    return velocity


def _finite(velocity: Velocity, parts: Parts, settings: Settings) -> Velocity:
    """Stop at the first step that is not finite, and say what is to blame: it would end as a black video."""

    def checked(x: Tensor, sigma: Tensor) -> Tensor:
        out = velocity(x, sigma)
        if not torch.isfinite(out).all():
            got = "NaN or infinity" if (blame := _not_finite(parts)) is None else f"NaN or infinity in {blame}"
            fix = (
                "Load sound weights."
                if blame
                else f"Try less of guidance {settings.guidance:g}, camera guidance {settings.camera_guidance:g}, "
                f"block guidance {settings.block_guidance:g}, shift {settings.shift:g}, or dtype float32."
            )
            raise InputError(f"the prediction at noise level {float(sigma):.3f}", "finite numbers", got, fix)
        return out

    return checked


def _not_finite(parts: Parts) -> str | None:
    """The first weight that is NaN or infinite, by its name."""
    modules: list[tuple[str, nn.Module | None]] = [("model", parts.model.transformer), ("adapter", parts.adapter)]
    for owner, module in modules:
        for name, tensor in () if module is None else module.state_dict().items():
            if not torch.isfinite(tensor).all():
                return f"the {owner}'s weights {name}"
    return None


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
