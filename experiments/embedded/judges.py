"""A second judge that shares nothing with the embedded model: COLMAP, with the lens fixed, beside the estimator.

    python experiments/embedded/judges.py -o experiments/results/embedded/judges.md

Both judge the same films (test clips, the exact map of another layout) and the same renderings of those clips. Where
structure from motion finds no path, rotations are taken from matched bearings alone; where that fails too, the clip is
counted as failed. What is compared is the rotation, which needs no scale.
"""

import argparse
import logging
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from score import films
from torch import Tensor

from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.estimators.colmap import Colmap
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.estimators.embedded import Embedded, poses
from curvedray.evaluate.metrics.pose import pose_errors
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.statistics import bootstrap
from curvedray.files import whole_file
from curvedray.media.pictures import enlarged
from curvedray.models.embedded.model import ADAPTER, WEIGHTS, load_embedded
from curvedray.tables import markdown_table
from curvedray.world.world import WorldClip, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
ZOOM = 4  # features are looked for in enlarged frames
STRIDE = 4


@dataclass(frozen=True)
class Judged:
    """Rotations of one clip, degrees per frame: each judge against what was asked, and against one another."""

    embedded: float
    colmap: float
    apart: float
    by_bearings: bool


def judge(clip: WorldClip, video: Tensor, path: np.ndarray) -> Judged | None:
    """COLMAP's path, or rotations alone, beside the path that the estimator read; None where COLMAP finds neither."""
    width, height = clip.cameras.lens.size
    lens, frames = clip.cameras.lens.sized(ZOOM * width, ZOOM * height), enlarged(video, ZOOM).numpy()
    for motion in ("auto", "rotation"):
        said = Colmap(motion=motion).estimate(frames, lens, clip.id)
        if isinstance(said, Estimate) and said.poses is not None:
            asked = clip.cameras.world_from_camera.double().numpy()[::STRIDE]
            found = said.poses[::STRIDE]
            turns = [pose_errors(*pair).degrees_per_frame for pair in ((asked, path), (asked, found), (found, path))]
            return Judged(*turns, motion == "rotation")
    return None


def row(name: str, clips: list[WorldClip], videos: Tensor, estimator: Embedded) -> list[str]:
    paths = poses(estimator.read(videos))
    judged = [judge(*one) for one in track(list(zip(clips, videos, paths, strict=True)), name)]
    found = [one for one in judged if one is not None]
    means = [bootstrap(np.array([getattr(one, key) for one in found])) for key in ("embedded", "colmap", "apart")]
    by_bearings = sum(one.by_bearings for one in found)
    return [name, *map(interval_text, means), f"{len(found)} of {len(clips)}", str(by_bearings)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    parser.add_argument("--estimator", type=Path, default=ESTIMATOR)
    parser.add_argument("--adapter", type=Path, default=ADAPTER)
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    model, estimator = load_embedded(options.model), Embedded.load(options.estimator)
    clips = [world_clip(i, "test", layout=1) for i in track(range(options.clips), "rendering")]
    real = torch.stack([clip.video for clip in clips])
    made = torch.cat(list(films(model, options.adapter, clips, True, {}, "filming")))
    head = ["clips", "embedded estimator", "COLMAP", "the two apart", "judged by COLMAP", "by bearings alone"]
    rows = [row("rendered", clips, real, estimator), row("filmed", clips, made, estimator)]
    text = (
        "# Two judges of the same clips\n\nRotation, degrees per frame, means over the clips that COLMAP could judge "
        "with 95 % intervals: each judge against what was asked, and against one another. "
        f"`python experiments/embedded/judges.py --clips {options.clips}`, {date.today().isoformat()}, two CPU cores."
        f"\n\n{markdown_table(head, rows)}\n"
    )
    with whole_file(options.out) as temporary:
        temporary.write_text(text)
    log.info("%s", text)


if __name__ == "__main__":
    main()
