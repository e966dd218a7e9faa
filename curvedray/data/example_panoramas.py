"""Panoramas of the procedural world as a folder: the layout to copy, and something to take clips from."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from curvedray.cameras import Cameras, Lens
from curvedray.data.panoramas import CAMERAS, DEPTH
from curvedray.files import scratch_folder, writing
from curvedray.formats import write_cameras
from curvedray.media.image import write_png
from curvedray.media.video import write_video
from curvedray.radial.map import RadialMap, write_radial_map
from curvedray.world.panorama import panorama_frames
from curvedray.world.paths import FPS, draw_path
from curvedray.world.world import scene


def write_panoramas(
    count: int,
    folder: Path,
    frames: int = 17,
    height: int = 192,
    tick: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Scenes of the world by turns as a video with its track and as a still, each with distances. All, or nothing."""
    captions = {}
    with scratch_folder(folder) as scratch:
        for index in range(count):
            tick(index, count)
            chosen, name = scene(index), f"court-{index:03d}"
            poses = _track(index, frames) if index % 2 == 0 else torch.eye(4)[None]
            both = zip(*panorama_frames(chosen.scene, poses, height), strict=True)
            seen = [torch.from_numpy(np.stack(i)) for i in both]
            write_radial_map(RadialMap.from_metric(seen[1], farthest=np.inf), scratch / f"{name}{DEPTH}.npz")
            if len(poses) > 1:
                write_video(seen[0], scratch / f"{name}.mp4", FPS, crf=8)
                track = Cameras(Lens.from_fov(90.0), poses, "metric", FPS)
                write_cameras(track, scratch / f"{name}{CAMERAS}.json")
            else:
                write_png(seen[0][0], scratch / f"{name}.png")
            captions[name] = chosen.caption
        tick(count, count)
        (scratch / "captions.json").write_text(json.dumps(captions, indent=1))
        with writing(str(folder)):
            folder.mkdir(exist_ok=True)
            for path in sorted(scratch.iterdir()):
                os.replace(path, folder / path.name)


def _track(index: int, frames: int) -> Float[Tensor, "t 4 4"]:
    """A path through scene number `index` that keeps clear of its things, level all along."""
    random = np.random.default_rng([index, 360])
    while (drawn := draw_path(random, scene(index).scene, Lens.from_fov(90.0), frames)) is None:
        pass
    poses = drawn[1].world_from_camera
    yaw = torch.atan2(poses[:, 0, 2], poses[:, 2, 2])
    level = torch.eye(4).repeat(frames, 1, 1)
    level[:, 0, 0] = level[:, 2, 2] = yaw.cos()
    level[:, 0, 2], level[:, 2, 0] = yaw.sin(), -yaw.sin()
    level[:, :3, 3] = poses[:, :3, 3]
    return level
