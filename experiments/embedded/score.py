"""Does the embedded model obey? Every adapter on the same test clips, read by the embedded estimator.

    python experiments/embedded/score.py --runs runs/embedded -o experiments/results/embedded

What is seen of each row is kept in RUNS, by the model, estimator and run that it came from, so a stopped run goes on
where it was. The same seed makes the same noise for every row, so rows are compared clip by clip. Nothing is chosen
here: guidance and steps are the model's defaults, chosen on validation clips.
"""

import argparse
import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from rows import weights_of
from score_tables import WITH_MAP, write_tables
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.data.clips import Batch, VideoShape, batch_of, encoded
from curvedray.data.sources import WorldFootage
from curvedray.evaluate.estimators.clip_reader import GRID, Reading
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.metrics.fidelity import psnr
from curvedray.evaluate.world_truth import ClipErrors, KnownClips, errors_of
from curvedray.files import whole_file, write_tensors
from curvedray.generation.generate import generate_batch
from curvedray.generation.sampling import noise_for
from curvedray.inputs import read_tensors
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet
from curvedray.media.pixels import frames_from_video, video_from_frames
from curvedray.models.embedded.model import WEIGHTS, EmbeddedModel, load_embedded
from curvedray.models.flow import noised, velocity_target
from curvedray.radial.interval import RadialInterval
from curvedray.radial.map import RadialMap
from curvedray.world.world import Split, WorldClip, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
BATCH = 20
LEVELS = (0.8, 0.95, 0.99)
SHOWN = 12  # clips in the picture
MEAN_LOG_RADIUS = 0.704  # in near distances, over the first thousand training clips


@dataclass(frozen=True)
class Row:
    """One line of the table: an adapter's run, or none, the scale of camera guidance (1: none), and whether each
    clip's exact radial map is given."""

    run: str | None
    guidance: float = 1.0
    mapped: bool = False

    @property
    def name(self) -> str:
        if self.run is None:
            return "no adapter"
        return f"{self.run}, guidance {self.guidance:g}{WITH_MAP * self.mapped}"


@dataclass(frozen=True, eq=False)
class Setting:
    """What every row shares."""

    model: EmbeddedModel
    estimator: Embedded
    clips: list[WorldClip]
    runs: Path
    truth: KnownClips
    kept: Path  # the folder for what is read, by this model and estimator alone

    def file(self, run: str | None, what: str) -> Path:
        """The file that keeps something of a run: named by the run's folder, which another recipe never has."""
        adapter = "none" if run is None else weights_of(run, self.runs).parent.name
        return self.kept / f"{adapter}-{what}.safetensors"

    def videos(self, row: Row) -> Path:
        return self.file(row.run, f"{row.guidance:g}{'-map' * row.mapped}")


def adapter_of(setting: Setting, run: str | None) -> Adapter | None:
    if run is None:
        return None
    return load_adapter(weights_of(run, setting.runs), setting.model.transformer).eval().requires_grad_(False)


def batches(clips: list[WorldClip]) -> Iterator[tuple[range, list[WorldClip]]]:
    for first in range(0, len(clips), BATCH):
        some = clips[first : first + BATCH]
        yield range(first, first + len(some)), some


def maps_of(clips: list[WorldClip]) -> list[RadialMap]:
    return [RadialMap.from_metric(clip.radius, clip.valid) for clip in clips]


def given(maps: list[RadialMap]) -> tuple[RadialInterval, Tensor]:
    """The maps on the tokens of a batch."""
    intervals, masks = zip(*(one.on(GRID) for one in maps), strict=True)
    mu, sigma = (torch.stack([getattr(one, name) for one in intervals]) for name in ("mu", "sigma"))
    return RadialInterval(mu, sigma), torch.stack(masks)


def score_row(setting: Setting, row: Row) -> ClipErrors:
    """Errors of a row's videos, made now or before; the first few videos are kept to be looked at."""
    path = setting.videos(row)
    if not path.is_file():
        adapter = adapter_of(setting, row.run)
        videos = []
        if adapter is not None:
            adapter.attach(setting.model.transformer)
        for seeds, some in track(list(batches(setting.clips)), f"generating {row.name}"):
            maps = maps_of(some)
            videos.append(
                generate_batch(
                    setting.model,
                    [clip.caption for clip in some],
                    [clip.cameras for clip in some],
                    list(seeds),
                    adapter=adapter,
                    radial=given(maps) if row.mapped else None,
                    near=[one.near for one in maps],
                    camera_guidance=row.guidance,
                )
            )
        if adapter is not None:
            adapter.detach()
        write_reading(path, setting, torch.cat(videos))
    return with_decibels(setting.truth, path)


def read_real_clips(setting: Setting) -> Path:
    """The floor: the true clips, through the codec; the file of what was read from them."""
    path = setting.kept / "real.safetensors"
    if not path.is_file():
        videos = []
        for _, some in batches(setting.clips):
            pixels = video_from_frames(torch.stack([clip.video for clip in some]))
            shown = setting.model.decode(setting.model.encode(pixels))
            videos.append(frames_from_video(shown))
        write_reading(path, setting, torch.cat(videos))
    return path


def write_reading(path: Path, setting: Setting, videos: Tensor) -> None:
    said = setting.estimator.read(videos)
    tensors = {field.name: getattr(said, field.name).contiguous() for field in fields(Reading)}
    pairs = zip(videos, setting.clips, strict=True)
    tensors["decibels"] = torch.tensor([psnr(video.numpy(), clip.video.numpy()) for video, clip in pairs])
    write_tensors(path, tensors | {"videos": videos[:SHOWN]})


def with_decibels(truth: KnownClips, path: Path) -> ClipErrors:
    """Errors of what was read, and how near the videos are to the exact rendering."""
    tensors, _ = read_tensors(path)
    errors = errors_of(truth, Reading(*(tensors[field.name] for field in fields(Reading))))
    return replace(errors, measures=errors.measures | {"decibels": tensors["decibels"].double().numpy()})


@torch.no_grad()
def denoise_clips(setting: Setting, run: str | None) -> dict[str, Tensor]:
    """Each clip's flow-matching error at each noise level, the noise the same for every adapter; and the radial
    head's mean absolute error in log radius, over the tokens whose radius is known."""
    path = setting.file(run, "denoising")
    if path.is_file():
        return read_tensors(path)[0]
    model, adapter = setting.model, adapter_of(setting, run)
    own = model.defaults
    shape = VideoShape(own.frames, own.height, own.width)
    grid = model.grid_for(own.frames, own.height, own.width)
    footage = WorldFootage(len(setting.clips), split_of(setting), shape)
    if adapter is not None:
        adapter.attach(model.transformer)
    found: dict[str, list[Tensor]] = {}
    for seeds, _ in track(list(batches(setting.clips)), f"denoising, {run or 'no adapter'}"):
        batch = batch_of([encoded(footage[index], model, shape) for index in seeds])
        noise = torch.stack([noise_for(model, grid, 10_000 + index) for index in seeds])
        for level in LEVELS:
            sigma = torch.full((len(noise),), level)
            with adapter.viewing(batch.cameras, grid=grid) if adapter is not None else nullcontext():
                said = model.velocity(noised(batch.latents, noise, sigma), sigma, batch.text)
            error = (said - velocity_target(batch.latents, noise)).square().flatten(1).mean(1)
            found.setdefault(f"loss {level:g}", []).append(error)
            if adapter is not None and adapter.supervised_blocks:
                found.setdefault(f"radius {level:g}", []).append(radial_error(adapter, batch))
        constant = batch.log_radius - MEAN_LOG_RADIUS
        found.setdefault("radius constant", []).append(known_mean(constant.abs(), batch))
    if adapter is not None:
        adapter.detach()
    tensors = {name: torch.cat(parts) for name, parts in found.items()}
    write_tensors(path, tensors)
    return tensors


def radial_error(adapter: Adapter, batch: Batch) -> Tensor:
    blocks = [adapter.predictions[block].mu for block in adapter.supervised_blocks]
    return known_mean((torch.stack(blocks) - batch.log_radius).abs().mean(0), batch)


def known_mean(error: Tensor, batch: Batch) -> Tensor:
    return (error * batch.radius_known).flatten(1).sum(1) / batch.radius_known.flatten(1).sum(1)


def split_of(setting: Setting) -> Split:
    return "test" if setting.clips[0].id.startswith("test") else "val"


def write_pictures(setting: Setting, rows: list[Row], out: Path) -> None:
    """The first clips: the truth, then every row, five frames each."""
    videos = {row.name: read_tensors(setting.videos(row))[0]["videos"] for row in rows}
    for number, clip in enumerate(setting.clips[:SHOWN]):
        strips = [("exact", clip.video), *((name, made[number]) for name, made in videos.items())]
        frames = torch.cat([video[::4] for _, video in strips]).repeat_interleave(2, 1).repeat_interleave(2, 2)
        labels = [label if i == 0 else "" for label, _ in strips for i in range(5)]
        write_png(contact_sheet(frames, 5, labels), out / f"{clip.id}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where the adapters' runs are")
    parser.add_argument("--model", type=Path, help="the embedded model; by default the package's")
    parser.add_argument("--estimator", type=Path, help="the estimator; by default the package's")
    parser.add_argument("--rows", nargs="+", default=["recammaster", "ucpe", "crepe", "crepe_rotation", "crepe_mix"])
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--split", choices=["val", "test"], default="test")
    parser.add_argument("--guidance", type=float, nargs="+", help="scales; by default 1 and the model's own")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    model = load_embedded(options.model) if options.model else load_embedded()
    estimator = Embedded.load(options.estimator) if options.estimator else Embedded.load()
    scales = options.guidance or [1.0, model.defaults.camera_guidance]
    clips = [world_clip(i, options.split) for i in track(range(options.clips), "rendering the truth")]
    seen_by = hashlib.sha256((options.model or WEIGHTS).read_bytes() + estimator.version.encode()).hexdigest()[:8]
    kept_in = options.runs / f"scores-{options.split}-{options.clips}-{seen_by}"
    truth = KnownClips.of(clips)
    setting = Setting(model, estimator, clips, options.runs, truth, kept_in)
    rows = [Row(None), *(Row(run, scale) for run in options.rows for scale in scales)]
    if "crepe_mix" in options.rows:
        rows.append(Row("crepe_mix", scales[-1], mapped=True))

    real = read_real_clips(setting)
    values = {
        "real clips (the estimator's floor)": with_decibels(truth, real),
        "no motion": errors_of(truth, truth.without_looking()),
        "shuffled cameras": with_decibels(truth.with_next_cameras(), real),
    }
    for row in rows:
        values[row.name] = score_row(setting, row)
    losses = {run or "no adapter": denoise_clips(setting, run) for run in (None, *options.rows)}
    families = np.array([clip.family for clip in clips])
    write_tables(options.out, truth, families, values, losses, estimator.version, options.split)
    with whole_file(options.out / "rows.json") as temporary:
        temporary.write_text(json.dumps({name: value.to_json() for name, value in values.items()}, indent=1))
    write_pictures(setting, rows, options.runs / f"pictures-{options.split}")
    log.info("wrote %s", options.out)


if __name__ == "__main__":
    main()
