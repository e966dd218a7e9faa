"""The paper's figures of real runs, drawn by script: films in strips, predicted radii in colours, beside each other.

t frame   h w pixels   y x token
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import load_adapter
from curvedray.generation.generate import generate_batch
from curvedray.media.canvas import as_image
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.media.pictures import contact_sheet
from curvedray.media.video import read_video
from curvedray.models.interface import VideoModel
from curvedray.paper.catalogue import Item
from curvedray.paper.clips import TestClip, TestClips, make_test_clips
from curvedray.paper.experiment import Experiment
from curvedray.paper.film import film_row, head_radii, middle_of
from curvedray.paper.heads import block_inputs
from curvedray.paper.listener import Listener
from curvedray.paper.provenance import Provenance
from curvedray.paper.run import Table, is_trained
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_row
from curvedray.radial.interval import RadialInterval

SHOWN, PATIENCE = 5, 192  # frames of a strip; the height in pixels below which small films are enlarged
Strips = list[tuple[str, UInt8[Tensor, "_ h w 3"]]]


@dataclass(frozen=True)
class Material:
    """What a figure is drawn from."""

    setting: Setting
    experiment: Experiment
    weights: Mapping[str, Path | None]  # of each row
    tests: TestClips
    hears: Listener

    def films(self) -> Iterator[tuple[str, Path]]:
        """Each row's name and the folder of its videos."""
        for name, row in self.experiment.rows_at(self.setting.scale).items():
            yield name, film_row(self.setting, name, row, self.weights[name], self.tests, self.hears)

    def numbered_clips(self) -> Iterator[tuple[int, TestClip]]:
        for number, clip in enumerate(self.tests.clips):
            self.hears.tick(number, len(self.tests.clips), "filming")
            yield number, clip


Draw = Callable[[Material], dict[str, bytes]]  # a figure's pictures by file name


@dataclass(frozen=True)
class Figure:
    """A figure's runner: its rows are trained and filmed as a table's are, and drawn instead of scored."""

    experiment: Experiment
    draw: Draw

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        judges = self.experiment.judges_at(scale)
        return tuple(key for key in self.experiment.needs_at(scale) if key not in (*judges, "judge"))

    def work(self, setting: Setting) -> Work:
        counted = Table(self.experiment).work(setting)
        return Work(counted.trainings, counted.done, counted.films)

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        weights: dict[str, Path | None] = {}
        for name, row in self.experiment.rows_at(setting.scale).items():
            weights[name] = train_row(setting, name, row, 0, hears) if is_trained(row) else None
        (wanted,) = self.experiment.tests.values()
        tests = make_test_clips(setting, wanted, hears.tick)
        pictures = self.draw(Material(setting, self.experiment, weights, tests, hears))
        made = Provenance.now(entry, setting, self.experiment.says)
        captions = [f"{clip.id}: {clip.caption}" for clip in tests.clips]
        lines = [f"# {entry.title}", "", *made.lines(), ""]
        lines += [f"![{entry.title}]({name})\n" for name in pictures]
        lines += ["Prompts:", "", *(f"- {caption}" for caption in captions)]
        record = {"item": entry.name, **made.to_json(), "pictures": list(pictures), "prompts": captions}
        return Page("\n".join(lines) + "\n", record, pictures)


def film_strips(given: Material) -> dict[str, bytes]:
    """For every clip: the real film, then each row's, with the radii that it predicted below where it has any."""
    strips: dict[str, Strips] = {clip.id: [("real", real_film(given.tests, clip))] for clip in given.tests.clips}
    for name, folder in given.films():
        for clip in given.tests.clips:
            film = read_video(folder / f"{clip.id}.mp4").frames
            strips[clip.id].append((name, film))
            radius = head_radii(folder / f"{clip.id}.mp4")
            if radius is not None:
                strips[clip.id].append((f"{name}, radii", radii_film(torch.from_numpy(radius).log(), film)))
    return {f"{clip}.png": png(sheet(parts)) for clip, parts in strips.items()}


def map_strips(given: Material) -> dict[str, bytes]:
    """For every clip: the source film and its map, which every row but `no map` is given, then each row's film."""
    strips: dict[str, Strips] = {}
    for clip in given.tests.clips:
        source = real_film(given.tests, clip)
        exact = given.tests.map(clip)
        picture = resized(radial_picture(exact.radius, exact.valid), source.shape[1:3])
        strips[clip.id] = [("source", source), ("its map", picture)]
    for name, folder in given.films():
        for clip in given.tests.clips:
            strips[clip.id].append((name, read_video(folder / f"{clip.id}.mp4").frames))
    return {f"{clip}.png": png(sheet(parts)) for clip, parts in strips.items()}


@torch.no_grad()
def layer_maps(given: Material) -> dict[str, bytes]:
    """The shared radial head on every block's features, in the last step of filming a clip."""
    found: dict[str, bytes] = {}
    model, adapter = with_only_adapter(given)
    assert adapter.radial_head is not None, "a method that predicts radii"
    for number, clip in given.numbered_clips():
        with block_inputs(model.transformer) as seen:
            one_pass = {"camera_guidance": 1.0, "block_guidance": 1.0, "guidance": 1.0}  # per step
            settings = given.setting.filming | one_pass
            film = film_one(given, model, adapter, number, clip, **settings)
            last = list(seen)
        intervals = [adapter.radial_head(features) for features in last]
        strips: Strips = [("film", film)]
        for block, interval in enumerate(intervals):
            curved = " (curved)" if block in adapter.config.curved(given.setting.depth) else ""
            strips.append((f"block {block}{curved}", radii_film(on_grid(interval, given.setting), film)))
        found[f"{clip.id}.png"] = png(sheet(strips))
    return found


@torch.no_grad()
def denoising_maps(given: Material) -> dict[str, bytes]:
    """The middle curved block's radii at steps from the first to the last, one frame of each clip per row."""
    model, adapter = with_only_adapter(given)
    block = middle_of(adapter.supervised_blocks)
    assert block is not None, "a method that predicts radii"
    found: dict[str, bytes] = {}
    for number, clip in given.numbered_clips():
        radii: list[dict[int, RadialInterval]] = []
        film = film_one(given, model, adapter, number, clip, radii=radii, **given.setting.filming)
        steps = sorted({round(i * (len(radii) - 1) / max(1, SHOWN - 1)) for i in range(SHOWN)})
        strips: Strips = [("film", film)]
        strips += [
            (f"step {i + 1} of {len(radii)}", radii_film(on_grid(radii[i][block], given.setting), film)) for i in steps
        ]
        found[f"{clip.id}.png"] = png(sheet(strips))
    return found


def with_only_adapter(given: Material) -> tuple[VideoModel, Adapter]:
    """A model of the figure's own, with the adapter of the only row that the figure has."""
    (file,) = given.weights.values()
    assert file is not None, "a row that is trained"
    model = given.setting.open_model()
    adapter = load_adapter(file, model.transformer).eval().requires_grad_(False).to(model.device)
    return model, adapter.attach(model.transformer)


def film_one(
    given: Material, model: VideoModel, adapter: Adapter, seed: int, clip: TestClip, **settings: Any
) -> UInt8[Tensor, "t h w 3"]:
    """A test clip's caption and cameras, filmed."""
    cameras = [given.tests.cameras(clip)]
    films = generate_batch(model, [clip.caption], cameras, [seed], adapter=adapter, near=[clip.near], **settings)
    return films[0]


# -- parts of a picture


def real_film(tests: TestClips, clip: TestClip) -> UInt8[Tensor, "t h w 3"]:
    return read_video(tests.folder / "reference" / f"{clip.id}.mp4").frames


def on_grid(interval: RadialInterval, setting: Setting) -> Float[Tensor, "t y x"]:
    """A batch of one clip's log radii as small pictures."""
    grid = setting.grid
    return interval.mu[0].reshape(grid.frames, grid.rows, grid.cols).float().cpu()


def radii_film(log_radius: Float[Tensor, "t y x"], film: UInt8[Tensor, "s h w 3"]) -> UInt8[Tensor, "t h w 3"]:
    """Radii in colours at the film's size, a picture per latent frame."""
    radius = log_radius.exp()
    return resized(radial_picture(radius, None, distance_limits(radius)), film.shape[1:3])


def resized(frames: UInt8[Tensor, "t y x 3"], size: Sequence[int]) -> UInt8[Tensor, "t h w 3"]:
    """Each pixel or token as a block of the picture."""
    height, width = size
    rows = torch.arange(height) * frames.shape[1] // height
    cols = torch.arange(width) * frames.shape[2] // width
    return frames[:, rows][:, :, cols]


def sheet(strips: Strips) -> UInt8[Tensor, "height width 3"]:
    """A row per strip, its name on the first frame; frames from the first to the last, small films enlarged."""
    times = max(1, PATIENCE // strips[0][1].shape[1])
    frames, labels = [], []
    for name, film in strips:
        chosen = torch.linspace(0, len(film) - 1, SHOWN).round().long()
        frames.append(film[chosen].repeat_interleave(times, 1).repeat_interleave(times, 2))
        labels += [name] + [""] * (SHOWN - 1)
    return contact_sheet(torch.cat(frames), SHOWN, labels)


def png(image: UInt8[Tensor, "h w 3"]) -> bytes:
    held = io.BytesIO()
    as_image(image).save(held, "PNG", optimize=True)
    return held.getvalue()
