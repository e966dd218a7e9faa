"""The first thing a stranger runs: one scene, one move, three lenses; distances and camera files beside the videos."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from curvedray.formats import write_cameras
from curvedray.lenses import named_lens
from curvedray.media import write_gif, write_png, write_video
from curvedray.pictures import contact_sheet, radial_picture
from curvedray.preview import preview, scene_near
from curvedray.trajectories import trajectory
from curvedray.world import scene_from_caption

LENSES = ("pinhole-90", "fisheye-150", "fisheye-180")
FPS = 16.0


@dataclass(frozen=True)
class DemoFiles:
    """What the demo wrote, and the sentence that says each path."""

    files: tuple[Path, ...]
    says: tuple[str, ...]


def demo(
    folder: Path,
    caption: str = "a red ball and a blue box in a desert courtyard",
    move: str = "orbit left 40deg smooth",
    frames: int = 49,
    size: tuple[int, int] = (416, 240),
    progress: Callable[[Iterator[tuple], str], Iterator[tuple]] = lambda work, lens: work,
) -> DemoFiles:
    """Render the move through each lens: a video with path and lens grid, a sheet, distances, a camera file."""
    scene = scene_from_caption(caption).scene
    files, says = [], []
    for name in LENSES:
        lens = named_lens(name, *size)
        cameras = trajectory(move, lens, frames, fps=FPS, near=scene_near(scene, lens))
        seen = preview(cameras, scene, progress=lambda work, name=name: progress(work, name))  # type: ignore[misc]
        chosen = torch.linspace(0, frames - 1, 4).round().long()
        radii = radial_picture(seen.rendered.radius[chosen], seen.rendered.valid[chosen])
        write_cameras(cameras, folder / f"{name}.json", format="curvedray")
        files += [
            write_video(seen.video, folder / f"{name}.mp4", FPS, metadata={"move": move, "lens": name}),
            write_gif(seen.rendered.frames[::2], folder / f"{name}.gif", FPS / 2),
            write_png(seen.sheet, folder / f"{name}.png"),
            write_png(contact_sheet(radii, columns=4), folder / f"{name}-distances.png"),
            folder / f"{name}.json",
        ]
        says.append(str(seen.description).splitlines()[0])
    return DemoFiles(tuple(files), tuple(says))
