"""K explained without training: how far K breakpoints are from the dense integral along the curved path.

    python benchmarks/k_quadrature.py docs/images/k_quadrature.png benchmarks/results/k_quadrature.md

Random cameras around a fisheye scene, the default periods of a 21 x 30 x 52 grid; error is the root mean square over
tokens, rays, coordinates and frequencies of |phasor with K - phasor with 513|.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from curvedray import Lens, TokenGrid
from curvedray.bench.accuracy import moving_cameras
from curvedray.encoding.curved import OFFSETS, breakpoints, default_frequencies
from curvedray.encoding.geometry import Geometry
from curvedray.files import whole_file
from curvedray.tables import markdown_table

COUNTS, DENSE = (2, 3, 5, 9, 17, 33), 513
SIGMAS = (0.1, 0.4, 0.8, 1.6)
REAL, SAMPLE = TokenGrid(21, 30, 52), TokenGrid(3, 5, 8)


def rms_errors(sigma: float) -> list[float]:
    """One error for each of COUNTS."""
    cameras = moving_cameras(SAMPLE.frames, Lens.from_fov(150.0, 0.8))
    geometry = Geometry.between(cameras, SAMPLE, cameras, default_frequencies(REAL, 192), torch.tensor(OFFSETS))
    mu = torch.empty(SAMPLE.frames, SAMPLE.patches, dtype=torch.float64)
    mu.uniform_(-1.0, 1.5, generator=torch.Generator().manual_seed(1))

    def coefficients(num: int) -> torch.Tensor:
        radii = breakpoints(mu, torch.full_like(mu, sigma), num)
        return torch.stack([torch.stack(geometry.coefficients(radii, query)) for query in range(SAMPLE.frames)])

    dense = coefficients(DENSE)
    return [(coefficients(num) - dense).square().sum(1).mean().sqrt().item() for num in COUNTS]


def main(picture: str, table: str) -> None:
    errors = {sigma: rms_errors(sigma) for sigma in SIGMAS}
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for sigma, values in errors.items():
        axes.loglog([num - 1 for num in COUNTS], values, marker="o", label=f"σ = {sigma:g}")
    guide = [errors[SIGMAS[-1]][-1] * ((COUNTS[-1] - 1) / (num - 1)) ** 2 for num in COUNTS]
    axes.loglog([num - 1 for num in COUNTS], guide, color="0.6", linestyle=":", label="second order")
    axes.set_xticks([num - 1 for num in COUNTS], labels=[str(num) for num in COUNTS])
    axes.minorticks_off()
    axes.set(xlabel="breakpoints K", ylabel="rms error of the phasor", ylim=(None, 1.5))
    axes.set_title("What K buys: distance to the dense integral", loc="left")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    with whole_file(picture) as partial:
        figure.savefig(partial, dpi=130, metadata={"Software": None})
    rows = [[f"{sigma:g}", *(f"{i:.2g}" for i in values)] for sigma, values in errors.items()]
    measured = markdown_table(["sigma", *(f"K = {num}" for num in COUNTS)], rows)
    with whole_file(table) as partial:
        partial.write_text(f"# The K table as a quadrature error\n\n{__doc__.strip()}\n\n{measured}\n")
    sys.stdout.write(Path(table).read_text())


if __name__ == "__main__":
    main(*sys.argv[1:3])
