"""Held-out clips during a run: their loss at fixed noise, and what the model makes of their prompts and cameras."""

from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.data.clips import Clip, HeldOut, VideoShape, batch_of
from curvedray.files import plain_name
from curvedray.generation.generate import generate
from curvedray.media.video import write_video
from curvedray.models.interface import VideoModel
from curvedray.training.objective import batch_in_view, draw, losses
from curvedray.training.recipe import Recipe

NOISE_LEVELS = 8  # a clip's loss is averaged over this many, one from each eighth of the recipe's draw


@torch.no_grad()
def validate(
    recipe: Recipe,
    model: VideoModel,
    adapter: Adapter | None,
    held_out: HeldOut,
    shape: VideoShape,
    out: Path,
    step: int,
    empty_text: Float[Tensor, "l e"],
    writes: bool = True,
) -> dict[str, object]:
    """The mean loss, and a video per clip in `out/validation/step-000500`. The noise is the same at every step.

    Clips and texts are encoded already; of the model's encoders only the decoder is needed. Of several processes that
    run the model together one `writes`.
    """
    folder = out / "validation" / f"step-{step:06d}"
    found = [clip_loss(recipe, model, adapter, clip, shape, empty_text) for clip in held_out.clips]
    for clip in held_out.clips:
        made = generate(
            model,
            clip.caption,
            clip.cameras,
            adapter=adapter,
            num_frames=shape.frames,
            height=shape.height,
            width=shape.width,
            seed=recipe.seed,
            prompt_embeds=clip.text[None].to(model.device),
            negative_prompt_embeds=held_out.negative_text[None].to(model.device),
        )
        if writes:
            write_video(made.frames, folder / f"{plain_name(clip.id, 'id')}.mp4", made.fps)
    return {"validation": sum(found) / len(found), "videos": str(folder)}


@torch.no_grad()
def clip_loss(
    recipe: Recipe,
    model: VideoModel,
    adapter: Adapter | None,
    clip: Clip,
    shape: VideoShape,
    empty_text: Float[Tensor, "l e"],
) -> float:
    """A clip's flow-matching loss without text dropout or teacher, over noise levels that never change."""
    grid = model.grid_for(shape.frames, shape.height, shape.width)
    plain = replace(recipe, batch=NOISE_LEVELS, text_dropout=0.0, mixforcing=None, beginnings=())
    total = 0.0
    for slot in range(NOISE_LEVELS):
        batch = batch_of([clip]).to(model.device)
        draws = draw(plain, 0, [slot], tuple(clip.latents.shape), grid).to(model.device)
        with batch_in_view(plain, adapter, batch, draws, grid):
            total += float(losses(plain, model, adapter, batch, draws, empty_text)[0])
    return total / NOISE_LEVELS
