"""Two videos to score: one that obeys its camera, one that does not. About ten seconds.

python examples/05_score_videos.py clips
curvedray evaluate clips/videos --cameras clips/cameras --stride 2 -o report
"""

import sys
from pathlib import Path

from curvedray.cameras.named_lenses import named_lens
from curvedray.formats import write_cameras
from curvedray.media.video import write_video
from curvedray.moves.trajectory import trajectory
from curvedray.world.preview import preview

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "clips")
lens = named_lens("fisheye-150", 416, 240)
for name, asked, shown in (
    ("obeys", "orbit left 40deg", "orbit left 40deg"),
    ("disobeys", "orbit left 40deg", "truck right 0.5"),
):
    write_cameras(trajectory(asked, lens, frames=9), folder / "cameras" / f"{name}.json")
    write_video(preview(trajectory(shown, lens, frames=9)).rendered.frames, folder / "videos" / f"{name}.mp4")
