"""Flow matching: straight lines, the laws of the draw, and the same steps as diffusers' schedulers."""

import pytest
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, UniPCMultistepScheduler

from curvedray.errors import InputError
from curvedray.models.flow import (
    SAMPLERS,
    TimestepDraw,
    euler,
    noised,
    sampling_sigmas,
    shifted,
    stratified_ranks,
    unipc,
    velocity_target,
)

MATRIX = torch.linalg.qr(torch.randn(24, 24, generator=torch.Generator().manual_seed(1)))[0]


def curved_velocity(x, sigma):
    """A velocity that bends with x and sigma, so that the order of a sampler shows."""
    flat = x.reshape(x.shape[0], -1)
    return (torch.tanh(flat @ MATRIX * (1 + sigma)) + sigma * flat).reshape(x.shape).to(x.dtype)


def start():
    return torch.randn(2, 2, 3, 2, 2, generator=torch.Generator().manual_seed(0))


def test_noise_and_target_are_one_straight_line():
    clean, noise = start(), torch.randn_like(start())
    sigma = torch.tensor([0.3, 0.8])
    x = noised(clean, noise, sigma)
    step = sigma.reshape(-1, 1, 1, 1, 1)
    torch.testing.assert_close(x - step * velocity_target(clean, noise), clean)
    torch.testing.assert_close(x + (1 - step) * velocity_target(clean, noise), noise)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("shift", [1.0, 3.0, 5.0])
def test_unipc_is_diffusers(steps, shift):
    scheduler = UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=shift, solver_order=2
    )
    scheduler.set_timesteps(steps)
    sigmas = sampling_sigmas(steps, shift)
    torch.testing.assert_close(sigmas, scheduler.sigmas, rtol=1e-6, atol=1.1e-6)
    x = start()
    for sigma, timestep in zip(sigmas[:-1], scheduler.timesteps, strict=True):
        x = scheduler.step(curved_velocity(x, sigma), timestep, x).prev_sample
    torch.testing.assert_close(unipc(curved_velocity, start(), sigmas), x, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("steps", [1, 4, 20])
def test_euler_is_diffusers(steps):
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    even = torch.linspace(1, 1 / 1000, steps + 1, dtype=torch.float64)[:-1]
    scheduler.set_timesteps(sigmas=even.tolist())
    sigmas = sampling_sigmas(steps, 3.0)
    torch.testing.assert_close(sigmas, scheduler.sigmas, rtol=1e-6, atol=1e-7)
    x = start()
    for sigma, timestep in zip(sigmas[:-1], scheduler.timesteps, strict=True):
        x = scheduler.step(curved_velocity(x, sigma), timestep, x).prev_sample
    torch.testing.assert_close(euler(curved_velocity, start(), sigmas), x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_are_exact_where_the_flow_is_straight(name):
    clean, noise = start(), torch.randn(2, 2, 3, 2, 2, generator=torch.Generator().manual_seed(5))
    out = SAMPLERS[name](lambda x, sigma: noise - clean, noise, sampling_sigmas(7))
    torch.testing.assert_close(out, clean, rtol=1e-4, atol=1e-4)


def test_unipc_converges_faster_than_euler():
    x = start().double()
    exact = euler(curved_velocity_double, x, sampling_sigmas(4000, 1.0).double())
    error = {
        name: (sampler(curved_velocity_double, x, sampling_sigmas(40, 1.0)) - exact).abs().max()
        for name, sampler in SAMPLERS.items()
    }
    assert error["unipc"] < error["euler"] / 5


def curved_velocity_double(x, sigma):
    flat = x.reshape(x.shape[0], -1)
    return (torch.tanh(flat @ MATRIX.double() * (1 + sigma)) + sigma * flat).reshape(x.shape)


def test_shift_keeps_the_ends_and_inverts():
    sigma = torch.linspace(0, 1, 11)
    torch.testing.assert_close(shifted(shifted(sigma, 5.0), 1 / 5.0), sigma)
    assert shifted(sigma, 5.0)[0] == 0
    assert shifted(sigma, 5.0)[-1] == 1
    torch.testing.assert_close(shifted(sigma, 1.0), sigma)


@pytest.mark.parametrize("draw", [TimestepDraw(), TimestepDraw("logit_normal", mean=1.8, std=1.0)])
def test_rank_is_a_quantile(draw):
    ranks = torch.rand(20_000, generator=torch.Generator().manual_seed(0)).clamp(1e-6, 1 - 1e-6)
    sigma = draw.sigma(ranks)
    assert ((sigma >= 0) & (sigma <= 1)).all()
    assert (sigma[ranks.argsort()].diff() >= -1e-6).all()  # the noisiest draws are the largest ranks
    if draw.kind == "logit_normal":
        logit = torch.logit(sigma.double())
        assert abs(logit.mean() - 1.8) < 0.03
        assert abs(logit.std() - 1.0) < 0.03


def test_strata_are_uniform_one_each():
    ranks = stratified_ranks(8, torch.Generator().manual_seed(3))
    assert sorted((ranks * 8).long().tolist()) == list(range(8))


def test_refusals():
    with pytest.raises(InputError, match="positive shift"):
        TimestepDraw(shift=0.0)
    with pytest.raises(InputError, match="at least one"):
        sampling_sigmas(0)
