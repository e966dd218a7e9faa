"""The exact distances of a blocked-out scene along a path through a lens, and a video that shows both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.media.pictures import enlarged
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap
from curvedray.world.blocks import EYE, Block, block_scene, check_clear
from curvedray.world.preview import check_pixels
from curvedray.world.raycast import Rendered, render, render_frames

PREVIEW_WIDTH = 384  # pixels of each of the two pictures, about


@dataclass(frozen=True, eq=False)
class BlockedOut:
    """What a camera sees of a blocked-out scene: its map, and the frames that explain it."""

    map: RadialMap
    rendered: Rendered
    cameras: Cameras  # in metres

    def preview(self) -> UInt8[Tensor, "t h w 3"]:
        """The scene in grey, beside its distances in colour."""
        colours = radial_picture(self.map.radius, self.map.valid, distance_limits(self.map.radius, self.map.valid))
        both = torch.cat([self.rendered.frames, colours], 2)
        return enlarged(both, max(1, round(2 * PREVIEW_WIDTH / both.shape[2])))


def film_blocks(
    blocks: list[Block],
    move: str | Cameras,
    lens: Lens,
    frames: int,
    eye: float = EYE,
    *,
    placed: bool = False,
    fps: float = 16.0,
    near: float | None = None,
    progress: Callable[[Iterator[tuple]], Iterator[tuple]] = iter,
) -> BlockedOut:
    """The exact map of a blocked-out scene along a move, or along cameras in metres or near distances.

    A near distance is that of what a level camera at the scene's origin sees, or the `near` that is given, in metres.
    The scene stands before the first camera, unless cameras are `placed`: then they stand where they are in the scene's
    own frame. `fps` is for moves in seconds.
    """
    check_pixels(frames, *lens.size)
    scene = block_scene(blocks, eye)
    one = lens[0] if lens.batch_shape else lens
    first = render(scene, Cameras(one, torch.eye(4)[None].to(one.focal), "metric"), samples=1)
    # What is beyond a map's reach says nothing about the scale of a scene.
    own = RadialMap.from_metric(first.radius, first.valid).near if first.valid.any() else 1.0
    near = own if near is None else near
    cameras = (
        trajectory(move, lens, frames, unit="metric", near=near, fps=fps)
        if isinstance(move, str)
        else _in_metres(move, near, placed)
    )
    check_clear(blocks, scene, cameras)
    parts = zip(*progress(render_frames(scene, cameras)), strict=True)
    seen = Rendered(*(torch.from_numpy(np.stack(part)) for part in parts))
    return BlockedOut(RadialMap.from_metric(seen.radius, seen.valid, near), seen, cameras)


def _in_metres(cameras: Cameras, near: float, placed: bool) -> Cameras:
    """A path in metres that starts at the scene's first camera, or one that is placed already."""
    if cameras.unit == "arbitrary":
        fix = "Scale them to metres, or film a move in words (--move)."
        raise InputError(
            "cameras", "a path in metres or near distances, as blocks are in metres", "an unknown scale", fix
        )
    first = cameras if placed else cameras.relative_to_first()
    return replace(first if cameras.unit == "metric" else first.scaled(1 / near), unit="metric")
