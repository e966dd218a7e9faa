"""The network behind the `embedded` estimator: a clip of the procedural world -> its cameras, lens, radii and caption.

It encodes a clip with the codec's principal components, the first frame and every four after it, and lets the tokens of
all latent frames attend to one another. What it answers for a latent frame is of its last video frame: 0, 4, 8, 12,
16. Distances are in metres: the world's things are of known size.

    b clip   c latent channel   t latent frame   i j latent pixel   y x radius, `detail` of them along a token of the
    4 x 6 grid   p token of a frame   s slot, one for each colour that a caption may name
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from curvedray.cameras import TokenGrid
from curvedray.configs import check_laws, whole
from curvedray.models.embedded.codec import PatchComponents

GRID = TokenGrid(5, 4, 6)  # its own tokens, of 2 x 2 latents: 17 frames of 64 x 96
HEIGHT, WIDTH = GRID.rows * GRID.stride[1], GRID.cols * GRID.stride[2]
STEM = 96  # channels of the convolutions before the tokens
MIDDLE_FOV, MIDDLE_XI, MIDDLE_LOG_RADIUS = 2.0, 0.5, 1.5  # of the world's clips; what an untrained network answers


@dataclass(frozen=True)
class ReaderShape:
    """The classes and sizes of a reader, stored in its file."""

    themes: tuple[str, ...]
    colours: tuple[str, ...]
    kinds: tuple[str, ...]
    channels: int = 48
    width: int = 192
    layers: int = 6
    heads: int = 4
    detail: int = 2  # radii along each side of a token
    slot_layers: int = 0  # layers in which each slot looks for its thing among the tokens; 0: the strongest token tells

    @property
    def slots(self) -> int:
        return len(self.colours)

    @property
    def classes(self) -> dict[str, int]:
        """Answers per slot: whether its colour is there; which kind, or none; bearing and distance."""
        return {"colour": 2, "kind": len(self.kinds) + 1, "position": 2}

    @property
    def radii(self) -> TokenGrid:
        """The grid that radii are read on."""
        return TokenGrid.from_video(
            GRID.video_frames,
            HEIGHT,
            WIDTH,
            (GRID.stride[0], GRID.stride[1] // self.detail, GRID.stride[2] // self.detail),
        )

    def __post_init__(self) -> None:
        laws = [
            (name, 1 <= len(getattr(self, name)) <= 1000, "1 to 1000 words") for name in ("themes", "colours", "kinds")
        ]
        for name, most in (("channels", 1024), ("width", 4096), ("layers", 64), ("heads", 64), ("detail", 8)):
            laws.append((name, whole(getattr(self, name), 1, most), f"a whole number from 1 to {most}"))
        laws.append(("slot_layers", whole(self.slot_layers, 0, 64), "a whole number from 0 to 64"))
        check_laws(self, [*laws, ("width", self.width % max(self.heads, 1) == 0, f"a multiple of {self.heads} heads")])
        check_laws(self, [("detail", GRID.stride[1] % self.detail == 0, f"a divisor of {GRID.stride[1]} pixels")])


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from clips. Poses are relative to the first frame, in metres; angles are radians."""

    turn: Float[Tensor, "b t 3"]  # rotation vector of each frame from the first, which is zero
    shift: Float[Tensor, "b t 3"]  # metres
    fov: Float[Tensor, " b"]  # across the image
    xi: Float[Tensor, " b"]
    log_radius: Float[Tensor, "b t y x"]  # metres
    theme: Float[Tensor, "b themes"]  # logits
    colour: Float[Tensor, "b s there"]  # logits; the last class is "nothing there", here and of kinds
    kind: Float[Tensor, "b s kinds"]
    # Of a thing seen from the first camera: bearing to the right in radians, and log of metres.
    position: Float[Tensor, "b s bearing_and_distance"]


def joined(readings: Sequence[Reading]) -> Reading:
    """Readings of several batches as one."""
    return Reading(*(torch.cat([getattr(one, field.name) for one in readings]) for field in fields(Reading)))


# Left for right: x turns round; a turn about it does not, turns about the other axes do; a bearing to the right turns.
SHIFT_IN_MIRROR, TURN_IN_MIRROR, POSITION_IN_MIRROR = (-1.0, 1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, 1.0)


def in_a_mirror(said: Reading) -> Reading:
    """What is read of clips -> what is to be read of their mirror images. The world has no handedness."""
    return replace(
        said,
        turn=said.turn * said.turn.new_tensor(TURN_IN_MIRROR),
        shift=said.shift * said.shift.new_tensor(SHIFT_IN_MIRROR),
        log_radius=said.log_radius.flip(-1),
        position=said.position * said.position.new_tensor(POSITION_IN_MIRROR),
    )


class ClipReader(nn.Module):
    """Video -> latents (`encode`) -> Reading; `read` does both, of a video and of its mirror image.

    Its principal components are the codec's and are not trained.
    """

    spread: Tensor

    def __init__(self, shape: ReaderShape):
        super().__init__()
        self.shape, width = shape, shape.width
        self.components = PatchComponents(shape.channels)
        self.register_buffer("spread", torch.ones(shape.channels, 2))  # of latents: in the first frame, and after it
        # The first latent frame stands for one video frame and has components of its own, so a layer of its own too.
        self.first, self.rest = (nn.Conv3d(shape.channels, STEM, (1, 3, 3), padding=(0, 1, 1)) for _ in range(2))
        self.stem = nn.Sequential(
            nn.GroupNorm(4, STEM), nn.SiLU(), nn.Conv3d(STEM, width, (1, 3, 3), (1, 2, 2), padding=(0, 1, 1))
        )
        self.position = nn.Parameter(torch.randn(GRID.tokens, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, shape.heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.transformer = nn.TransformerEncoder(layer, shape.layers, nn.LayerNorm(width), enable_nested_tensor=False)
        # Which token it is matters, so a frame's tokens are joined and not averaged.
        self.summary = nn.Sequential(nn.Linear(GRID.patches * width, width), nn.SiLU())
        self.motion = nn.Linear(width, 6)
        self.lens = nn.Linear(width, 2)
        self.distance = nn.Linear(width, shape.detail**2)
        answers = sum(shape.classes.values())
        if shape.slot_layers:
            self.theme, self.thing = nn.Linear(width, len(shape.themes)), nn.Linear(width, answers)
            self.slot = nn.Parameter(torch.randn(shape.slots, width) * 0.02)  # what each colour looks for
            looking = nn.TransformerDecoderLayer(
                width, shape.heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.looking = nn.TransformerDecoder(looking, shape.slot_layers, nn.LayerNorm(width))
        else:
            self.caption = nn.Linear(width, len(shape.themes) + shape.slots * answers)

    def encode(self, video: Float[Tensor, "b 3 frames h w"]) -> Float[Tensor, "b c t i j"]:
        """Latents of a video in [-1, 1], 17 frames of 64 x 96."""
        return self.components.encode(video)

    def read(self, video: Float[Tensor, "b 3 frames h w"]) -> Reading:
        """The mean of what is read of a video and, turned round, of its mirror image: their errors are not the same."""
        ways = (self(self.encode(video)), in_a_mirror(self(self.encode(video.flip(-1)))))
        pairs = ([getattr(way, field.name) for way in ways] for field in fields(Reading))
        return Reading(*(torch.stack(pair).mean(0) for pair in pairs))

    def forward(self, latents: Float[Tensor, "b c t i j"]) -> Reading:
        first, rest = self.spread.unbind(-1)
        stems = [
            self.first(latents[:, :, :1] / first[:, None, None, None]),
            self.rest(latents[:, :, 1:] / rest[:, None, None, None]),
        ]
        tokens = rearrange(self.stem(torch.cat(stems, 2)), "b d t y x -> b (t y x) d")
        tokens = self.transformer(tokens + self.position)
        summary = self.summary(rearrange(tokens, "b (t p) d -> b t (p d)", t=GRID.frames))
        motion = self.motion(summary)
        motion = motion - motion[:, :1]  # motion is measured from the first frame
        fov, xi = self.lens(summary).mean(1).unbind(-1)
        theme, things = self._caption(summary, tokens)
        colour, kind, position = things.split(list(self.shape.classes.values()), -1)
        distance = rearrange(
            self.distance(tokens),
            "b (t y x) (j k) -> b t (y j) (x k)",
            t=GRID.frames,
            y=GRID.rows,
            j=self.shape.detail,
        )
        return Reading(
            motion[..., :3],
            motion[..., 3:],
            fov + MIDDLE_FOV,
            xi + MIDDLE_XI,
            distance + MIDDLE_LOG_RADIUS,
            theme,
            colour,
            kind,
            position + position.new_tensor([0.0, MIDDLE_LOG_RADIUS]),
        )

    def _caption(
        self, summary: Float[Tensor, "b t d"], tokens: Float[Tensor, "b all_p d"]
    ) -> tuple[Float[Tensor, "b themes"], Float[Tensor, "b s answers"]]:
        """What a caption says. A thing may be anywhere, so it is looked for in all tokens."""
        if self.shape.slot_layers:
            slots = self.looking(self.slot.expand(len(tokens), -1, -1), tokens)
            return self.theme(summary.mean(1)), self.thing(slots)
        counts = list(self.shape.classes.values())
        both = self.caption(summary.mean(1) + tokens.amax(1))
        theme, *parts = both.split([len(self.shape.themes), *(self.shape.slots * count for count in counts)], -1)
        return theme, torch.cat([part.unflatten(-1, (self.shape.slots, -1)) for part in parts], -1)
