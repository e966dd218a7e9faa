"""How fast the ray-caster is: `python benchmarks/raycast.py`. CPU seconds of one thread, and seconds by the clock."""

import platform
import time
from collections.abc import Callable

import torch

from curvedray.cameras.named_lenses import named_lens
from curvedray.moves.trajectory import trajectory
from curvedray.world.preview import placed, preview_scene
from curvedray.world.raycast import render
from curvedray.world.world import world_clip


def timed(work: Callable[[], object]) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> None:
    torch.set_num_threads(1)
    path, _ = placed(trajectory("orbit left 40deg", named_lens("fisheye-150", 832, 480), 81), near=3.0)
    world_clip(0)
    clips, clips_cpu = timed(lambda: [world_clip(index) for index in range(32)])
    room, room_cpu = timed(lambda: render(preview_scene(), path))
    print(f"{platform.machine()}, Python {platform.python_version()}, one thread, 2 x 2 rays per pixel")
    print(f"81 frames of 832 x 480, the preview's room: {room:.1f} s, {room_cpu:.1f} CPU s")
    print(
        f"17 frames of 96 x 64, a clip of the world: {32 / clips:.1f} clips per second, {clips_cpu / 32:.3f} CPU s each"
    )


if __name__ == "__main__":
    main()
