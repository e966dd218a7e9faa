"""The page's plots as lines and numbers, which its template draws: two paths from above and from the side, and errors.

Paths are relative to the first camera (x right, y down, z forward), each divided by its own largest distance from the
start, so that distance is the unit of both axes.

    t frame
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from curvedray.cameras.angles import rotation_angle
from curvedray.evaluate.report import number_text
from curvedray.evaluate.results import ClipResult
from curvedray.media.canvas import round_step

WIDTH, HEIGHT = 320, 240
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 22, 34  # margins, for numbers and the axes' names
SMALL_ANGLE = 0.5  # degrees; smaller errors are not stretched to fill their plot
NARROWEST = 0.3  # of the unit; a path that stays in less is not stretched to fill its plot
LOOKS = 7  # frames that show where the camera looks


@dataclass(frozen=True)
class Line:
    """A polyline: `kind` is a class of the style sheet."""

    kind: str
    points: Float[np.ndarray, "n 2"]
    width: float = 1.0
    dashed: bool = False
    faint: bool = False

    @property
    def path(self) -> str:
        return "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


@dataclass(frozen=True)
class Label:
    text: str
    x: float
    y: float
    anchor: str = "middle"  # start, middle or end


@dataclass
class Figure:
    """What is drawn in WIDTH x HEIGHT, y down."""

    caption: str
    lines: list[Line] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    dot: tuple[float, float] | None = None
    size: tuple[int, int] = (WIDTH, HEIGHT)


def figures(result: ClipResult, stride: int) -> list[Figure]:
    """A clip's three plots; none without paths."""
    if not result.requested:
        return []
    asked, got = np.array(result.requested), np.array(result.recovered)
    above = path_figure("The path from above", asked, got, (0, 2), (1, -1), ("right", "forward"))
    side = path_figure("The path from the side", asked, got, (2, 1), (1, 1), ("forward", "up"))
    return [above, side, error_figure(np.degrees(rotation_angle(asked[:, :, :3], got[:, :, :3])), stride)]


def path_figure(
    caption: str,
    asked: Float[np.ndarray, "t 3 4"],
    got: Float[np.ndarray, "t 3 4"],
    axes: tuple[int, int],
    signs: tuple[int, int],
    names: tuple[str, str],
) -> Figure:
    """Two paths on two axes of the first camera, equal scales, with a tick at some frames for where the camera looks.

    `signs` turn those axes into the page's, right and down; numbers count right and up.
    """
    points = [path[:, list(axes), 3] * signs for path in (asked, got)]
    reach = max(float(np.ptp(np.concatenate(points), axis=0).max()), NARROWEST)
    # On a static clip the ticks are all there is to see.
    looks = [path[:, list(axes), 2] * signs * 0.16 * reach for path in (asked, got)]
    every = np.concatenate([*points, *(point + look for point, look in zip(points, looks, strict=True))])
    low, high = every.min(0), every.max(0)
    box = np.array([WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM])
    scale = float((box / np.maximum(high - low, NARROWEST)).min()) * 0.94
    middle, centre = (low + high) / 2, np.array([LEFT, TOP]) + box / 2

    def at(where: np.ndarray) -> np.ndarray:
        return (where - middle) * scale + centre

    figure = Figure(f"{caption}. Unit: the path's largest distance from its start.")
    _add_scale(figure, middle, box / scale, at, names)
    for point, look, kind in zip(points, looks, ("ask", "got"), strict=True):
        for index in np.linspace(0, len(point) - 1, min(LOOKS, len(point))).round().astype(int):
            figure.lines.append(Line(kind, at(np.stack([point[index], point[index] + look[index]])), faint=True))
        figure.lines.append(Line(kind, at(point), 2.4, dashed=kind == "ask"))
    x, y = at(points[0][0])
    figure.dot = (round(float(x), 1), round(float(y), 1))
    return figure


def _add_scale(
    figure: Figure,
    middle: np.ndarray,
    span: np.ndarray,
    at: Callable[[np.ndarray], np.ndarray],
    names: tuple[str, str],
) -> None:
    """Grid lines at round numbers, the numbers along the bottom and the left, and the axes' names."""
    step = round_step(float(span.max()) / 6)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for axis in (0, 1):
        low, high = middle[axis] - span[axis] / 2, middle[axis] + span[axis] / 2
        for number in np.arange(np.ceil(low / step), np.floor(high / step) + 1):
            value = number * step
            where = float(at(np.array([value, value]))[axis])
            ends = [[where, TOP], [where, bottom]] if axis == 0 else [[LEFT, where], [right, where]]
            figure.lines.append(Line("axis", np.array(ends, dtype=float)))
            text = number_on_axis(value if axis == 0 else -value)
            label = Label(text, where, bottom + 13) if axis == 0 else Label(text, LEFT - 5, where + 4, "end")
            figure.labels.append(label)
    figure.labels.append(Label(f"{names[0]} →", right, HEIGHT - 5, "end"))
    figure.labels.append(Label(f"↑ {names[1]}", 4, 13, "start"))


def number_on_axis(value: float) -> str:
    """A multiple of a round step, without the noise of the product and without a minus before zero."""
    return f"{round(float(value), 6) + 0.0:g}"


def error_figure(degrees: Float[np.ndarray, " t"], stride: int) -> Figure:
    """Rotation error by frame of the video."""
    figure = Figure(f"Rotation error by frame, degrees (largest {number_text(float(degrees.max()))}).")
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    step = round_step(max(float(degrees.max()), SMALL_ANGLE) / 4)
    top = step * np.ceil(max(float(degrees.max()), SMALL_ANGLE) / step - 1e-9)
    x = np.linspace(LEFT, right, len(degrees))

    def height(value: np.ndarray | float) -> np.ndarray:
        return np.asarray(bottom - np.asarray(value) / top * (bottom - TOP), dtype=float)

    for value in (number * step for number in range(round(top / step) + 1)):
        y = float(height(float(value)))
        figure.lines.append(Line("axis", np.array([[LEFT, y], [right, y]])))
        figure.labels.append(Label(number_on_axis(value), LEFT - 5, y + 4, "end"))
    last = len(degrees) - 1
    for index in sorted({0, last // 2, last}):
        figure.labels.append(Label(str(index * stride), float(x[index]), bottom + 13))
    figure.labels += [Label("frame →", right, HEIGHT - 5, "end"), Label("↑ degrees", 4, 13, "start")]
    figure.lines.append(Line("got", np.stack([x, height(degrees)], 1), 2.4))
    return figure
