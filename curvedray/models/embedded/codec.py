"""The embedded model's latents: principal components of 4 x 8 x 8 patches, and a small network that decodes them.

It stands where Wan's VAE stands, with its compression and its rule that the first frame has a latent to itself.
Encoding is linear, so it is fitted, not trained; only what the decoder adds is trained, on latents with a sampler's
errors. It corrects each patch from its neighbours, and may then paint: layers on pixels, which see over the borders of
patches.

    b clip   c latent channel   t latent frame   y x latent pixel   i j position inside a patch   k frame inside a patch
"""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

TIME, SPACE = 4, 8
FLATTENING = 0.5  # 0 keeps each component's own variance, 1 whitens; half lets coarse structure appear first


class PatchComponents(nn.Module):
    """Video in [-1, 1] <-> latents of mean square about one, both ways linear."""

    def __init__(self, channels: int = 32):
        super().__init__()
        self.channels = channels
        for name, frames in (("first", 1), ("rest", TIME)):
            pixels = frames * SPACE * SPACE * 3
            self.register_buffer(f"{name}_mean", torch.zeros(pixels))
            self.register_buffer(f"{name}_basis", torch.zeros(channels, pixels).fill_diagonal_(1))
            self.register_buffer(f"{name}_gain", torch.ones(channels))

    @torch.no_grad()
    def fit(self, video: Float[Tensor, "b 3 frames h w"]) -> None:
        """Set the principal components from many clips."""
        for name, patches in zip(("first", "rest"), _patches(video), strict=True):
            rows = patches.reshape(-1, patches.shape[-1]).double()
            mean = rows.mean(0)
            values, vectors = torch.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
            basis = vectors.flip(-1)[:, : self.channels].T
            # A component's sign is arbitrary; fixed by its largest entry it is the same on every machine.
            basis = basis * torch.gather(basis, 1, basis.abs().argmax(1, keepdim=True)).sign()
            gain = values.flip(0)[: self.channels].clamp_min(1e-8) ** (-FLATTENING / 2)
            gain = gain / (gain**2 * values.flip(0)[: self.channels]).mean().sqrt()
            for part, value in (("mean", mean), ("basis", basis), ("gain", gain)):
                getattr(self, f"{name}_{part}").copy_(value)

    def encode(self, video: Float[Tensor, "b 3 frames h w"]) -> Float[Tensor, "b c t y x"]:
        first, rest = _patches(video)
        parts = []
        for name, patches in (("first", first), ("rest", rest)):
            mean, basis, gain = (getattr(self, f"{name}_{part}") for part in ("mean", "basis", "gain"))
            parts.append((patches - mean) @ basis.T * gain)
        return rearrange(torch.cat(parts, 1), "b t y x c -> b c t y x")

    def decode_linear(self, latents: Float[Tensor, "b c t y x"]) -> Float[Tensor, "b 3 frames h w"]:
        last = latents.movedim(1, -1)
        parts = []
        for name, coefficients in (("first", last[:, :1]), ("rest", last[:, 1:])):
            mean, basis, gain = (getattr(self, f"{name}_{part}") for part in ("mean", "basis", "gain"))
            parts.append(coefficients / gain @ basis + mean)
        return _assemble(*parts)


class PatchCodec(PatchComponents):
    """The components, and a decoder that knows more than their linear inverse.

    With `painted` channels per pixel the correction is handed to layers on pixels; with 0 it is the last word.
    """

    def __init__(self, channels: int = 32, width: int = 128, painted: int = 0):
        super().__init__(channels)
        self.painted = painted
        self.correction = nn.Sequential(
            nn.Conv3d(channels, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv3d(width, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv3d(width, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv3d(width, TIME * SPACE * SPACE * (painted or 3), 1),
        )
        self.paint = (
            nn.Sequential(
                nn.Conv3d(painted + 3, painted, 3, padding=1),
                nn.SiLU(),
                nn.Conv3d(painted, painted, (1, 3, 3), padding=(0, 2, 2), dilation=(1, 2, 2)),
                nn.SiLU(),
                nn.Conv3d(painted, painted, (1, 3, 3), padding=(0, 4, 4), dilation=(1, 4, 4)),
                nn.SiLU(),
                nn.Conv3d(painted, 3, (1, 3, 3), padding=(0, 1, 1)),
            )
            if painted
            else None
        )
        for parameter in (self.paint or self.correction)[-1].parameters():  # untrained, it adds nothing
            nn.init.zeros_(parameter)

    def decode(self, latents: Float[Tensor, "b c t y x"]) -> Float[Tensor, "b 3 frames h w"]:
        """The linear inverse, and what the trained layers add to it; not clipped."""
        linear = self.decode_linear(latents)
        patches = self.correction(latents).movedim(1, -1)
        added = _assemble(*_first_and_rest(patches, self.painted or 3), self.painted or 3)
        return linear + (added if self.paint is None else self.paint(torch.cat([linear, added], 1)))


def _patches(video: Tensor) -> tuple[Tensor, Tensor]:
    """Video -> patches of the first frame (b 1 y x 192) and of each four frames after it (b t y x 768)."""
    first = rearrange(video[:, :, :1], "b c k (y i) (x j) -> b k y x (i j c)", i=SPACE, j=SPACE)
    rest = rearrange(video[:, :, 1:], "b c (t k) (y i) (x j) -> b t y x (k i j c)", k=TIME, i=SPACE, j=SPACE)
    return first, rest


def _assemble(first: Tensor, rest: Tensor, channels: int = 3) -> Tensor:
    """The inverse of `_patches`, for any number of channels per pixel."""
    start = rearrange(first, "b k y x (i j c) -> b c k (y i) (x j)", i=SPACE, j=SPACE, c=channels)
    following = rearrange(rest, "b t y x (k i j c) -> b c (t k) (y i) (x j)", k=TIME, i=SPACE, j=SPACE, c=channels)
    return torch.cat([start, following], 2)


def _first_and_rest(patches: Tensor, channels: int) -> tuple[Tensor, Tensor]:
    """The first latent frame speaks for one video frame only: the start of its patch."""
    return patches[:, :1, ..., : SPACE * SPACE * channels], patches[:, 1:]
