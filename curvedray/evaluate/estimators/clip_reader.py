"""The network behind the `embedded` estimator: a clip of the procedural world -> its cameras, lens, radii and caption.

It looks at the frames with which latent frames end (0, 4, 8, 12, 16), each through a small convolutional eye, and lets
all their tokens attend to one another. The world's court is always the same size, so distances are in metres.

    b clip   t latent frame   y x token of the 4 x 6 grid   p token of a frame   s place in the caption
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.cameras import TokenGrid

GRID = TokenGrid(5, 4, 6)
PLACES = 3  # left, right, behind
MIDDLE_FOV, MIDDLE_XI, MIDDLE_LOG_RADIUS = 2.0, 0.5, 1.5  # of the world's clips; what an untrained network says


@dataclass(frozen=True)
class ReaderShape:
    """The classes and sizes of a reader, stored in its file."""

    themes: tuple[str, ...]
    colours: tuple[str, ...]
    kinds: tuple[str, ...]
    width: int = 128
    layers: int = 4
    heads: int = 4


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from clips. Poses are relative to the first frame, in metres; angles are radians."""

    turn: Float[Tensor, "b t 3"]  # rotation vector of each frame from the first, which is zero
    shift: Float[Tensor, "b t 3"]  # metres
    fov: Float[Tensor, " b"]  # across the image
    xi: Float[Tensor, " b"]
    log_radius: Float[Tensor, "b t y x"]  # metres, on the token grid
    theme: Float[Tensor, "b themes"]  # logits
    colour: Float[Tensor, "b s colours"]  # logits; the last class is "nothing there"
    kind: Float[Tensor, "b s kinds"]


def latent_ends(video: Float[Tensor, "b 3 frames h w"]) -> Float[Tensor, "b 3 t h w"]:
    """The frames that are looked at."""
    return video[:, :, :: GRID.stride[0]]


def joined(readings: Sequence[Reading]) -> Reading:
    """Readings of several batches as one."""
    return Reading(*(torch.cat([getattr(one, field.name) for one in readings]) for field in fields(Reading)))


class ClipReader(nn.Module):
    """Video frames -> Reading."""

    def __init__(self, shape: ReaderShape):
        super().__init__()
        self.shape, width = shape, shape.width
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2),
            nn.GroupNorm(4, 32),
            nn.SiLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.GroupNorm(4, 64),
            nn.SiLU(),
            nn.Conv2d(64, 96, 3, stride=2, padding=1),
            nn.GroupNorm(4, 96),
            nn.SiLU(),
            nn.Conv2d(96, width, 3, stride=2, padding=1),
        )
        self.place = nn.Parameter(torch.randn(GRID.frames, GRID.patches, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, shape.heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.thought = nn.TransformerEncoder(layer, shape.layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.summary = nn.Sequential(nn.Linear(GRID.patches * width, width), nn.SiLU())  # where a token is matters
        self.motion = nn.Linear(width, 6)
        self.glass = nn.Linear(width, 2)
        self.distance = nn.Linear(width, 1)
        self.classes = (len(shape.themes), PLACES * (len(shape.colours) + 1), PLACES * (len(shape.kinds) + 1))
        self.caption = nn.Linear(width, sum(self.classes))

    def forward(self, frames: Float[Tensor, "b 3 t h w"]) -> Reading:
        """Frames 0, 4, 8, 12 and 16 of a video in [-1, 1], of 64 x 96."""
        images = rearrange(frames, "b c t h w -> (b t) c h w")
        seen = self.eye(images.contiguous(memory_format=torch.channels_last))
        tokens = rearrange(seen, "(b t) d y x -> b t (y x) d", t=GRID.frames) + self.place
        tokens = self.thought(rearrange(tokens, "b t p d -> b (t p) d"))
        summary = self.summary(rearrange(tokens, "b (t p) d -> b t (p d)", t=GRID.frames))
        motion = self.motion(summary)
        motion = motion - motion[:, :1]  # the first frame is where motion is measured from
        fov, xi = self.glass(summary).mean(1).unbind(-1)
        theme, colour, kind = self.caption(summary).mean(1).split(self.classes, -1)
        distance = rearrange(self.distance(tokens), "b (t y x) 1 -> b t y x", t=GRID.frames, y=GRID.rows)
        return Reading(
            motion[..., :3],
            motion[..., 3:],
            fov + MIDDLE_FOV,
            xi + MIDDLE_XI,
            distance + MIDDLE_LOG_RADIUS,
            theme,
            rearrange(colour, "b (s c) -> b s c", s=PLACES),
            rearrange(kind, "b (s c) -> b s c", s=PLACES),
        )
