"""Flow matching as Wan does it: noise, timestep draw, target, and samplers as short functions.

A sample travels in a straight line from the video (sigma = 0) to noise (sigma = 1), and the network predicts the
velocity along it. Wan's timestep is 1000 sigma. A sampler is a function of (velocity, x, sigmas).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.errors import InputError

TRAIN_TIMESTEPS = 1000
LARGEST_SIGMA = 1 - 1e-6  # where a logarithm of 1 - sigma is taken

# velocity(x, sigma): what the network says of the latents x, all of them at noise level sigma.
Velocity = Callable[[Tensor, Float[Tensor, ""]], Tensor]


def noised(clean: Float[Tensor, " b *x"], noise: Float[Tensor, " b *x"], sigma: Float[Tensor, " b"]) -> Tensor:
    """x = (1 - sigma) clean + sigma noise."""
    sigma = sigma.reshape(-1, *[1] * (clean.ndim - 1)).to(clean)
    return (1 - sigma) * clean + sigma * noise


def velocity_target(clean: Float[Tensor, " b *x"], noise: Float[Tensor, " b *x"]) -> Float[Tensor, " b *x"]:
    """d x / d sigma, the same all along the line."""
    return noise - clean


def shifted(sigma: Float[Tensor, "*any"], shift: float) -> Float[Tensor, "*any"]:
    """Wan's time shift: a large video needs more of its steps at high noise."""
    return shift * sigma / (1 + (shift - 1) * sigma)


@dataclass(frozen=True)
class TimestepDraw:
    """How training draws noise levels: a uniform rank in (0, 1) goes through the law's quantile function.

    The rank stays meaningful whatever the law: 0.97 and over are its noisiest 3 %.
    """

    kind: Literal["shifted", "logit_normal"] = "shifted"
    shift: float = 5.0  # shifted: a uniform sigma, shifted
    mean: float = 0.0  # logit_normal: sigmoid of a normal number
    std: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("shifted", "logit_normal"):
            raise InputError("timesteps.kind", "shifted or logit_normal", self.kind)
        if self.shift <= 0 or self.std <= 0:
            raise InputError("timesteps", "a positive shift and std", f"shift {self.shift}, std {self.std}")

    def sigma(self, rank: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        if self.kind == "shifted":
            return shifted(rank, self.shift)
        return torch.sigmoid(self.mean + self.std * torch.special.ndtri(rank.double())).to(rank)


def stratified_ranks(count: int, generator: torch.Generator) -> Float[Tensor, " {count}"]:
    """One uniform rank from each of `count` equal strata, in random order: the same law, less variance in a batch."""
    strata = torch.randperm(count, generator=generator)
    return (strata + torch.rand(count, generator=generator)) / count


def sampling_sigmas(steps: int, shift: float = 5.0) -> Float[Tensor, " {steps}+1"]:
    """Noise levels from 1 to 0, shifted: what Wan's sampler visits."""
    if steps < 1:
        raise InputError("steps", "at least one", steps)
    even = torch.linspace(1, 1 / TRAIN_TIMESTEPS, steps + 1, dtype=torch.float64)[:-1]
    return torch.cat([shifted(even, shift), even.new_zeros(1)]).float()


@torch.no_grad()
def euler(velocity: Velocity, x: Tensor, sigmas: Float[Tensor, " steps"]) -> Tensor:
    """First order: follow the velocity from one noise level to the next."""
    for now, after in pairwise(sigmas):
        x = x + (after - now) * velocity(x, now)
    return x


@torch.no_grad()
def unipc(velocity: Velocity, x: Tensor, sigmas: Float[Tensor, " steps"]) -> Tensor:
    """UniPC (Zhao et al. 2023) of second order with B(h) = e^h - 1, on predictions of the clean sample.

    A predictor steps on; when the next prediction is known, a corrector redoes that step with it, at no extra call.
    """
    sigma = sigmas.double().clamp_max(LARGEST_SIGMA)
    log_snr = torch.log1p(-sigma) - sigma.log()  # +inf at the end, where only the first-order formula is used
    steps = len(sigmas) - 1
    clean: list[Tensor] = []
    before = x
    for i in range(steps):
        now = x - sigma[i].to(x) * velocity(x, sigmas[i])
        if i > 0:
            x = _corrected(before, now, clean, sigma, log_snr, i)
        before = x
        clean = [*clean[-1:], now]
        x = _predicted(x, clean if min(2, steps - i, i + 1) == 2 else clean[-1:], sigma, log_snr, i)
    return x


def _predicted(x: Tensor, clean: list[Tensor], sigma: Tensor, log_snr: Tensor, i: int) -> Tensor:
    """From level i to i + 1 with one or two predictions of the clean sample, the newest last."""
    gain = -(1 - sigma[i + 1]) * torch.expm1(log_snr[i] - log_snr[i + 1])
    out = sigma[i + 1] / sigma[i] * x + gain * clean[-1]
    if len(clean) == 2:
        ratio = (log_snr[i - 1] - log_snr[i]) / (log_snr[i + 1] - log_snr[i])
        out = out + gain * 0.5 * (clean[-2] - clean[-1]) / ratio
    return out.to(x.dtype)


def _corrected(x: Tensor, now: Tensor, clean: list[Tensor], sigma: Tensor, log_snr: Tensor, i: int) -> Tensor:
    """The step from level i - 1 to i again, `x` its start, knowing the prediction `now` at its end."""
    h = log_snr[i] - log_snr[i - 1]
    gain = -(1 - sigma[i]) * torch.expm1(-h)
    out = sigma[i] / sigma[i - 1] * x + gain * clean[-1]
    if len(clean) == 1:
        return (out + gain * 0.5 * (now - clean[-1])).to(x.dtype)
    # Weights of the two differences: the 2 x 2 system that matches the exponential integrals phi_2 and phi_3.
    ratio = (log_snr[i - 2] - log_snr[i - 1]) / h
    grow = torch.expm1(-h)
    phi_2 = -grow / h - 1
    first, second = phi_2 / grow, 2 * (-phi_2 / h - 0.5) / grow
    older = (first - second) / (1 - ratio)
    return (out + gain * (older * (clean[-2] - clean[-1]) / ratio + (first - older) * (now - clean[-1]))).to(x.dtype)


SAMPLERS: dict[str, Callable[[Velocity, Tensor, Tensor], Tensor]] = {"unipc": unipc, "euler": euler}
