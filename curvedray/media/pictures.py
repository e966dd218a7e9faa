"""Pictures that explain: a path with its frusta in 3-D, a lens as a grid, contact sheets.

t frame   h row   w column
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.media.canvas import FAINT, FINE, GRID, INK, PAPER, as_image, font, new_page, round_step, shrunk, write

if TYPE_CHECKING:
    from PIL.Image import Image

START, END, NOW = (64, 196, 190), (255, 138, 76), (255, 221, 87)  # the path's first and last frame, and this one
SIDE_POINTS = 18  # of each edge of a frustum's curved image
LEGEND_ROOM = (230, 150)  # a smaller plot has no legend
UNIT_WORDS = {"metric": "m", "near": "x near distance", "arbitrary": "of the path's unit"}


@dataclass(frozen=True)
class PathPlot:
    """A 3-D plot of a path, drawn once, on which any frame's camera can be marked."""

    size: tuple[int, int]
    background: "Image"
    frusta: tuple[ndarray, ...]  # of each frame: the centre, then its image's outline, in fine pixels

    @classmethod
    def of(cls, cameras: Cameras, size: tuple[int, int], title: str = "", shown: int = 6) -> "PathPlot":
        """Seen from behind, above and to the left; `shown` frusta along the path and the path's shadow on a grid.

        Where there is room, a line below says which end is which and how wide the grid's squares are.
        """
        if cameras.batch_shape:
            raise InputError("path plot", "one path", f"leading axes {cameras.batch_shape}")
        poses = cameras.relative_to_first().world_from_camera.detach().cpu().double().numpy()
        centres = poses[:, :3, 3]
        extent = float(np.ptp(centres, axis=0).max())
        outlines = frustum_outlines(cameras) * (0.36 * extent if extent > 1e-6 else 0.4)
        corners = np.concatenate([np.zeros_like(outlines[:, :1]), outlines], 1)
        world = np.einsum("tij,tkj->tki", poses[:, :3, :3], corners) + centres[:, None]
        floor = world[..., 1].max() + 0.12 * max(extent, 0.5)
        shadow = centres.copy()
        shadow[:, 1] = floor
        to_page = _fitted(np.concatenate([world.reshape(-1, 3), shadow]), size, title)

        page, draw = new_page(size)
        step = _grid_step(world.reshape(-1, 3))
        for line in to_page(_floor_lines(world.reshape(-1, 3), floor, step)):
            draw.line(_points(line), fill=GRID, width=FINE)
        draw.line(_points(to_page(shadow)), fill=(70, 75, 88), width=2 * FINE)
        frusta = tuple(to_page(frustum) for frustum in world)
        hues = [_blend(START, END, i / max(1, len(frusta) - 1)) for i in range(len(frusta))]
        for frame in np.unique(np.linspace(0, len(frusta) - 1, shown).round().astype(int)):
            _draw_frustum(draw, frusta[frame], _blend(PAPER, hues[frame], 0.75), FINE)
        for frame in range(len(frusta) - 1):
            draw.line(_points(np.stack([frusta[frame][0], frusta[frame + 1][0]])), fill=hues[frame], width=3 * FINE)
        write(draw, (10, 8), title, INK)
        if size[0] >= LEGEND_ROOM[0] and size[1] >= LEGEND_ROOM[1]:
            _write_legend(draw, size, f"grid {step:.3g} {UNIT_WORDS[cameras.unit]}", len(frusta) > 1)
        return cls(size, page, frusta)

    def at(self, frame: int | None = None) -> UInt8[Tensor, "h w 3"]:
        """The plot, with one frame's camera marked."""
        from PIL import ImageDraw

        page = self.background.copy()
        if frame is not None:
            draw = ImageDraw.Draw(page)
            _draw_frustum(draw, self.frusta[frame], NOW, 2 * FINE)
            x, y = self.frusta[frame][0]
            draw.ellipse([x - 5 * FINE, y - 5 * FINE, x + 5 * FINE, y + 5 * FINE], fill=NOW)
        return shrunk(page, self.size)


def lens_grid(lens: Lens, size: tuple[int, int], title: str = "", step: int = 15) -> UInt8[Tensor, "h w 3"]:
    """Where a lens puts directions: meridians and parallels every `step` degrees, rings of equal angle off its axis.

    A pinhole spreads them ever wider towards the edge; a fisheye keeps them even and bends them. Dark: no ray there.
    """
    lens = lens.to(torch.float64)
    page, draw = new_page(size)
    room = (size[0] - 20, size[1] - (40 if title else 20))
    scale = min(room[0] / lens.size[0], room[1] / lens.size[1]) * FINE
    left = (size[0] * FINE - lens.size[0] * scale) / 2
    top = ((size[1] + (20 if title else 0)) * FINE - lens.size[1] * scale) / 2
    corner = np.array([left, top])
    frame = [left, top, left + lens.size[0] * scale, top + lens.size[1] * scale]
    mask = lens.resized(*(max(1, round(side * scale)) for side in lens.size)).mask()
    page.paste(
        as_image(torch.where(mask[..., None], torch.tensor([30, 34, 43]), 0).to(torch.uint8)), (round(left), round(top))
    )

    def draw_curve(directions: ndarray, colour: tuple[int, int, int], width: int) -> None:
        for piece in _visible_pieces(lens, directions):
            draw.line(_points(piece * scale + corner), fill=colour, width=width, joint="curve")

    fine, half = np.radians(np.arange(-180, 180.5, 1.0)), np.radians(np.arange(-89, 89.5, 1.0))
    for degrees in range(-180, 180, step):
        angle = math.radians(degrees)
        colour, width = ((86, 120, 170), 2 * FINE) if degrees == 0 else ((56, 72, 98), FINE)
        draw_curve(_direction(np.full_like(half, angle), half), colour, width)
        if abs(degrees) < 90:
            draw_curve(_direction(fine, np.full_like(fine, angle)), colour, width)
    for degrees in range(30, 180, 30):
        ring = np.radians(degrees)
        circle = np.stack(
            [np.sin(ring) * np.cos(fine), np.sin(ring) * np.sin(fine), np.full_like(fine, np.cos(ring))], -1
        )
        draw_curve(circle, START, FINE)
        spot, seen = lens.project(torch.tensor([math.sin(ring), 0.0, math.cos(ring)], dtype=torch.float64))
        if seen and 0 <= spot[0] <= lens.size[0] - 24 * FINE / scale:
            write(draw, tuple(((spot.numpy() * scale + corner) / FINE + [3, 1]).tolist()), f"{degrees}°", START, 12)
    draw.rectangle(frame, outline=FAINT, width=FINE)
    write(draw, (10, 8), title, INK)
    return shrunk(page, size)


def contact_sheet(
    frames: UInt8[Tensor, "t h w 3"], columns: int = 4, labels: Sequence[str] | None = None, gap: int = 8
) -> UInt8[Tensor, "height width 3"]:
    """Frames side by side, row by row, with a word on each that has one."""
    from PIL import ImageDraw

    count, height, width, _ = frames.shape
    if count < 1 or columns < 1:
        raise InputError("contact sheet", "at least one frame and one column", f"{count} and {columns}")
    if labels is not None and len(labels) != count:
        raise InputError("labels", f"one per frame, {count}", len(labels))
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    sheet = torch.empty(rows * (height + gap) + gap, columns * (width + gap) + gap, 3, dtype=torch.uint8)
    sheet[:] = torch.tensor(PAPER, dtype=torch.uint8)
    for index, frame in enumerate(frames):
        y, x = gap + index // columns * (height + gap), gap + index % columns * (width + gap)
        sheet[y : y + height, x : x + width] = frame
    if labels is None:
        return sheet
    page = as_image(sheet)
    draw = ImageDraw.Draw(page)
    for index, label in enumerate(labels):
        if not label:
            continue  # an empty box would be a speck
        x, y = gap + index % columns * (width + gap), gap + index // columns * (height + gap)
        letters = font(max(11, min(18, height // 14)))
        box = draw.textbbox((x + 6, y + 4), label, font=letters)
        draw.rectangle([box[0] - 4, box[1] - 3, box[2] + 4, box[3] + 3], fill=PAPER)
        draw.text((x + 6, y + 4), label, fill=INK, font=letters)
    return torch.from_numpy(np.array(page))


def enlarged(frames: UInt8[Tensor, "t h w 3"], times: int) -> UInt8[Tensor, "t height width 3"]:
    """Frames a whole number of times larger, smoothly: for the eye, no detail is added."""
    if times == 1:
        return frames
    pixels = F.interpolate(frames.movedim(-1, 1).float(), scale_factor=times, mode="bicubic", align_corners=False)
    return pixels.round().clamp(0, 255).to(torch.uint8).movedim(1, -1).contiguous()


def frustum_outlines(cameras: Cameras) -> Float[ndarray, "t k 3"]:
    """Unit rays around each frame's image, in the camera's frame; where the image circle is nearer, around that."""
    lens = cameras.frame_lens.to("cpu").to(torch.float64)
    steps = torch.linspace(0, 1, SIDE_POINTS + 1, dtype=torch.float64)[:-1]
    width, height = lens.size
    zero, one = torch.zeros_like(steps), torch.ones_like(steps)
    sides = [(steps, zero), (one, steps), (1 - steps, one), (zero, 1 - steps)]
    border = torch.cat([torch.stack([x * width, y * height], -1) for x, y in sides])
    inside = lens.center[:, None]
    whole = border - inside
    # Validity ends once along each line from the centre: halve the interval until the end is found.
    low = torch.zeros(whole.shape[:-1], dtype=torch.float64)
    high = torch.ones_like(low)
    low = torch.where(lens.unproject(inside + whole)[1], high, low)
    for _ in range(30):
        middle = (low + high) / 2
        exists = lens.unproject(inside + middle[..., None] * whole)[1]
        low, high = torch.where(exists, middle, low), torch.where(exists, high, middle)
    return lens.unproject(inside + low[..., None] * whole)[0].numpy()


# -- drawing


def _draw_frustum(draw: Any, points: ndarray, colour: tuple[int, int, int], width: int) -> None:
    centre, outline = points[0], points[1:]
    for corner in outline[::SIDE_POINTS]:
        draw.line(_points(np.stack([centre, corner])), fill=colour, width=width)
    draw.line(_points(np.concatenate([outline, outline[:1]])), fill=colour, width=width, joint="curve")
    top = outline[: SIDE_POINTS + 1]
    draw.line(_points(top), fill=colour, width=2 * width, joint="curve")  # the thick edge is the image's top


def _write_legend(draw: Any, size: tuple[int, int], grid: str, moves: bool) -> None:
    x, y = 10.0, size[1] - 18
    for words, colour in (("first", START), ("last", END)) if moves else ():
        draw.ellipse([x * FINE, (y + 4) * FINE, (x + 7) * FINE, (y + 11) * FINE], fill=colour)
        write(draw, (x + 10, y), words, FAINT, 11)
        x += 18 + font(11 * FINE).getlength(words) / FINE
    write(draw, (x, y), grid, FAINT, 11)


def _grid_step(points: ndarray) -> float:
    """The width of the floor's squares: 1, 2 or 5 times a power of ten, at most 16 of them to the plot's reach."""
    return round_step(_reach(points) / 16)


def _reach(points: ndarray) -> float:
    """How far the floor goes on either side of the middle: beyond the page's edge."""
    return 2.5 * float(np.ptp(points[:, ::2], axis=0).max())


def _floor_lines(points: ndarray, floor: float, step: float) -> Float[ndarray, "k 2 3"]:
    """A square grid below everything."""
    middle, reach = (points.min(0)[::2] + points.max(0)[::2]) / 2, _reach(points)
    first, last = np.floor((middle - reach) / step) * step, np.ceil((middle + reach) / step) * step
    along_z = [[[x, floor, first[1]], [x, floor, last[1]]] for x in np.arange(first[0], last[0] + step / 2, step)]
    along_x = [[[first[0], floor, z], [last[0], floor, z]] for z in np.arange(first[1], last[1] + step / 2, step)]
    return np.array(along_z + along_x)


def _fitted(points: ndarray, size: tuple[int, int], title: str) -> Any:
    """The map from the world to the page: parallel projection, turned 35 degrees, 26 down, everything inside."""
    turn, down = math.radians(35), math.radians(26)
    right = np.array([math.cos(turn), 0, math.sin(turn)])
    ahead = np.array([-math.sin(turn), 0, math.cos(turn)])
    basis = np.stack([right, math.cos(down) * np.array([0, 1.0, 0]) - math.sin(down) * ahead], -1)
    flat = points @ basis
    low, high = flat.min(0), flat.max(0)
    room = np.array([size[0] - 24, size[1] - (48 if title else 24)]) * FINE
    scale = (room / np.maximum(high - low, 1e-9)).min()
    offset = np.array([size[0], size[1] + (24 if title else 0)]) * FINE / 2 - (low + high) / 2 * scale
    return lambda x: x @ basis * scale + offset


def _visible_pieces(lens: Lens, directions: ndarray) -> Iterable[ndarray]:
    """A curve of directions as pixels, cut where it leaves the image or the lens's sight."""
    pixels, seen = lens.project(torch.from_numpy(directions))
    inside = seen & (pixels >= 0).all(-1) & (pixels <= torch.tensor(lens.size)).all(-1)
    piece: list[ndarray] = []
    for pixel, ok in zip(pixels.numpy(), inside.tolist(), strict=True):
        if ok:
            piece.append(pixel)
            continue
        if len(piece) > 1:
            yield np.stack(piece)
        piece = []
    if len(piece) > 1:
        yield np.stack(piece)


def _direction(yaw: ndarray, pitch: ndarray) -> ndarray:
    return np.stack([np.sin(yaw) * np.cos(pitch), -np.sin(pitch), np.cos(yaw) * np.cos(pitch)], -1)


def _blend(a: tuple[int, int, int], b: tuple[int, int, int], share: float) -> tuple[int, int, int]:
    red, green, blue = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return red, green, blue


def _points(line: ndarray) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line]
