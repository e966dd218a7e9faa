"""Judges that share nothing with the embedded model, beside the embedded estimator, on the same clips.

    python experiments/embedded/judges.py -o experiments/results/embedded/judges.md

One aligns pixels, with the lens and the distances of the layout that was asked for. The other is COLMAP with the lens
fixed: where it finds no path, rotations are taken from matched bearings alone; where that fails too, the clip is
counted as not judged. Neither learned anything. All judge films (test clips, the exact map of another layout) and
renderings of the same clips. What is compared is the rotation, which needs no scale.
"""

import argparse
import logging
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from score import films
from torch import Tensor

from curvedray.evaluate.alignment import aligned_path
from curvedray.evaluate.estimators import Estimate
from curvedray.evaluate.estimators.colmap import Colmap
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.estimators.embedded import Embedded, poses
from curvedray.evaluate.metrics.pose import pose_errors
from curvedray.evaluate.report import interval_text, number_text
from curvedray.evaluate.statistics import bootstrap, correlation
from curvedray.files import whole_file
from curvedray.media.pictures import enlarged
from curvedray.models.embedded.model import ADAPTER, WEIGHTS, load_embedded
from curvedray.tables import markdown_table
from curvedray.world.world import WorldClip, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
ZOOM = 4  # features are looked for in enlarged frames
STRIDE = 4
Poses = np.ndarray  # poses of every fourth frame, 4 x 4 each


def by_pixels(clip: WorldClip, video: Tensor) -> Poses | None:
    """Alignment of pixels, which takes the lens and the distances of the layout that was asked for, and no path."""
    aligned = aligned_path(video, clip.cameras.lens, clip.radius, clip.valid)
    return aligned.poses[::STRIDE] if aligned.found else None


def by_colmap(clip: WorldClip, video: Tensor) -> Poses | None:
    """Structure from motion, or where that finds no path rotations from matched bearings; it takes the lens alone."""
    width, height = clip.cameras.lens.size
    lens, frames = clip.cameras.lens.sized(ZOOM * width, ZOOM * height), enlarged(video, ZOOM).numpy()
    for motion in ("auto", "rotation"):
        said = Colmap(motion=motion).estimate(frames, lens, clip.id)
        if isinstance(said, Estimate) and said.poses is not None:
            return said.poses[::STRIDE]
    return None


OTHERS: dict[str, Callable[[WorldClip, Tensor], Poses | None]] = {"pixels aligned": by_pixels, "COLMAP": by_colmap}


def apart(one: Poses, other: Poses) -> float:
    return pose_errors(one, other).degrees_per_frame


def rows_of(name: str, clips: list[WorldClip], videos: Tensor, estimator: Embedded) -> list[list[str]]:
    """A row per judge: its errors, and how it agrees with the estimator on the clips that it could judge."""
    read = poses(estimator.read(videos))
    asked = [clip.cameras.relative_to_first().world_from_camera.double().numpy()[::STRIDE] for clip in clips]
    own = np.array([apart(*pair) for pair in zip(asked, read, strict=True)])
    rows = [[name, "embedded estimator", f"{len(clips)} of {len(clips)}", *spread(own), "-", "-"]]
    for judge, find in OTHERS.items():
        paths = [find(*one) for one in track(list(zip(clips, videos, strict=True)), f"{name}, {judge}")]
        found = [i for i, path in enumerate(paths) if path is not None]
        row = [name, judge, f"{len(found)} of {len(clips)}"]
        if not found:
            rows.append([*row, "-", "-", "-", "-"])
            continue
        errors = np.array([apart(asked[i], paths[i]) for i in found])
        between = bootstrap(np.array([apart(read[i], paths[i]) for i in found]))
        rows.append([*row, *spread(errors), interval_text(between), interval_text(correlation(own[found], errors))])
    return rows


def spread(errors: np.ndarray) -> tuple[str, str]:
    return interval_text(bootstrap(errors)), number_text(float(np.median(errors)))


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
    head = ["clips", "judge", "judged", "error", "median", "apart from the estimator", "r of errors"]
    rows = [*rows_of("rendered", clips, real, estimator), *rows_of("filmed", clips, made, estimator)]
    text = (
        "# Three judges of the same clips\n\nRotation, degrees per frame, of test clips in another layout: rendered, "
        "and filmed by the embedded model with the exact map of that layout. Each judge against what was asked, mean "
        "with its 95 % interval and median over the clips that it could judge; against what the estimator reads of "
        "the same clip; and the correlation of its error with the estimator's, clip by clip. "
        f"`python experiments/embedded/judges.py --clips {options.clips}`, {date.today().isoformat()}, two CPU cores."
        f"\n\n{markdown_table(head, rows)}\n"
    )
    with whole_file(options.out) as temporary:
        temporary.write_text(text)
    log.info("%s", text)


if __name__ == "__main__":
    main()
