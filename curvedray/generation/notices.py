"""What to say before filming: how a prompt was understood, and what the model was never trained for."""

from collections.abc import Mapping
from typing import Any

import torch

from curvedray.cameras import Cameras
from curvedray.generation.settings import Settings
from curvedray.models.embedded.model import EmbeddedModel
from curvedray.models.embedded.trained_on import TRAINED_ON, read_caption
from curvedray.models.interface import VideoModel


def understood(model: VideoModel, prompt: str) -> tuple[str, list[str]]:
    """The prompt in the model's own words, and notices. Wan reads any words; the embedded model knows a few."""
    if not isinstance(model, EmbeddedModel) or not prompt.strip():
        return prompt, []
    return read_caption(prompt)


def notices(model: VideoModel, settings: Settings, cameras: Cameras) -> list[str]:
    """Everything about these cameras and settings that lies outside of what the embedded model was trained on."""
    if not isinstance(model, EmbeddedModel):
        return []
    found = []
    own = model.defaults
    if (settings.width, settings.height) != (own.width, own.height):
        found.append(f"{settings.width} x {settings.height} pixels (trained: {own.width} x {own.height} alone)")
    if settings.frames != own.frames:
        found.append(f"{settings.frames} frames (trained: {own.frames} alone)")
    lens = cameras.frame_lens
    hfov, xi = lens.hfov.reshape(-1), lens.xi.reshape(-1)
    if not _within(hfov, TRAINED_ON.hfov, 0.5):
        low, high = TRAINED_ON.hfov
        found.append(f"a lens of {_spread(hfov, 0)} degrees across (trained: {low:g} to {high:g})")
    if not _within(xi, TRAINED_ON.xi, 1e-3):
        low, high = TRAINED_ON.xi
        found.append(f"a lens with a bend xi of {_spread(xi, 2)} (trained: {low:g} to {high:g})")
    if float(hfov.max() - hfov.min()) > 0.1:
        found.append("a lens that zooms (trained: lenses that stay)")
    poses = cameras.relative_to_first().world_from_camera.double()
    cosine = (poses[:, :3, :3].diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2
    turn = torch.rad2deg(torch.acos(cosine.clamp(-1, 1))).max().item()
    travel = poses[:, :3, 3].norm(dim=-1).max().item()
    if turn > TRAINED_ON.turn + 0.5:
        found.append(f"a camera that turns by {turn:.0f} degrees (trained: up to {TRAINED_ON.turn:g})")
    if travel > TRAINED_ON.travel:
        found.append(f"a camera that goes {travel:.1f} near distances far (trained: up to {TRAINED_ON.travel:g})")
    return [f"outside what the embedded model was trained for: {'; '.join(found)}"] if found else []


def without_effect(
    settings: Settings, given: Mapping[str, Any], negative: str | None, has_adapter: bool, has_map: bool
) -> list[str]:
    """What was asked for and does nothing beside the rest; `given` are the settings that somebody named."""
    named = {name for name, value in given.items() if value is not None}
    no_camera = settings.camera_guidance != 1 and not settings.guides_camera(has_adapter)
    idle = [
        ("radial_sigma", "radial_sigma" in named and not has_map, "there is no map of distances"),
        ("drop_text", bool(given.get("drop_text")) and settings.camera_guidance == 1, "camera guidance is 1"),
        ("left_out", "left_out" in named and settings.block_guidance == 1, "block guidance is 1"),
        ("negative", bool(negative) and not settings.needs_negative, "nothing guides away from it (guidance is 1)"),
        ("camera_guidance", "camera_guidance" in named and no_camera, "there is no adapter"),
    ]
    return [f"{name} has no effect: {why}" for name, holds, why in idle if holds]


def _within(values: torch.Tensor, bounds: tuple[float, float], slack: float) -> bool:
    return bool((values >= bounds[0] - slack).all() and (values <= bounds[1] + slack).all())


def _spread(values: torch.Tensor, digits: int) -> str:
    low, high = f"{float(values.min()):.{digits}f}", f"{float(values.max()):.{digits}f}"
    return low if low == high else f"{low} to {high}"
