"""How well does the estimator read what the model paints? Real clips, noised, and finished by the model.

    python experiments/embedded/painted.py -o experiments/results/embedded/painted.md

A clip in little noise keeps its layout, its camera and its lens, which are known; what the model paints anew are edges
and textures. So an error that grows here is the reader's, or the brush's, and not that of a camera which is not obeyed.
In much noise nothing of the clip is left, and at 1 it is a film like any other. The adapter sees the exact camera.
"""

import argparse
import logging
from datetime import date
from pathlib import Path

import torch
from rich.progress import track
from score import Judge, batches
from torch import Tensor

from curvedray.adapter.file import load_adapter
from curvedray.cameras import stacked
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.statistics import bootstrap
from curvedray.evaluate.world_truth import errors_of
from curvedray.files import whole_file
from curvedray.generation.sampling import guided_velocity, noise_for
from curvedray.generation.settings import Settings
from curvedray.generation.shot import cameras_for
from curvedray.media.pixels import frames_from_video, video_from_frames
from curvedray.models.embedded.model import ADAPTER, WEIGHTS
from curvedray.models.flow import noised, sampling_sigmas, unipc
from curvedray.radial.map import RadialMap
from curvedray.tables import markdown_table

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
LEVELS = (0.0, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0)  # 0: only seen through the codec
SHOWN = {"rotation": "rotation, degrees per frame", "metres": "translation, m", "fov": "FoV, degrees", "xi": "xi"}
SHOWN |= {"distance": "distances, log", "colour": "colours right", "kind": "kinds right"}


def sigmas_from(level: float, settings: Settings) -> Tensor:
    """The sampler's noise levels, from this one on."""
    usual = sampling_sigmas(settings.steps, settings.shift)
    return usual if level >= 1 else torch.cat([torch.tensor([level]), usual[usual < level]])


@torch.no_grad()
def painted(judge: Judge, level: float) -> Tensor:
    """Every clip's video, noised to this level and finished with its own caption and cameras."""
    model, settings = judge.model, Settings.of(judge.model)
    grid = model.grid_for(settings.frames, settings.height, settings.width)
    adapter = load_adapter(ADAPTER, model.transformer).eval().requires_grad_(False).attach(model.transformer)
    videos = []
    for seeds, some in batches(judge.clips, f"painted from {level:g}"):
        clean = model.encode(video_from_frames(torch.stack([clip.video for clip in some])))
        if level > 0:
            text, empty = model.encode_text([clip.caption for clip in some]), model.encode_text([""] * len(some))
            nears = [RadialMap.from_metric(clip.radius, clip.valid).near for clip in some]
            paths = [cameras_for(model, i.cameras, None, grid, near) for i, near in zip(some, nears, strict=True)]
            noise = torch.stack([noise_for(model, grid, seed) for seed in seeds])
            velocity = guided_velocity(model, adapter, settings, text, empty, [])
            with adapter.viewing(stacked(paths), grid=grid):
                begun = noised(clean, noise, torch.full((len(some),), level))
                clean = unipc(velocity, begun, sigmas_from(level, settings))
        videos.append(frames_from_video(model.decode(clean)))
    adapter.detach()
    return torch.cat(videos)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--split", choices=["val", "test"], default="val")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    judge = Judge.open(WEIGHTS, ESTIMATOR, options.split, options.clips, options.out.parent)
    rows = []
    for level in track(LEVELS, "levels"):
        measured = errors_of(judge.truth, judge.estimator.read(painted(judge, level))).measures
        rows.append([f"{level:g}", *(interval_text(bootstrap(measured[name])) for name in SHOWN)])
        log.info("%s", rows[-1])
    text = (
        f"# What the estimator reads of painted clips\n\n{options.clips} {options.split} clips, noised to a level and "
        "finished by the embedded model with their own caption and exact camera (0: only seen through the codec; 1: "
        "films from noise alone), without a map; errors of what the embedded estimator reads, means over clips with "
        f"95 % intervals. `python experiments/embedded/painted.py --clips {options.clips} --split {options.split}`, "
        f"{date.today().isoformat()}, two CPU cores.\n\n{markdown_table(['noise', *SHOWN.values()], rows)}\n"
    )
    with whole_file(options.out) as temporary:
        temporary.write_text(text)
    log.info("%s", text)


if __name__ == "__main__":
    main()
