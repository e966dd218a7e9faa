"""Is it the lens and the horizon that were asked for? Distortion, pitch, roll, gravity, and dense fields.

Gravity is the up direction in the camera's frame, (0, -1, 0) when level, as GeoCalib has it. The radial model is
x_d = x (1 + k1 r^2 + k2 r^4) with r = tan(theta). For wide fields k1 and k2 are not identifiable (three sound fits of
one lens of 150 degrees give k1 of -0.22, -0.04 and -0.11), so the angle between rays over the field stands beside them.

    t frame   h, w pixels
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.cameras.angles import direction_angle
from curvedray.cameras.lens import pixel_centers
from curvedray.cameras.other_lens_models import Radial
from curvedray.errors import InputError
from curvedray.evaluate.scores import Metric, Score

K1 = Metric("k1", "-", "lower", "|k1 - k1'| of the radial model, against the reference clip's estimate.")
K2 = Metric("k2", "-", "lower", "|k2 - k2'| of the radial model, against the reference clip's estimate.")
PITCH = Metric("Pitch", "deg", "lower", "Mean over frames of the absolute difference of pitch.")
ROLL = Metric("Roll", "deg", "lower", "Mean over frames of the absolute difference of roll, wrapped to 180 degrees.")
GRAVITY = Metric("Gravity", "deg", "lower", "Mean over frames of the angle between the two up directions.")
LATITUDE = Metric("Lat.", "deg", "lower", "Mean over frames and shared valid pixels of the latitude difference.")
UP_VECTORS = Metric(
    "Up", "deg", "lower", "Mean over frames and shared valid pixels of the angle between up-vectors in the image."
)
RAY = Metric("Ray", "deg", "lower", "Mean angle between the two lenses' rays over their shared valid pixels.")
FOV = Metric("FoV", "deg", "lower", "|fov - fov'| across the image, against the requested lens.")
XI = Metric("xi", "-", "lower", "|xi - xi'| of the unified camera model, against the requested lens.")
METRICS = (K1, K2, PITCH, ROLL, GRAVITY, LATITUDE, UP_VECTORS, RAY, FOV, XI)


AnyLens = Lens | Radial  # Radial is GeoCalib's: a pinhole whose points are pushed by 1 + k1 r^2 + k2 r^4


def radial_coefficients(xi: float) -> tuple[float, float]:
    """k1 and k2 of a UCM lens near its axis: with a = xi / (1 + xi), -a/2 and a/8 + a^2/4."""
    a = xi / (1 + xi)
    return -a / 2, a / 8 + a * a / 4


def ray_error(a: AnyLens, b: AnyLens) -> float:
    """Mean angle in degrees between the rays of two lenses at the same pixels: well defined for every lens."""
    if a.size != b.size:
        raise InputError(
            "lens", f"an image of {a.size[0]} x {a.size[1]}", f"{b.size[0]} x {b.size[1]}", "Resize it first."
        )
    pixels = pixel_centers(a.size, torch.zeros(1, dtype=torch.float64))
    (rays_a, valid_a), (rays_b, valid_b) = a.unproject(pixels), b.unproject(pixels)
    both = valid_a & valid_b
    if not both.any():
        raise InputError("lenses", "a pixel that both can see", "none")
    return float(torch.rad2deg(direction_angle(rays_a[both], rays_b[both])).mean())


@dataclass(frozen=True)
class OrientationErrors:
    """Mean errors of one clip's horizon, in degrees."""

    pitch: float
    roll: float
    gravity: float
    latitude: float
    up: float

    def scores(self, clip: str) -> list[Score]:
        values = (self.pitch, self.roll, self.gravity, self.latitude, self.up)
        metrics = (PITCH, ROLL, GRAVITY, LATITUDE, UP_VECTORS)
        return [metric.of(clip, value) for metric, value in zip(metrics, values, strict=True)]


def orientation_errors(
    up: Float[Tensor, "t 3"], lens: AnyLens, true_up: Float[Tensor, "t 3"], true_lens: AnyLens
) -> OrientationErrors:
    """Errors of estimated up directions and lens against true ones, a mean over frames."""
    a, b = (x.double() / x.double().norm(dim=-1, keepdim=True) for x in (up, true_up))
    roll_a, pitch_a = roll_and_pitch(a)
    roll_b, pitch_b = roll_and_pitch(b)
    dense = torch.tensor([field_errors(x, lens, y, true_lens) for x, y in zip(a, b, strict=True)]).mean(0)
    return OrientationErrors(
        pitch=float(torch.rad2deg((pitch_a - pitch_b).abs()).mean()),
        roll=float(torch.rad2deg(wrapped(roll_a - roll_b).abs()).mean()),
        gravity=float(torch.rad2deg(direction_angle(a, b)).mean()),
        latitude=float(dense[0]),
        up=float(dense[1]),
    )


def up_directions(world_from_camera: Float[Tensor, "t 4 4"]) -> Float[Tensor, "t 3"]:
    """Where up, -y of a gravity-aligned world, lies in each camera's frame."""
    return -world_from_camera[:, 1, :3]


def roll_and_pitch(up: Float[Tensor, "t 3"]) -> tuple[Float[Tensor, " t"], Float[Tensor, " t"]]:
    """Angles in radians such that up = (-sin roll cos pitch, -cos roll cos pitch, sin pitch)."""
    return torch.atan2(-up[:, 0], -up[:, 1]), torch.asin(up[:, 2].clamp(-1, 1))


def wrapped(angle: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """An angle in (-pi, pi]: 179 and -179 degrees are 2 apart, not 358."""
    return torch.atan2(angle.sin(), angle.cos())


def field_errors(
    up: Float[Tensor, "3"], lens: AnyLens, true_up: Float[Tensor, "3"], true_lens: AnyLens
) -> tuple[float, float]:
    """Mean latitude and up-vector errors in degrees over pixels that both lenses see."""
    latitude_a, vector_a, valid_a = perspective_field(up, lens)
    latitude_b, vector_b, valid_b = perspective_field(true_up, true_lens)
    both = valid_a & valid_b
    if not both.any():
        raise InputError("lenses", "a pixel that both can see", "none")
    turn = direction_angle(vector_a[both], vector_b[both])
    return float(torch.rad2deg((latitude_a - latitude_b)[both].abs().mean())), float(torch.rad2deg(turn.mean()))


def perspective_field(
    up: Float[Tensor, "3"], lens: AnyLens
) -> tuple[Float[Tensor, "h w"], Float[Tensor, "h w 2"], Bool[Tensor, "h w"]]:
    """Every pixel's latitude in radians, the unit direction in which its ray moves when pushed up, and which exist.

    The direction is the exact derivative of the lens's projection, not a finite step.
    """
    rays, valid = lens.unproject(pixel_centers(lens.size, up))
    latitude = torch.asin((rays @ up).clamp(-1, 1))
    push = up.expand_as(rays).contiguous()
    moved = torch.func.jvp(lambda points: lens.project(points)[0], (rays,), (push,))[1]
    length = moved.norm(dim=-1)
    return latitude, moved / length.clamp_min(1e-12)[..., None], valid & (length > 1e-9)


def lens_scores(clip: str, estimate: AnyLens, requested: Lens) -> list[Score]:
    """The angular ray error against the requested lens, resized to the estimate's image; of a lens of the same model
    also the field of view's and xi's. Of a lens that changes from frame to frame, the mean over frames."""
    each = [requested[i] for i in range(requested.batch_shape[0])] if requested.batch_shape else [requested]

    def mean(error: Callable[[Lens], float]) -> float:
        return sum(map(error, each)) / len(each)

    scores = [RAY.of(clip, mean(lambda lens: ray_error(estimate, lens.resized(*estimate.size))))]
    if isinstance(estimate, Lens):
        scores.append(FOV.of(clip, mean(lambda lens: float((estimate.hfov - lens.hfov).abs()))))
        scores.append(XI.of(clip, mean(lambda lens: float((estimate.xi - lens.xi).abs()))))
    return scores


def coefficient_scores(clip: str, estimate: AnyLens, reference: AnyLens) -> list[Score]:
    """The paper's k1 and k2: the generated clip's estimate against the reference clip's."""
    ours, theirs = (
        radial_coefficients(float(x.xi)) if isinstance(x, Lens) else (x.k1, x.k2) for x in (estimate, reference)
    )
    return [K1.of(clip, abs(ours[0] - theirs[0])), K2.of(clip, abs(ours[1] - theirs[1]))]
