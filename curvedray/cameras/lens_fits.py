"""From one lens model to another: exact where the maths allows, else the nearest, always with its error."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras.angles import direction_angle, fibonacci_lattice
from curvedray.cameras.lens import Lens
from curvedray.cameras.other_lens_models import EUCM, DoubleSphere, LensModel, Mei, Pinhole, Radial, ucm_lens
from curvedray.errors import InputError
from curvedray.extras import needed

RAYS = 4000  # compared in a fit, spread evenly over the sphere of directions
LARGEST_FITTED_XI = 10.0
PINHOLE_PIXELS = 1e-3  # rms by which a pinhole may be worse than a tiny xi and still be taken in its place
AT_BOUND = 1e-3  # of the range of xi that was searched: this close to its end, the best lens may lie beyond


@dataclass(frozen=True, eq=False)
class LensFit:
    """A UCM lens and another model of it, and how far apart they are over the directions that land in the image."""

    lens: Lens
    model: LensModel
    rms_pixels: float
    max_pixels: float
    rms_degrees: float
    max_degrees: float
    covered: float  # share of those directions that both of them see
    at_bound: bool = False  # xi is as small or as large as it may be: a lens beyond would be nearer, but is no UCM lens

    def __str__(self) -> str:
        kind, xi = type(self.model).__name__, self.lens.xi.item()
        if self.max_pixels == 0:
            return f"UCM (xi {xi:.4g}) and {kind} are the same lens: 0 pixels and 0 degrees apart."
        seen = "" if self.covered > 0.9995 else f", over the {self.covered:.1%} of the view that both can show"
        bound = f" xi {xi:.4g} is the last that was tried: no UCM lens bends as this one does." if self.at_bound else ""
        return (
            f"UCM (xi {xi:.4g}) and {kind} differ by {self.rms_pixels:.3g} pixels rms ({self.max_pixels:.3g} at most)"
            f" and {self.rms_degrees:.3g} degrees rms ({self.max_degrees:.3g} at most){seen}.{bound}"
        )


def fit_ucm(model: LensModel, max_angle: float = 180.0) -> LensFit:
    """The UCM lens nearest in pixels to `model`, over what its image shows within max_angle degrees of the axis."""
    limit = _radians(max_angle)
    if (lens := model.as_ucm()) is not None:
        return LensFit(replace(lens, max_angle=limit), model, 0.0, 0.0, 0.0, 0.0, 1.0)
    needed("scipy")
    from scipy.optimize import least_squares

    rays = directions_in_image(model, max_angle)
    target = model.project(rays)[0].numpy()
    x, y, z = rays.numpy().T
    # Beyond 90 degrees only xi in (c, 1/c) sees the farthest ray, c = -cos(its angle); the margin keeps off the edge.
    c = max(0.0, -float(z.min()))
    lowest, highest = (1.01 * c, min(LARGEST_FITTED_XI, 0.99 / c)) if c else (0.0, LARGEST_FITTED_XI)
    if lowest >= highest:
        raise InputError(
            "max_angle", "a field that UCM can hold", f"{max_angle:g} degrees", "Fit less of it, say max_angle=150."
        )

    def linear(xi: float) -> tuple[list[np.ndarray], np.ndarray]:
        """Given xi, focal and centre are a straight line through each coordinate; with the pixels it misses by."""
        lines, errors = [], []
        for coordinate, pixel in zip((x, y), target.T, strict=True):
            columns = np.stack([coordinate / (z + xi), np.ones_like(z)], -1)
            lines.append(np.linalg.lstsq(columns, pixel, rcond=None)[0])
            errors.append(columns @ lines[-1] - pixel)
        return lines, np.concatenate(errors)

    def rms(xi: float) -> float:
        return float(np.sqrt(2 * np.square(linear(xi)[1]).mean()))

    start = min(np.linspace(lowest, highest, 42)[1:-1].tolist(), key=rms)

    def missed(v: np.ndarray) -> np.ndarray:
        return linear(float(v[0]))[1]

    solved = least_squares(missed, [start], bounds=(lowest, highest), xtol=1e-12, ftol=1e-12)
    xi = float(solved.x[0])
    if lowest == 0 and rms(0.0) <= rms(xi) + PINHOLE_PIXELS:
        xi = 0.0  # the solver stays inside its bounds, and leaves 1e-14 where a pinhole is meant
    (fx, cx), (fy, cy) = linear(xi)[0]
    fit = compare(replace(ucm_lens(fx, fy, cx, cy, xi, model.size), max_angle=limit), model, rays)
    near_end = min(xi - lowest, highest - xi) <= AT_BOUND * (highest - lowest)
    return replace(fit, at_bound=near_end and fit.rms_pixels > PINHOLE_PIXELS)


def fit_model(kind: type[LensModel], lens: Lens, max_angle: float | None = None) -> LensFit:
    """The model of another kind nearest in pixels to one UCM lens; max_angle defaults to what the kind can follow."""
    if lens.batch_shape:
        raise InputError("fit_model", "one lens", f"leading axes {lens.batch_shape}", "Take one of them: lens[0].")
    lens = lens.to(torch.float64)
    if (same := same_lens(kind, lens)) is not None:
        return LensFit(lens, same, 0.0, 0.0, 0.0, 0.0, 1.0)
    needed("scipy")
    from scipy.optimize import least_squares

    rays = directions_in_image(lens, kind.reach if max_angle is None else max_angle)
    target = lens.project(rays)[0]

    def residual(numbers: np.ndarray) -> np.ndarray:
        return (kind.of(numbers.tolist(), lens.size).formula(rays) - target).reshape(-1).numpy()

    start = [*(lens.focal / (1 + lens.xi)).tolist(), *lens.center.tolist(), *kind.start]
    solved = least_squares(residual, start, x_scale="jac", xtol=1e-12, ftol=1e-12)
    return compare(lens, kind.of(solved.x.tolist(), lens.size), rays)


def same_lens(kind: type[LensModel], lens: Lens) -> LensModel | None:
    """`lens` as another kind, where that kind holds it exactly."""
    (fx, fy), (cx, cy), xi = lens.focal.tolist(), lens.center.tolist(), lens.xi.item()
    if kind is EUCM:
        return EUCM.of_ucm(lens)
    if kind is DoubleSphere:
        return DoubleSphere(fx, fy, cx, cy, xi, 0.0, lens.size)
    if kind is Mei:
        return Mei(xi, 0.0, 0.0, 0.0, 0.0, fx, fy, cx, cy, lens.size)
    if xi == 0 and kind in (Pinhole, Radial):
        return kind.of([fx, fy, cx, cy, *kind.start], lens.size)
    return None


def compare(lens: Lens, model: LensModel, rays: Float[Tensor, "n 3"]) -> LensFit:
    """How far apart a lens and a model put the same rays, in pixels, and how far apart they look from one pixel.

    The model's ray at the pixel it gives a ray is that ray; the lens's own ray there is an unprojection away.
    """
    whole = replace(lens, max_angle=math.pi)  # a ray at the limit must not be lost for leaning a hair beyond it
    ours, seen = whole.project(rays)
    theirs, also_seen = model.project(rays)
    looked, has_ray = whole.unproject(theirs)
    both = seen & also_seen & has_ray
    if not both.any():
        raise InputError("lens models", "a view that both of them see", "none")
    pixels = (ours - theirs)[both].norm(dim=-1)
    degrees = torch.rad2deg(direction_angle(looked[both], rays[both]))
    return LensFit(
        lens,
        model,
        rms_pixels=pixels.square().mean().sqrt().item(),
        max_pixels=pixels.max().item(),
        rms_degrees=degrees.square().mean().sqrt().item(),
        max_degrees=degrees.max().item(),
        covered=both.double().mean().item(),
    )


def directions_in_image(lens: Lens | LensModel, max_angle: float) -> Float[Tensor, "n 3"]:
    """Unit rays spread evenly over the directions within max_angle degrees that land inside the image."""
    limit = _radians(max_angle)
    for _ in range(2):  # once to find how wide the image sees, once to spread all rays inside that
        rays = fibonacci_lattice(RAYS, limit)
        pixels, valid = lens.project(rays)
        inside = valid & (pixels >= 0).all(-1) & (pixels <= pixels.new_tensor(lens.size)).all(-1)
        if not inside.any():
            raise InputError("lens", "an image that sees something around its axis", "nothing lands in it")
        limit = min(limit, 1.05 * torch.arccos(rays[inside, 2].min().clamp(-1, 1)).item())
    return rays[inside]


def _radians(max_angle: float) -> float:
    if not 0 < max_angle <= 180:
        raise InputError("max_angle", "degrees in (0, 180]", max_angle)
    return math.radians(max_angle)
