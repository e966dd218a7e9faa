"""Look before you generate: what a camera would see in a room with straight lines, its path, and its lens.

The room is ray-cast exactly, so what bends in the preview is what the lens bends.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.inputs import megabytes
from curvedray.media.canvas import PAPER
from curvedray.media.pictures import PathPlot, contact_sheet, lens_grid
from curvedray.moves.describe import Description, describe
from curvedray.radial.map import near_distance
from curvedray.world.courts import footprint
from curvedray.world.raycast import LENS_CHUNK, Rendered, render, render_frames
from curvedray.world.scene import Room, Scene, Thing
from curvedray.world.themes import paint
from curvedray.world.world import scene_from_caption

NEAR = 3.0  # metres: in the preview's own room a near distance reaches exactly to the ball in its middle
MOST_MEMORY = 4 * 10**9  # bytes while a preview is drawn: 81 frames of 1920 x 1080 take less
BYTES_HELD = 18  # per pixel of all frames: colours, radius and surface, and the colours again beside the path
BYTES_DRAWN, BYTES_OF_RAYS = 100, 550  # per pixel of one frame: of its pictures, and of the rays made at once
LONGEST_PATH = 10_000.0  # metres from the first camera; farther out there is nothing to see
SHEET_FRAMES, SHEET_COLUMNS, SHEET_WIDTH = 8, 4, 400  # frames in all, frames per row, largest width of each in pixels
ROOM = Room(
    walls=(paint("c9785a"), paint("5b86b8"), paint("7aa06a"), paint("9a78b0")),
    stripes=(paint("efd3b8"), paint("c3d7ec"), paint("cfe3c2"), paint("e0cfea")),
    tiles=(paint("d6cbb6"), paint("a39a8a")),
    sky=(paint("e3eef6"), paint("5f9bd8")),
    spacing=2.0,
    stripe=0.5,
    softness=0.03,
    ink=0.45,
)


@dataclass(frozen=True, eq=False)
class Preview:
    """A preview's pictures, and the numbers behind them. `scale` is metres of the room per unit of the path."""

    video: UInt8[Tensor, "t h w 3"]
    sheet: UInt8[Tensor, "height width 3"]
    rendered: Rendered
    description: Description
    scale: float


def preview(
    cameras: Cameras,
    scene: Scene | None = None,
    title: str = "",
    *,
    progress: Callable[[Iterator[tuple]], Iterator[tuple]] = iter,
) -> Preview:
    """Render what these cameras would see, beside their path and their lens. `progress` may wrap the loop over frames.

    The first camera stands in the middle of the court, level. Metres are metres; a near distance is the scene's own
    (the distance of the ball in the preview's room); a path of unknown unit is made as long as one near distance.
    """
    check_pixels(len(cameras), *cameras.lens.size)
    description = describe(cameras)
    path, scale = placed(cameras, scene_near(scene, cameras.frame_lens[0]))
    room = enclosing(scene or preview_scene(), path)
    seen = _gathered(progress(render_frames(room, path)), len(cameras), *cameras.lens.size)
    title = title or description.looks_like
    return Preview(
        beside_path(seen.frames, cameras, title), _sheet(seen.frames, cameras, title), seen, description, scale
    )


def check_pixels(frames: int, width: int, height: int) -> None:
    """Refuse more than can be drawn in memory, by an estimate."""
    needs = memory_of(frames, width, height)
    if needs > MOST_MEMORY:
        got = f"{frames} frames of {width} x {height}, which take about {megabytes(needs)}"
        fix = "Ask for a smaller size or fewer frames."
        raise InputError("preview", f"what can be drawn in {megabytes(MOST_MEMORY)} of memory", got, fix)


def memory_of(frames: int, width: int, height: int) -> int:
    """About how many bytes drawing takes at its peak, beyond what Python and torch take themselves."""
    pixels = width * height
    return BYTES_HELD * frames * pixels + BYTES_DRAWN * pixels + BYTES_OF_RAYS * min(pixels, LENS_CHUNK)


def _gathered(frames: Iterator[tuple], count: int, width: int, height: int) -> Rendered:
    """Frames put where they stay as they are drawn, so that none is held twice."""
    colours = torch.empty(count, height, width, 3, dtype=torch.uint8)
    radius = torch.empty(count, height, width)
    surface = torch.empty(count, height, width, dtype=torch.int8)
    for index, parts in enumerate(frames):
        for place, part in zip((colours, radius, surface), parts, strict=True):
            place[index] = torch.from_numpy(part)
    return Rendered(colours, radius, surface)


def render_caption(text: str, cameras: Cameras, seed: int = 0) -> Rendered:
    """What the cameras would see of one scene that a caption asks for; a caption does not say where things stand."""
    scene = scene_from_caption(text, seed).scene
    path, _ = placed(cameras, scene_near(scene, cameras.frame_lens[0]))
    return render(enclosing(scene, path), path)


def preview_scene() -> Scene:
    """The preview's room: a striped ball one near distance ahead, a framed box and ringed pillars around it."""
    white = paint("f4f1ea")
    ball = Thing("ball", 0.0, NEAR, 0.75, 1.5, paint("d0312d"), white)
    box = Thing("box", 2.6, 4.3, 0.7, 1.5, paint("2c62c9"), white, yaw=0.5)
    pillars = [(-2.4, 4.6, "e9b824"), (4.2, -1.5, "2e9a47"), (-3.6, -2.6, "e9b824"), (-4.6, 1.2, "7d3bb0")]
    behind = Thing("box", 1.2, -4.4, 0.8, 1.6, paint("f07d1e"), white, yaw=0.2)
    return Scene(ROOM, (ball, box, behind, *(Thing("pillar", x, z, 0.35, 3.0, paint(i), white) for x, z, i in pillars)))


def scene_near(scene: Scene | None, lens: Lens) -> float:
    """The near distance, in metres, of what a camera in the middle of the court sees of a scene, or of our own room."""
    if scene is None:
        return NEAR
    seen = render(scene, Cameras(lens, torch.eye(4)[None].to(lens.focal), "metric"), samples=1)
    near = near_distance(seen.radius, seen.valid)
    return NEAR if near is None else near


def placed(cameras: Cameras, near: float) -> tuple[Cameras, float]:
    """The path in metres from the middle of the court, and how many metres one of its units became."""
    path = cameras.relative_to_first()
    longest = path.world_from_camera[:, :3, 3].double().norm(dim=-1).max().item()
    scale = 1.0 if cameras.unit == "metric" else near
    if cameras.unit == "arbitrary":
        scale = near / longest if longest > near / LONGEST_PATH else 1.0
    if longest * scale > LONGEST_PATH:
        expected = f"at most {LONGEST_PATH:.0f} m from the first camera"
        raise InputError("path", expected, f"{longest * scale:.3g} m", "Is its unit the one you named?")
    poses = path.world_from_camera.clone()
    poses[:, :3, 3] *= scale
    return replace(path, world_from_camera=poses, unit="metric"), scale


def enclosing(scene: Scene, path: Cameras) -> Scene:
    """The scene in a court large and deep enough for the path; things that the path runs into are taken away."""
    positions = path.world_from_camera[:, :3, 3].double()
    half = max(scene.room.half, positions[:, 0].abs().max().item() + 2.0)
    deep = max(scene.room.half_depth, (positions[:, 2] - scene.room.ahead).abs().max().item() + 2.0)
    floor = max(scene.room.floor, positions[:, 1].max().item() + 0.6)
    room = replace(scene.room, half=half, deep=deep, floor=floor)
    return Scene(room, tuple(thing for thing in scene.things if not _in_the_way(thing, positions, floor)))


def _in_the_way(thing: Thing, positions: Tensor, floor: float) -> bool:
    level = positions[:, 1] > floor - max(thing.height, 2 * thing.radius) - 0.1
    time = torch.linspace(0, 1, len(positions), dtype=positions.dtype)[:, None]
    moved = time * positions.new_tensor(thing.motion)
    return any(
        bool((level & ((positions[:, ::2] - moved - positions.new_tensor([x, z])).norm(dim=-1) < radius + 0.1)).any())
        for x, z, radius in footprint(thing)
    )


def beside_path(frames: Tensor, cameras: Cameras, title: str) -> Tensor:
    """Every frame, and in a column beside it the path with this frame's camera marked, and the lens."""
    count, height, width, _ = frames.shape
    tall, column = max(height, 320), max(240, 2 * round(0.36 * height))
    plot = PathPlot.of(cameras, (column, tall - tall * 2 // 5), title)
    lens = cameras.frame_lens
    grids = [lens_grid(lens[i], (column, tall * 2 // 5), _lens_words(lens[i])) for i in _pictured(lens)]
    # H.264 wants even sides.
    video = torch.tensor(PAPER, dtype=torch.uint8).repeat(count, tall + tall % 2, width + column + width % 2, 1)
    top = (tall - height) // 2
    video[:, top : top + height, :width] = frames
    for frame in range(count):
        side = torch.cat([plot.at(frame), grids[min(frame, len(grids) - 1)]])
        video[frame, :tall, width : width + column] = side
    return video


def _sheet(frames: Tensor, cameras: Cameras, title: str) -> Tensor:
    """Some frames with their numbers, and below them the path and the lens."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, min(SHEET_FRAMES, len(frames))).round().astype(int))
    small = frames[torch.from_numpy(chosen)]
    if small.shape[2] > SHEET_WIDTH:
        shape = (max(1, round(small.shape[1] * SHEET_WIDTH / small.shape[2])), SHEET_WIDTH)
        small = torch.cat([_shrunk(frame[None], shape) for frame in small])
    columns = math.ceil(len(chosen) / math.ceil(len(chosen) / SHEET_COLUMNS))
    upper = contact_sheet(small.contiguous(), columns, [f"frame {i}" for i in chosen])
    width, height = max(upper.shape[1], 640), 360
    plot = PathPlot.of(cameras, (width - width * 2 // 5, height), title)
    lens = cameras.frame_lens[0]
    lower = torch.cat([plot.at(), lens_grid(lens, (width * 2 // 5, height), _lens_words(lens))], 1)
    sheet = torch.tensor(PAPER, dtype=torch.uint8).repeat(upper.shape[0] + height, width, 1)
    sheet[: upper.shape[0], : upper.shape[1]] = upper
    sheet[upper.shape[0] :] = lower
    return sheet


def _shrunk(frames: UInt8[Tensor, "t h w 3"], shape: tuple[int, int]) -> UInt8[Tensor, "t y x 3"]:
    return F.interpolate(frames.movedim(-1, 1).float(), shape, mode="area").round().to(torch.uint8).movedim(1, -1)


def _pictured(lens: Lens) -> range:
    """The frames whose lens needs a picture of its own: the first, or all where it changes."""
    still = all(bool((i == i[:1]).all()) for i in (lens.focal, lens.center, lens.xi))
    return range(1 if still else len(lens.xi))


def _lens_words(lens: Lens) -> str:
    return f"{lens.hfov.item():.0f}° across, xi {lens.xi.item():.2f}"
