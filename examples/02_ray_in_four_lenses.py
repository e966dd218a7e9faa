"""One ray, seen by the same camera through four lenses: in space it is a line; only the lens makes it a curve.

python examples/02_ray_in_four_lenses.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.collections import LineCollection
from torch import Tensor

from curvedray import Lens
from curvedray.encoding.curved import breakpoints

WIDTH, HEIGHT = 832, 480
LENSES = [
    ("pinhole, 90°", 90.0, 0.0),
    ("wide angle, 130°", 130.0, 0.5),
    ("fisheye, 160°", 160.0, 0.9),
    ("fisheye, 200°", 200.0, 1.2),
]
MU, SIGMA, K = torch.tensor(0.9), torch.tensor(1.9), 5  # log-radius: somewhere between 0.4 and 16 away
ORIGIN = torch.tensor([-2.9, 0.55, 1.2])  # the source camera, in the query camera's frame (x right, y down, z forward)
DIRECTION = torch.nn.functional.normalize(torch.tensor([1.0, 0.0, 0.05]), dim=0)
HALF_WIDTH, HALF_HEIGHT, BACK, FRONT = 3.2, 1.6, -1.0, 9.0  # a corridor, so that the eye can see what the lens does


def on_ray(radii: Tensor) -> Tensor:
    return ORIGIN + radii[:, None] * DIRECTION


def corridor() -> list[Tensor]:
    """Lines along the corridor and around it."""
    along = torch.linspace(0, 1, 400)
    corners = [
        (-HALF_WIDTH, -HALF_HEIGHT),
        (HALF_WIDTH, -HALF_HEIGHT),
        (HALF_WIDTH, HALF_HEIGHT),
        (-HALF_WIDTH, HALF_HEIGHT),
    ]
    sides = list(zip(corners, corners[1:] + corners[:1], strict=True))
    depth = BACK + (FRONT - BACK) * along
    lines = []
    for (x0, y0), (x1, y1) in sides:
        for step in torch.linspace(0, 1, 9)[:-1]:
            x, y = x0 + (x1 - x0) * step, y0 + (y1 - y0) * step
            lines.append(torch.stack([x.expand_as(depth), y.expand_as(depth), depth], -1))
        for z in torch.arange(BACK, FRONT + 0.1, 1.0):
            lines.append(torch.stack([x0 + (x1 - x0) * along, y0 + (y1 - y0) * along, z.expand_as(along)], -1))
    return lines


def drawn(lens: Lens, points: Tensor) -> Tensor:
    """Pixels, with a gap (NaN) wherever the lens sees nothing."""
    pixels, seen = lens.project(points)
    return torch.where(seen[:, None], pixels, float("nan"))


def draw(axes: plt.Axes, name: str, lens: Lens) -> LineCollection:
    axes.set_facecolor("#10131c")
    for line in corridor():
        axes.plot(*drawn(lens, line).T, color="#39415a", linewidth=0.6, zorder=1)
    log_radius = torch.linspace(MU - SIGMA, MU + SIGMA, 600)
    path = drawn(lens, on_ray(log_radius.exp()))
    pieces = LineCollection(list(torch.stack([path[:-1], path[1:]], 1).numpy()), cmap="plasma", linewidth=4.5, zorder=3)
    pieces.set_array(log_radius[:-1].numpy())
    pieces.set_capstyle("round")
    axes.add_collection(pieces)
    stops = drawn(lens, on_ray(breakpoints(MU, SIGMA, K)))
    axes.plot(*stops[[0, -1]].T, color="#9aa3bd", linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
    axes.plot(*stops.T, color="white", linewidth=1.0, zorder=4)
    axes.scatter(*stops.T, s=42, color="white", edgecolor="#10131c", linewidth=1.2, zorder=5)
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0), xticks=[], yticks=[], aspect="equal")
    axes.set_title(name, fontsize=12, loc="left", color="#222222")
    return pieces


def main(path: str) -> None:
    figure, panels = plt.subplots(2, 2, figsize=(11, 7.4), layout="constrained")
    for axes, (name, fov, xi) in zip(panels.flat, LENSES, strict=True):
        pieces = draw(axes, f"{name}, ξ = {xi:g}", Lens.from_fov(fov, xi, WIDTH, HEIGHT))
    bar = figure.colorbar(pieces, ax=panels, shrink=0.6, pad=0.02)
    ticks = torch.tensor([0.5, 1, 2, 4, 8, 16])
    bar.set_ticks(ticks.log().tolist(), labels=[f"{t:g}" for t in ticks.tolist()])
    bar.set_label("distance along the ray")
    figure.suptitle("One ray, one camera, four lenses: a token's possible places", fontsize=15, fontweight="bold")
    note = (
        "coloured: where the token may be   ·   white: the K = 5 breakpoints CRePE integrates over   ·   dashed: K = 2"
    )
    figure.supxlabel(note, fontsize=10, color="#444444")
    figure.savefig(path, dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ray_in_four_lenses.png")
