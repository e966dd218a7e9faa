"""How much of a scene's distances do caption and camera leave open? The variance of token log radius, given both.

    python benchmarks/world_layouts.py

For each of many test clips the same caption and the same cameras are kept and the layout is drawn again several times.
The variance over layouts, averaged over tokens that see a surface in every layout, is what a distance map can say and
nothing else does; it is printed beside the variance over all clips and layouts together.
"""

import argparse
from dataclasses import replace

import torch

from curvedray.cameras import Cameras
from curvedray.world.raycast import render
from curvedray.world.scene import Scene
from curvedray.world.world import world_clip

FRAMES, ROWS, COLS = 5, 8, 12


def log_radii(scene: Scene, cameras: Cameras) -> torch.Tensor:
    """At the centre of each token's patch; NaN where there is no surface."""
    small = replace(cameras, lens=cameras.lens.resized(COLS, ROWS))
    seen = render(scene, small, samples=1)
    return torch.where(seen.valid, seen.radius.double(), torch.nan).log()


def in_layouts(index: int, layouts: int) -> list[torch.Tensor]:
    clips = [world_clip(index, "test", FRAMES, 16, 24, layout=i) for i in range(layouts)]
    return [log_radii(clip.world.scene, clip.cameras) for clip in clips]


def report(clips: int, layouts: int) -> None:
    radii = torch.stack([torch.stack(in_layouts(index, layouts)) for index in range(clips)])  # clip, layout, t, y, x
    known = torch.isfinite(radii).all(1)
    inside = radii.var(1)[known].mean().item()
    total = radii[torch.isfinite(radii)].var().item()
    share = f"{inside / total:.0%} of {total:.4f}"
    print(f"variance of log radius given caption and camera {inside:.4f}, {share} in all")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--layouts", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    report(options.clips, options.layouts)
