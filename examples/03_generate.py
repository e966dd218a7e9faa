"""A prompt and a camera in, a video out. With arguments: a Wan folder or hub id, then an adapter."""

import sys

import curvedray

model = sys.argv[1] if len(sys.argv) > 1 else "embedded"
adapter = sys.argv[2] if len(sys.argv) > 2 else None  # the embedded model has its own
prompt = "a red ball in a snowy courtyard"
made = curvedray.generate(model, prompt, "orbit left 40deg", lens="fisheye-160", adapter=adapter)
curvedray.write_video(made.frames, "orbit.mp4", made.fps)
