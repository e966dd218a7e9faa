"""Where we differ from the paper's formulas: short measurements that say why, without a trained model.

k breakpoint   n path
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.adapter.branches import RadialHead
from curvedray.cameras import Lens
from curvedray.encoding.curved import expected_phasor, lens_coordinates
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.statistics import bootstrap
from curvedray.paper.catalogue import Item
from curvedray.paper.listener import Listener
from curvedray.paper.provenance import Provenance
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.svg import curve_chart
from curvedray.radial.interval import RadialInterval, inward_clamp, straight_through_clamp
from curvedray.radial.loss import radial_loss
from curvedray.tables import markdown_table

KS = (2, 3, 5, 9, 17, 33)
DENSE = 2049
PATHS = 400
TAUGHT = 600  # steps of an optimiser
SEEDS = 6
RATE = 2e-3  # the embedded model's
BOUNDS = (-3.0, 3.0)
Clamp = Callable[[Tensor, float, float], Tensor]
CLAMPS: dict[str, Clamp] = {
    "plain": lambda x, low, high: x.clamp(low, high),
    "straight-through": straight_through_clamp,
    "inward (ours)": inward_clamp,
}


@dataclass(frozen=True)
class Check:
    """A measurement that needs no weights: a table, a sentence, perhaps a curve."""

    measure: Callable[[], tuple[list[str], list[list[str]], str, dict[str, str]]]

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        return ()

    def work(self, setting: Setting) -> Work:
        return Work()

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        head, rows, words, pictures = self.measure()
        made = Provenance.now(entry, setting)
        lines = [f"# {entry.title}", "", *made.lines(), "", markdown_table(head, rows), "", words, ""]
        lines += [f"![{entry.title}]({name})" for name in pictures]
        record = {"item": entry.name, **made.to_json(), "head": head, "rows": rows, "says": words}
        drawn = {name: text.encode() for name, text in pictures.items()}
        return Page("\n".join(lines) + "\n", record, drawn)


def behind_camera() -> tuple[list[str], list[list[str]], str, dict[str, str]]:
    """The quadrature's error by K on paths that pass behind the query camera, for the two coordinates.

    The paper divides by beta and normalises (u, v, 1), which flips the sign where beta < 0: a path that crosses
    beta = 0 jumps. Ours normalises (fx X, fy Y, beta) itself: the same where beta > 0, and continuous.
    """
    ours, papers = _errors(flips=False), _errors(flips=True)
    rows = []
    for index, k in enumerate(KS):
        cells = [interval_text(bootstrap(errors[:, index])) for errors in (papers, ours)]
        rows.append([str(k), *cells])
    rates = [_rate(errors.mean(0)) for errors in (papers, ours)]
    words = (
        f"Mean error of the expected phasor against the integral of {DENSE - 1} segments, over {PATHS} random paths "
        f"that cross beta = 0, 95 % intervals over paths. Doubling the segments divides the error by "
        f"{2 ** rates[0]:.1f} with the paper's coordinate and by {2 ** rates[1]:.1f} with ours: with the jump the sum "
        "converges at first order, without it at second."
    )
    chart = curve_chart(
        "Error of the expected phasor, paths behind the camera",
        {"the paper's": np.log10(papers.mean(0)).tolist(), "ours": np.log10(ours.mean(0)).tolist()},
        [float(np.log2(k - 1)) for k in KS],
        ("log2 of the number of segments", "log10 of the mean error"),
    )
    return ["K", "the paper's coordinate", "ours"], rows, words, {"behind-camera.svg": chart}


def _errors(flips: bool) -> Float[np.ndarray, "n k"]:
    """Errors of a channel's phasor for each K, over random straight paths in space that cross beta = 0."""
    generator = torch.Generator().manual_seed(0)
    lens = Lens.from_fov(torch.tensor(120.0, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64), 96, 64)
    start, way = torch.randn(2, 10 * PATHS, 3, generator=generator, dtype=torch.float64)
    start[:, 2], way[:, 2] = start[:, 2].abs(), -way[:, 2].abs() - 0.5  # they begin in front, and go backwards
    beta = lens_coordinates(_points(start, way, 65), lens)[..., 3]
    crosses = (beta.amin(1) < -0.05) & (beta.amax(1) > 0.05)
    start, way = start[crosses][:PATHS], way[crosses][:PATHS]
    truth = torch.stack(expected_phasor(_phases(start, way, DENSE, lens, flips)), -1)
    found = [torch.stack(expected_phasor(_phases(start, way, k, lens, flips)), -1) - truth for k in KS]
    return torch.stack([error.norm(dim=-1) for error in found], -1).numpy()


def _points(start: Float[Tensor, "n 3"], way: Float[Tensor, "n 3"], count: int) -> Float[Tensor, "n k 3"]:
    """Even steps of log radius along rays, from a third of their middle to three times it."""
    return start[:, None] + torch.logspace(-0.5, 0.5, count, dtype=torch.float64)[:, None] * way[:, None]


def _phases(start: Tensor, way: Tensor, count: int, lens: Lens, flips: bool) -> Float[Tensor, "n k"]:
    """Phases of the u coordinate at a middling frequency."""
    u, _, _, beta = lens_coordinates(_points(start, way, count), lens).unbind(-1)
    if flips:  # the paper's ([u/beta, v/beta, 1] normalised): ours times the sign of beta
        u = torch.where(beta < 0, -u, u)
    return 6.0 * u


def _rate(means: Float[np.ndarray, " k"]) -> float:
    """The order of convergence: minus the slope of log error over log segments, from K = 5 on."""
    segments = np.log(np.array(KS[2:]) - 1)
    return float(-np.polyfit(segments, np.log(means[2:]), 1)[0])


def clamp_gradient() -> tuple[list[str], list[list[str]], str, dict[str, str]]:
    """How a bound on the interval's ends decides what the radial head learns.

    The first interval, mu = 0 and sigma = 3, lies exactly on the bounds of [-3, 3]: what the first step pushes outside
    can only come back where the bound lets gradients through, and must not be driven farther away.
    """
    measured = {name: np.array([_taught(clamp, seed) for seed in range(SEEDS)]) for name, clamp in CLAMPS.items()}
    rows = [[name, *(interval_text(bootstrap(column)) for column in found.T)] for name, found in measured.items()]
    words = (
        f"A radial head after {TAUGHT} AdamW steps at {RATE:g} of the radial loss, on random features that tell the "
        f"target, 1 to 20 near distances; means over {SEEDS} seeds with 95 % intervals. Stuck: ends outside the bounds "
        "that have no gradient back. Far: targets over 12. Largest end: before it is bounded."
    )
    return ["bound", "stuck, %", "loss", "log error", "log error, far", "largest end"], rows, words, {}


def _taught(clamp: Clamp, seed: int) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = RadialHead(64, BOUNDS)
    log_target = torch.rand(1, 256, generator=generator) * float(np.log(20.0))
    features = torch.randn(1, 256, 64, generator=generator)
    features[..., :8] += 2 * log_target[..., None]
    valid = torch.ones(1, 256, dtype=torch.bool)
    optimiser = torch.optim.AdamW(head.parameters(), lr=RATE)
    for _ in range(TAUGHT):
        optimiser.zero_grad()
        loss = radial_loss(_interval(head, features, clamp)[0], log_target.exp(), valid, floor=0.1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
    interval, ends = _interval(head, features, clamp)
    missed = (interval.mu.detach() - log_target).abs()
    far = log_target > float(np.log(12.0))
    largest = max(float(end.detach().abs().max()) for end in ends)
    return [100 * _stuck(ends, clamp), loss.item(), float(missed.mean()), float(missed[far].mean()), largest]


def _interval(head: RadialHead, features: Tensor, clamp: Clamp) -> tuple[RadialInterval, tuple[Tensor, Tensor]]:
    """The head's interval, bounded, and its ends before that."""
    mu, sigma = head.interval(torch.nn.functional.silu(head.hidden(head.norm(features)))).unbind(-1)
    ends = (mu - sigma.abs(), mu + sigma.abs())
    low, high = (clamp(end, *BOUNDS) for end in ends)
    return RadialInterval((low + high) / 2, (high - low) / 2), ends


def _stuck(ends: tuple[Tensor, Tensor], clamp: Clamp) -> float:
    """Share of ends outside the bounds whose gradient towards them is zero, by asking autograd."""
    stuck = []
    for end in ends:
        x = end.detach().requires_grad_(True)
        above, below = x > BOUNDS[1], x < BOUNDS[0]
        inward = torch.where(above, 1.0, -1.0)  # the gradient of a loss that wants it back
        (gradient,) = torch.autograd.grad((clamp(x, *BOUNDS) * inward).sum(), x)
        stuck.append((above | below) & (gradient == 0))
    return float(torch.stack(stuck).float().mean())
