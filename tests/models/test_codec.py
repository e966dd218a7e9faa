"""The embedded model's latents: exact where they can be, ordered, and one latent for the first frame."""

import pytest
import torch

from curvedray.models.embedded.codec import PatchCodec


def clips(n: int = 6, seed: int = 0) -> torch.Tensor:
    """Smooth random clips: a few sinusoids each, so that few components carry them."""
    generator = torch.Generator().manual_seed(seed)
    t, y, x = torch.meshgrid(torch.arange(9.0), torch.arange(16.0), torch.arange(24.0), indexing="ij")
    rate = torch.rand(n, 3, 3, generator=generator)[..., None, None, None] * 0.3
    phase = torch.rand(n, 3, generator=generator)[..., None, None, None] * 6
    return torch.sin(rate[:, :, 0] * t + rate[:, :, 1] * y + rate[:, :, 2] * x + phase)


def test_shapes_follow_wan_compression():
    latents = PatchCodec(channels=5).encode(clips())
    assert latents.shape == (6, 5, 3, 2, 3)
    assert PatchCodec(channels=5).decode(latents).shape == (6, 3, 9, 16, 24)


def test_all_components_of_the_first_frame_are_exact():
    codec, video = PatchCodec(channels=192), clips(40)
    codec.fit(video)
    assert (codec.decode(codec.encode(video))[:, :, 0] - video[:, :, 0]).abs().max() < 1e-3


def test_more_components_never_reconstruct_worse():
    video = clips(20)
    errors = []
    for channels in (2, 8, 32):
        codec = PatchCodec(channels)
        codec.fit(video)
        errors.append((codec.decode_linear(codec.encode(video)) - video).square().mean().item())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-2


def test_latents_have_mean_square_one_on_what_they_were_fitted_to():
    codec, video = PatchCodec(channels=8), clips(30)
    codec.fit(video)
    latents = codec.encode(video)
    assert abs(latents[:, :, 0].square().mean() - 1) < 0.01
    assert abs(latents[:, :, 1:].square().mean() - 1) < 0.01


def test_the_first_latent_frame_knows_nothing_of_later_frames():
    codec, video = PatchCodec(channels=8), clips()
    codec.fit(video)
    changed = video.clone()
    changed[:, :, 1:] = 0
    torch.testing.assert_close(codec.encode(video)[:, :, 0], codec.encode(changed)[:, :, 0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("painted", [0, 6])
def test_the_untrained_decoder_adds_nothing(painted):
    codec, video = PatchCodec(channels=8, painted=painted), clips()
    codec.fit(video)
    latents = codec.encode(video)
    torch.testing.assert_close(codec.decode(latents), codec.decode_linear(latents), rtol=0, atol=1e-6)


def test_the_painted_pixels_see_over_the_borders_of_patches():
    """A change of one latent reaches 8 pixels beyond its patch, by the layers on pixels alone."""
    codec, latents = PatchCodec(channels=8, width=4, painted=6), torch.randn(1, 8, 2, 5, 5)
    torch.nn.init.normal_(codec.paint[-1].weight)
    for layer in codec.correction[:-1]:  # without its neighbours, the correction stays inside a patch
        if isinstance(layer, torch.nn.Conv3d):
            with torch.no_grad():
                centre = layer.weight[..., 1, 1, 1].clone()
                layer.weight.zero_()[..., 1, 1, 1] = centre
    other = latents.clone()
    other[:, :, 0, 2, 2] += 1
    changed = (codec.decode(other) - codec.decode(latents)).abs().amax((0, 1, 2)) > 1e-6
    assert changed[16:24, 16:24].all()
    assert changed[15, 16:24].any()
    assert not changed[7].any()
    assert not changed[:, 7].any()
