"""A prompt and a camera in, a video out. With arguments: a Wan folder or hub id, then an adapter."""

import sys

import curvedray

parts = curvedray.load_parts(*sys.argv[1:3])
made = curvedray.generate(parts.model, "a red ball", "orbit left 40deg", lens="fisheye-160", adapter=parts.adapter)
curvedray.write_video(made.frames, "orbit.mp4", made.fps)
