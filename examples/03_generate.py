"""A prompt and a camera in, a video out. With arguments: a Wan folder or hub id, then an adapter."""

import sys

from curvedray.generation.generate import generate
from curvedray.generation.parts import load_parts
from curvedray.media.video import write_video

parts = load_parts(*sys.argv[1:3])
made = generate(parts.model, "a red ball", "orbit left 40deg", lens="fisheye-160", adapter=parts.adapter)
write_video(made.frames, "orbit.mp4", made.fps)
