"""One move through three lenses, side by side, as a looping GIF: the picture at the top of the README.

python examples/04_three_lenses.py [out.gif]
"""

import sys

import torch

from curvedray.cameras.named_lenses import named_lens
from curvedray.media.video import write_gif
from curvedray.moves.trajectory import trajectory
from curvedray.world.preview import placed, preview_scene, scene_near
from curvedray.world.raycast import render

frames = []
for name in ("pinhole-90", "fisheye-150", "fisheye-180"):
    lens = named_lens(name, 256, 176)
    there = trajectory("orbit left 50deg smooth and pedestal up 0.25 smooth", lens, frames=17)
    cameras, _ = placed(there, scene_near(None, lens))
    frames.append(render(preview_scene(), cameras).frames)
loop = torch.cat(frames, dim=2)
loop = torch.cat([loop, loop.flip(0)[1:-1]])  # there and back, so that it loops without a jump
write_gif(loop, sys.argv[1] if len(sys.argv) > 1 else "three_lenses.gif", fps=10)
