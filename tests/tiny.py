"""A tiny random Wan with a toy codec and toy text: what the training tests train, in milliseconds per step."""

import hashlib

import torch
import torch.nn.functional as F
from einops import rearrange

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.data.clips import Footage
from curvedray.errors import InputError
from curvedray.models.interface import Defaults
from curvedray.models.wan import wan_transformer
from curvedray.radial.map import RadialMap

STRIDE = (4, 16, 16)
CHANNELS, TEXT = 4, (6, 16)


class TinyModel:
    """A `VideoModel` of two blocks: latents are 8 x 8 means of pixels, text is a hash of the caption."""

    name, shift, text_tokens = "tiny", 3.0, TEXT[0]
    defaults = Defaults(9, 32, 48, steps=2, guidance=1.0, fps=8)
    device = torch.device("cpu")

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.transformer = wan_transformer(
            num_attention_heads=2,
            attention_head_dim=24,
            in_channels=CHANNELS,
            out_channels=CHANNELS,
            text_dim=TEXT[1],
            freq_dim=16,
            ffn_dim=64,
            num_layers=3,
            rope_max_seq_len=32,
        )

    def grid_for(self, frames, height, width):
        return TokenGrid.from_video(frames, height, width, STRIDE)

    def latent_shape(self, grid):
        return CHANNELS, grid.frames, grid.rows * 2, grid.cols * 2

    def encode_text(self, prompts):
        rows = []
        for prompt in prompts:
            seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
            rows.append(torch.randn(TEXT, generator=torch.Generator().manual_seed(seed)))
        return torch.stack(rows)

    def encode(self, video):
        grey = F.avg_pool2d(rearrange(video[:, :, ::4], "b c t h w -> (b t) c h w"), 8)
        rgb = rearrange(grey, "(b t) c h w -> b c t h w", b=len(video))
        return torch.cat([rgb, rgb.mean(1, keepdim=True)], 1)

    def decode(self, latents):
        frames = (latents.shape[2] - 1) * 4 + 1
        size = (frames, latents.shape[3] * 8, latents.shape[4] * 8)
        return F.interpolate(latents[:, :3], size, mode="trilinear").clamp(-1, 1)

    def velocity(self, latents, sigma, text):
        return self.transformer(latents, sigma * 1000, text, return_dict=False)[0]

    def release(self, *, text=False, vae=False):
        pass


def footage(index, frames=9, height=32, width=48, near=None, radial=True):
    """Coloured noise under a moving camera: a clip with everything, a pure function of its number."""
    generator = torch.Generator().manual_seed(index)
    coarse = torch.rand(1, 3, 3, 4, 6, generator=generator)
    video = F.interpolate(coarse, (frames, height, width), mode="trilinear")[0]
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, :3, 3] = torch.linspace(0, 1, frames)[:, None] * torch.rand(3, generator=generator)
    lens = Lens.from_fov(90.0 + 5 * (index % 3), 0.3 * (index % 3), width, height)
    distances = 1 + 4 * torch.rand(frames, height, width, generator=generator)
    return Footage(
        f"clip-{index}",
        f"a scene of number {index}",
        (rearrange(video, "c t h w -> t h w c") * 255).to(torch.uint8),
        Cameras(lens, poses, "metric"),
        RadialMap.from_metric(distances) if radial else None,
        near,
    )


class TinyFootage:
    """`count` clips, of which some may be broken."""

    def __init__(self, count=6, broken=()):
        self.count, self.broken = count, broken

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.broken:
            raise InputError(self.name_of(index), "a video that can be decoded", "rubbish")
        return footage(index)

    def name_of(self, index):
        return f"clip-{index}"

    def fingerprint(self, index):
        return hashlib.sha256(f"tiny {index} {index in self.broken}".encode()).hexdigest()
