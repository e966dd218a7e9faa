"""Does the embedded model obey? Adapters on the same test clips, read by the embedded estimator.

    python experiments/embedded/score.py --model runs/embedded/embedded.safetensors \
        --estimator runs/embedded/estimator/estimator.safetensors \
        --adapter "crepe, maps=runs/embedded/adapter/adapter.safetensors" -o experiments/results/embedded

Every adapter films each test clip's caption and cameras. One that takes maps films them again with the exact map of
another layout, which neither caption nor camera tells. Films, and what is read of them, are kept in KEPT by all that
made them, so a stopped run goes on where it was. The same seed makes the same noise for every row, so rows are compared
clip by clip. Several files of one name are seeds of its training. Nothing is chosen here: guidance and steps are the
model's defaults.
"""

import argparse
import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track
from score_tables import Row, write_page
from torch import Tensor

from curvedray.adapter.file import load_adapter
from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.metrics.sharpness import border_energy, edge_sharpness
from curvedray.evaluate.world_truth import KnownClips
from curvedray.files import write_tensors
from curvedray.generation.generate import generate_batch
from curvedray.inputs import read_tensors
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet
from curvedray.media.pixels import frames_from_video, video_from_frames
from curvedray.models.embedded.codec import SPACE
from curvedray.models.embedded.model import WEIGHTS, EmbeddedModel, load_embedded
from curvedray.radial.interval import RadialInterval
from curvedray.radial.map import RadialMap
from curvedray.world.world import Split, WorldClip, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
BATCH = 20
SHOWN = 12  # clips in the pictures


@dataclass(frozen=True, eq=False)
class Judge:
    """What every row shares: the model, the reader, and the clips in two layouts."""

    model: EmbeddedModel
    estimator: Embedded
    split: Split
    count: int
    films: Path  # the folder for this model's films
    kept: Path  # and for what this estimator reads in them
    quick: bool = False  # products of films in bfloat16

    @classmethod
    def open(
        cls, model: Path, estimator: Path, split: Split, count: int, kept: Path, *, quick: bool = False
    ) -> "Judge":
        reader, made_by = Embedded.load(estimator), hashlib.sha256(model.read_bytes()).hexdigest()[:8]
        films_in = kept / f"films-{split}-{count}-{made_by}"
        return cls(load_embedded(model), reader, split, count, films_in, films_in / reader.version, quick)

    @cached_property
    def clips(self) -> list[WorldClip]:
        return self._drawn(0)

    @cached_property
    def others(self) -> list[WorldClip]:
        """The same captions and cameras in another layout."""
        return self._drawn(1)

    def _drawn(self, layout: int) -> list[WorldClip]:
        words = f"rendering layout {layout}"
        return [world_clip(i, self.split, layout=layout) for i in track(range(self.count), words)]

    @cached_property
    def truth(self) -> KnownClips:
        return KnownClips.of(self.clips)

    @cached_property
    def asked(self) -> KnownClips:
        return KnownClips.of(self.others)

    def row(self, name: str, key: str, films: Iterator[Tensor]) -> Row:
        """What is read of films, made now or before."""
        path = self.kept / f"{key}.safetensors"
        if not path.is_file():
            if not (self.films / path.name).is_file():
                write_tensors(self.films / path.name, {"videos": torch.cat(list(films))})
            videos = self.videos(key)
            said = self.estimator.read(videos)
            tensors = {field.name: getattr(said, field.name).contiguous() for field in fields(Reading)}
            tensors |= {name: torch.from_numpy(values) for name, values in crispness(videos).items()}
            write_tensors(path, tensors)
        tensors, _ = read_tensors(path)
        said = Reading(*(tensors[field.name] for field in fields(Reading)))
        return Row(name, said, tensors["edges"].numpy(), tensors["borders"].numpy())

    @cached_property
    def real_clips(self) -> tuple[Row, Row]:
        """Real clips in both layouts, seen through the codec; the first as crisp as they are rendered."""
        real = self.row("real clips", "real", through_the_codec(self.model, self.clips, "reading real clips"))
        crisp = crispness(torch.stack([clip.video for clip in self.clips]))
        other = through_the_codec(self.model, self.others, "reading the other layout")
        return replace(real, edges=crisp["edges"], borders=crisp["borders"]), self.row("real clips", "other", other)

    def filmed(self, name: str, file: Path, settings: dict[str, Any]) -> dict[str, Row]:
        """What is read of an adapter's films, by their name: each clip's caption and cameras, and, of one that takes
        maps, the same with the exact map of the other layout."""
        weights = hashlib.sha256(file.read_bytes()).hexdigest()[:8] + ("-bf16" if self.quick else "")
        free = {key: value for key, value in settings.items() if key != "map_guidance"}
        key = filmed_as(weights, free)
        rows = {key: self.row(name, key, self.made(file, self.clips, False, free, name))}
        if takes_maps(file, self.model):
            key = filmed_as(f"{weights}-map", settings)
            rows[key] = self.row(name, key, self.made(file, self.others, True, settings, f"{name}, map"))
        return rows

    def made(
        self, file: Path, clips: list[WorldClip], mapped: bool, settings: dict[str, Any], words: str
    ) -> Iterator[Tensor]:
        """An adapter's films, in this judge's precision."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.quick):
            yield from films(self.model, file, clips, mapped, settings, words)

    def videos(self, key: str) -> Tensor:
        return read_tensors(self.films / f"{key}.safetensors")[0]["videos"]


def crispness(videos: Tensor) -> dict[str, np.ndarray]:
    """Of every video: the mean gradient on edges, and the energy on borders of patches over that inside."""
    frames = videos.numpy()
    edges, borders = [edge_sharpness(i) for i in frames], [border_energy(i, SPACE) for i in frames]
    return {"edges": np.array(edges), "borders": np.array(borders)}


def batches(clips: list[WorldClip], words: str) -> Iterator[tuple[range, list[WorldClip]]]:
    for first in track(range(0, len(clips), BATCH), words):
        some = clips[first : first + BATCH]
        yield range(first, first + len(some)), some


def through_the_codec(model: EmbeddedModel, clips: list[WorldClip], words: str) -> Iterator[Tensor]:
    """Real clips as the model would show them."""
    for _, some in batches(clips, words):
        pixels = video_from_frames(torch.stack([clip.video for clip in some]))
        yield frames_from_video(model.decode(model.encode(pixels)))


def given(model: EmbeddedModel, maps: list[RadialMap]) -> tuple[RadialInterval, Tensor]:
    """The maps of a batch on the model's tokens."""
    own = model.defaults
    grid = model.grid_for(own.frames, own.height, own.width)
    intervals, masks = zip(*(one.on(grid) for one in maps), strict=True)
    mu, sigma = (torch.stack([getattr(one, name) for one in intervals]) for name in ("mu", "sigma"))
    return RadialInterval(mu, sigma), torch.stack(masks)


def films(
    model: EmbeddedModel,
    file: Path | None,
    clips: list[WorldClip],
    mapped: bool,
    settings: dict[str, Any],
    words: str,
    maps: list[RadialMap] | None = None,
) -> Iterator[Tensor]:
    """Each clip's caption and cameras, filmed; `mapped`: with its exact map, or that of `maps`, whose near distance is
    also the unit of its path."""
    exact = maps or [RadialMap.from_metric(clip.radius, clip.valid) for clip in clips]
    adapter = None
    if file is not None:
        adapter = load_adapter(file, model.transformer).eval().requires_grad_(False).attach(model.transformer)
    try:
        for seeds, some in batches(clips, words):
            own = [exact[i] for i in seeds]
            yield generate_batch(
                model,
                [clip.caption for clip in some],
                [clip.cameras for clip in some],
                list(seeds),
                adapter=adapter,
                radial=given(model, own) if mapped else None,
                near=[one.near for one in own],
                **({} if adapter is None else settings),
            )
    finally:
        if adapter is not None:
            adapter.detach()


def filmed_as(weights: str, settings: dict[str, Any]) -> str:
    """The name of films: whose they are, and how they were made where that is not the model's own way."""
    return "-".join([weights, *(f"{key}-{value:g}" for key, value in sorted(settings.items()))])


def takes_maps(file: Path, model: EmbeddedModel) -> bool:
    return load_adapter(file, model.transformer).accepts_radial_maps


def write_pictures(judge: Judge, keys: dict[str, str], out: Path) -> None:
    """The first clips: the truth in both layouts, then every row, five frames each."""
    videos = {name: judge.videos(key) for name, key in keys.items()}
    for number in range(min(SHOWN, judge.count)):
        exact = {"exact": judge.clips[number].video, "exact, other layout": judge.others[number].video}
        strips = exact | {name: made[number] for name, made in videos.items()}
        frames = torch.cat([video[::4] for video in strips.values()])
        labels = [label if i == 0 else "" for label in strips for i in range(5)]
        big = frames.repeat_interleave(2, 1).repeat_interleave(2, 2)
        write_png(contact_sheet(big, 5, labels), out / f"{judge.clips[number].id}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    parser.add_argument("--estimator", type=Path, default=ESTIMATOR)
    parser.add_argument("--adapter", action="append", default=[], metavar="NAME=FILE", help="same name: another seed")
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--split", choices=["val", "test"], default="test")
    parser.add_argument("--film", action="append", default=[], metavar="KEY=VALUE", help="other than the model's own")
    parser.add_argument("--kept", type=Path, help="where what is read is kept; by default in OUT")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    kept = options.kept or options.out
    judge = Judge.open(options.model, options.estimator, options.split, options.clips, kept)
    model, estimator = judge.model, judge.estimator
    settings = {key: float(value) for key, _, value in (one.partition("=") for one in options.film)}
    settings |= {"steps": int(settings["steps"])} if "steps" in settings else {}
    real, others = judge.real_clips
    keys = {"no adapter": "none"}
    rows = [judge.row("no adapter", "none", films(model, None, judge.clips, False, {}, "no adapter"))]
    mapped: list[Row] = []
    for chosen in options.adapter:
        name, _, path = chosen.rpartition("=")
        filmed = judge.filmed(name, Path(path), settings)
        for label, key in zip((name, f"{name}, map of the other layout"), filmed, strict=False):
            keys[label] = key
        free, *with_map = filmed.values()
        rows.append(free)
        mapped += with_map
    families = [clip.family for clip in judge.clips]
    command = f"python experiments/embedded/score.py --clips {options.clips} --split {options.split}"
    command += "".join(f" --film {one}" for one in options.film)
    write_page(options.out, judge.truth, judge.asked, families, real, others, rows, mapped, estimator.floor, command)
    write_pictures(judge, keys, kept / f"pictures-{options.split}")
    log.info("wrote %s", options.out)


if __name__ == "__main__":
    main()
