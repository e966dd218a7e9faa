"""Does a map move what is seen? Each adapter films the same captions and cameras twice: without a map, and with the
exact map of another layout.

    python experiments/embedded/score_layouts.py --model runs/second/embedded.safetensors \
        --estimator runs/second/estimator/estimator.safetensors \
        --adapter maps_value=runs/second/maps_value/adapter.safetensors -o experiments/results/layouts

The estimator's floor is what it reads from clips rendered of that other layout, seen through the codec. What is read is
kept in the output's folder by the adapter's and the model's weights, so a stopped run goes on where it was.
"""

import argparse
import hashlib
import json
import logging
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from curvedray.adapter.file import load_adapter
from curvedray.cameras import TokenGrid
from curvedray.data.sources import WORLDS
from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.map_obedience import LayoutObedience, layout_obedience
from curvedray.evaluate.metrics.geometry import adherence
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.statistics import Interval, bootstrap
from curvedray.evaluate.world_truth import KnownClips
from curvedray.files import whole_file, write_tensors
from curvedray.generation.generate import generate_batch
from curvedray.inputs import read_tensors
from curvedray.media.pixels import frames_from_video, video_from_frames
from curvedray.models.embedded.model import EmbeddedModel, load_embedded
from curvedray.radial.interval import RadialInterval
from curvedray.radial.map import RadialMap
from curvedray.tables import markdown_table
from curvedray.world.world import WorldClip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
BATCH = 10
ADHERENCE = ("silog", "abs_rel", "delta_1", "scale_jitter")
COLUMNS = {
    "error": "error with the map, log",
    "error_without": "without",
    "error_of_real": "floor",
    "share_of_the_way": "share of the way",
    "change": "r of change",
    "bearing": "r of bearing",
    "distance": "r of distance",
}


@dataclass(frozen=True, eq=False)
class Judge:
    """What every row shares: the model, the reader, and the layouts asked for."""

    model: EmbeddedModel
    estimator: Embedded
    clips: list[WorldClip]  # of the other layout
    asked: KnownClips
    kept: Path

    @property
    def grid(self) -> TokenGrid:
        own = self.model.defaults
        return self.model.grid_for(own.frames, own.height, own.width)

    def reading(self, name: str, film: "list[Tensor] | None" = None) -> Reading | None:
        """What was read before under a name, or is read now from videos."""
        path = self.kept / f"{name}.safetensors"
        if film is not None:
            said = self.estimator.read(torch.cat(film))
            write_tensors(path, {field.name: getattr(said, field.name).contiguous() for field in fields(Reading)})
        if not path.is_file():
            return None
        tensors, _ = read_tensors(path)
        return Reading(*(tensors[field.name] for field in fields(Reading)))


def maps_on(grid: TokenGrid, clips: list[WorldClip]) -> tuple[RadialInterval, Tensor]:
    """The exact maps of a batch, on tokens."""
    intervals, known = zip(*(RadialMap.from_metric(i.radius, i.valid).on(grid) for i in clips), strict=True)
    mu, sigma = (torch.stack([getattr(one, name) for one in intervals]) for name in ("mu", "sigma"))
    return RadialInterval(mu, sigma), torch.stack(known)


def filmed(judge: Judge, adapter: Path, mapped: bool, map_guidance: float, words: str) -> list[Tensor]:
    model = judge.model
    own = load_adapter(adapter, model.transformer).eval().requires_grad_(False).attach(model.transformer)
    videos = []
    for first in track(range(0, len(judge.clips), BATCH), words):
        some = judge.clips[first : first + BATCH]
        nears = [RadialMap.from_metric(clip.radius, clip.valid).near for clip in some]
        videos.append(
            generate_batch(
                model,
                [clip.caption for clip in some],
                [clip.cameras for clip in some],
                list(range(first, first + len(some))),
                adapter=own,
                radial=maps_on(judge.grid, some) if mapped else None,
                near=nears,
                map_guidance=map_guidance if mapped else 1.0,
            )
        )
    own.detach()
    return videos


def real(judge: Judge) -> Reading:
    """The floor: the other layouts themselves, through the codec."""
    said = judge.reading("real")
    if said is None:
        videos = []
        for first in range(0, len(judge.clips), BATCH):
            pixels = video_from_frames(torch.stack([clip.video for clip in judge.clips[first : first + BATCH]]))
            videos.append(frames_from_video(judge.model.decode(judge.model.encode(pixels))))
        said = judge.reading("real", videos)
    assert said is not None
    return said


def adherence_of(judge: Judge, said: Reading) -> dict[str, Interval]:
    """The paper's scores of a reading against the maps that were given, per token, over clips."""
    given = torch.where(judge.asked.known, judge.asked.log_radius, torch.nan).exp().numpy()
    rows = [adherence(g, p) for g, p in zip(given, said.log_radius.exp().numpy(), strict=True)]
    return {name: bootstrap(np.array([getattr(row, name) for row in rows])) for name in ADHERENCE}


def score(judge: Judge, name: str, adapter: Path, scale: float) -> tuple[LayoutObedience, dict[str, Interval]]:
    weights = hashlib.sha256(adapter.read_bytes()).hexdigest()[:8]
    readings = []
    for mapped in (True, False):
        key = f"{weights}-{f'map-{scale:g}' if mapped else 'free'}"
        said = judge.reading(key)
        if said is None:
            words = f"{name}, {'with' if mapped else 'without'} a map"
            said = judge.reading(key, filmed(judge, adapter, mapped, scale, words))
        assert said is not None
        readings.append(said)
    found = layout_obedience(judge.asked, *readings, real(judge))
    return found, adherence_of(judge, readings[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--estimator", type=Path, required=True)
    parser.add_argument("--adapter", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--map-guidance", type=float, nargs="+", default=[1.0])
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--split", choices=["val", "test"], default="test")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, estimator = load_embedded(options.model), Embedded.load(options.estimator)
    draw = WORLDS["world-2"][1]
    clips = [draw(i, options.split, layout=1) for i in track(range(options.clips), "rendering other layouts")]
    seen_by = hashlib.sha256(options.model.read_bytes() + estimator.version.encode()).hexdigest()[:8]
    asked = KnownClips.of(clips, estimator.reader.shape)
    kept = options.out / f"read-{options.split}-{options.clips}-{seen_by}"
    judge = Judge(model, estimator, clips, asked, kept)
    rows, record = [], {}
    for chosen in options.adapter:
        name, _, file = chosen.partition("=")
        for scale in options.map_guidance:
            title = name if scale == 1 else f"{name}, map guidance {scale:g}"
            found, followed = score(judge, name, Path(file), scale)
            record[title] = found.to_json() | {key: vars(value) for key, value in followed.items()}
            values = [getattr(found, column) for column in COLUMNS]
            rows.append([title, *(interval_text(value) for value in [*values, *followed.values()])])
    table = markdown_table(["row", *COLUMNS.values(), "SILog", "AbsRel", "delta_1", "scale jitter"], rows)
    for file_name, text in (("table.md", table + "\n"), ("rows.json", json.dumps(record, indent=1) + "\n")):
        with whole_file(options.out / file_name) as temporary:
            temporary.write_text(text)
    log.info("%s", table)


if __name__ == "__main__":
    main()
