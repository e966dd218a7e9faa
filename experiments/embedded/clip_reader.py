"""The network behind the `embedded` estimator: a clip of the procedural world -> its cameras, lens, radii and caption.

It looks at the frames a latent frame starts with (0, 4, 8, ...), each through a small convolutional eye, and lets all
their patches attend to one another.

    b clip   t latent frame   p patch of the eye's 8 x 12   n token of the 4 x 6 grid   s place in the caption
"""

from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float, UInt8
from torch import Tensor, nn

FRAMES, ROWS, COLS, PLACES = 5, 8, 12, 3
STRIDE = 4


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from clips. Poses are relative to the first frame, in metres; angles are radians."""

    turn: Float[Tensor, "b t 3"]  # rotation vector of each frame from the first, which is zero
    shift: Float[Tensor, "b t 3"]  # metres
    fov: Float[Tensor, " b"]
    xi: Float[Tensor, " b"]
    log_radius: Float[Tensor, "b t y x"]  # metres, on the token grid
    theme: Float[Tensor, "b themes"]
    colour: Float[Tensor, "b s colours"]  # the last class is "nothing there"
    kind: Float[Tensor, "b s kinds"]


class ClipReader(nn.Module):
    """Video frames -> Reading."""

    def __init__(self, themes: int, colours: int, kinds: int, width: int = 96, layers: int = 4, heads: int = 4):
        super().__init__()
        self.sizes = (themes, colours, kinds, width, layers, heads)
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 5, stride=2, padding=2),
            nn.GroupNorm(4, 32),
            nn.SiLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.GroupNorm(4, 64),
            nn.SiLU(),
            nn.Conv2d(64, width, 3, stride=2, padding=1),
        )
        self.place = nn.Parameter(torch.randn(FRAMES, ROWS * COLS, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.thought = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.motion = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, 6))
        self.glass = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))
        self.distance = nn.Linear(width, 1)
        self.classes = (themes, PLACES * (colours + 1), PLACES * (kinds + 1))
        self.caption = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, sum(self.classes)))

    def forward(self, video: Float[Tensor, "b 3 frames h w"]) -> Reading:
        """Video in [-1, 1], 17 frames of 64 x 96."""
        batch = len(video)
        seen = self.eye(rearrange(video[:, :, ::STRIDE], "b c t h w -> (b t) c h w"))
        tokens = rearrange(seen, "(b t) d y x -> b t (y x) d", b=batch) + self.place
        tokens = rearrange(self.thought(rearrange(tokens, "b t p d -> b (t p) d")), "b (t p) d -> b t p d", t=FRAMES)
        frames = tokens.mean(2)
        motion = self.motion(torch.cat([frames, frames[:, :1].expand_as(frames)], -1))
        motion = motion - motion[:, :1]  # the first frame is where motion is measured from
        clip = frames.mean(1)
        fov, xi = self.glass(clip).unbind(-1)
        theme, colour, kind = self.caption(frames[:, 0]).split(self.classes, -1)
        return Reading(
            motion[..., :3],
            motion[..., 3:],
            fov + 2.0,  # the families' middle, about 115 degrees and xi 0.5
            xi + 0.5,
            rearrange(self.distance(tokens)[..., 0], "b t (y i x j) -> b t y x i j", i=2, j=2, x=COLS // 2).mean(
                (-1, -2)
            )
            + 1.5,
            theme,
            rearrange(colour, "b (s c) -> b s c", s=PLACES),
            rearrange(kind, "b (s c) -> b s c", s=PLACES),
        )


def as_input(video: UInt8[Tensor, "b frames h w 3"]) -> Float[Tensor, "b 3 frames h w"]:
    return rearrange(video, "b t h w c -> b c t h w").float() / 127.5 - 1
