"""The first thing a stranger runs: the embedded model films a court, beside the exact rendering of the same camera.

t frame   h w pixels
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.formats import write_cameras
from curvedray.generation.generate import generate
from curvedray.generation.parts import Parts
from curvedray.generation.sampling import Generated
from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet, enlarged
from curvedray.media.video import read_video, write_gif, write_video
from curvedray.moves.describe import describe
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap
from curvedray.transfer import transfer
from curvedray.world.preview import beside_path, enclosing, placed, scene_near
from curvedray.world.raycast import Rendered, render
from curvedray.world.world import scene_from_caption

PROMPT = "a red ball and a blue box in a desert courtyard"
OTHER_PROMPT = "a green ball and a purple box in a night courtyard"
MOVE = "orbit left 30deg"
LENSES = ("pinhole-90", "fisheye-150", "fisheye-180")
MOVES = ("dolly in 0.8", "truck right 0.8", "pan left 40deg", "tilt up 25deg", "roll cw 35deg")
MOVES_LENS = "wide-110"
LAYOUTS = (4, 12)  # seeds of two courts that the same words ask for, chosen by eye among eighteen
LAYOUT_MOVE = "truck right 0.7"
ZOOM = 4
SHOWN = 5  # frames of a sheet
Tick = Callable[[int, int, str], None]


@dataclass(frozen=True, eq=False)
class Take:
    """A generated video, the map of distances it was given, and what the same camera exactly sees of that court."""

    name: str
    made: Generated
    map: RadialMap
    exact: Rendered  # at the size the generated frames are shown at

    @classmethod
    def film(cls, parts: Parts, name: str, prompt: str, move: str, lens: str, layout: int = 0) -> "Take":
        """Film a court that the prompt asks for with its exact map: its layout, and nothing of its colours."""
        own = parts.model.defaults
        court, glass = scene_from_caption(prompt, layout).scene, named_lens(lens, own.width, own.height)
        wanted = trajectory(move, glass, own.frames, fps=float(own.fps))
        path, _ = placed(wanted, scene_near(court, glass))
        court = enclosing(court, path)
        seen = render(court, path)
        map = RadialMap.from_metric(seen.radius, seen.valid)
        made = generate(parts.model, prompt, path, adapter=parts.adapter, radial=map, seed=layout)
        fine = replace(path, lens=glass.sized(ZOOM * own.width, ZOOM * own.height))
        return cls(name, made, map, render(court, fine))

    @property
    def frames(self) -> UInt8[Tensor, "t h w 3"]:
        """The generated frames, enlarged to be seen."""
        return enlarged(self.made.frames, ZOOM)

    @property
    def distances(self) -> UInt8[Tensor, "t h w 3"]:
        """The map it was given, in colours, enlarged likewise."""
        limits = distance_limits(self.map.radius, self.map.valid)
        return enlarged(radial_picture(self.map.radius, self.map.valid, limits), ZOOM)

    def rows(self) -> tuple[Tensor, list[str]]:
        """Some frames, generated, exact and of the map, and their labels."""
        chosen = torch.linspace(0, len(self.made.frames) - 1, SHOWN).round().long()
        labels = [f"{self.name}, frame {i}" for i in chosen.tolist()]
        labels += ["exact"] * SHOWN + ["the map that was given"] * SHOWN
        return torch.cat([part[chosen] for part in (self.frames, self.exact.frames, self.distances)]), labels

    def predicted(self) -> UInt8[Tensor, "h w 3"]:
        """The radii that the adapter itself predicts at the last step, by latent frame, above the exact ones."""
        grid, last = self.made.grid, self.made.radii[-1]
        predicted = torch.stack([interval.pictures(grid)[0][0] for interval in last.values()]).log().mean(0).exp()
        stride = grid.stride[0]
        exact = self.exact.radius[::stride] / self.map.near
        size = exact.shape[1:]
        big = torch.nn.functional.interpolate(predicted[:, None], size, mode="nearest")[:, 0]
        radii, valid = torch.cat([big, exact]), torch.cat([big > 0, self.exact.valid[::stride]])
        limits = distance_limits(radii, valid)
        frames = [f"frame {i * stride}" for i in range(grid.frames)]
        labels = [f"predicted, {i}" for i in frames] + ["exact"] * grid.frames
        sheet = contact_sheet(radial_picture(radii, valid, limits), grid.frames, labels)
        return with_scale(sheet, limits, "near distances")


@dataclass(frozen=True)
class DemoFiles:
    """What the demo wrote, and a sentence that describes each lens's path."""

    files: tuple[Path, ...]
    says: tuple[str, ...]


def demo(
    folder: Path,
    parts: Parts,
    prompt: str = PROMPT,
    move: str = MOVE,
    tick: Tick = lambda done, total, words: None,
) -> DemoFiles:
    """One move through three lenses, two layouts of one prompt, a motion transfer, and moves by words alone."""
    files: list[Path] = []
    says: list[str] = []
    total, done = len(LENSES) + len(LAYOUTS) + 1 + len(MOVES), 0

    def now(words: str) -> None:
        nonlocal done
        tick(done, total, words)
        done += 1

    for name in LENSES:
        now(f"{move}, {name}")
        take = Take.film(parts, name, prompt, move, name)
        notes = {"prompt": prompt, "move": move, "lens": name, "model": parts.model.name or "embedded"}
        files += _written(take, folder, notes)
        says.append(str(describe(take.made.cameras)).splitlines()[0])
    takes = []
    for number, layout in enumerate(LAYOUTS, 1):
        now(f"layout {number} of the same prompt")
        takes.append(Take.film(parts, f"layout {number}", prompt, LAYOUT_MOVE, MOVES_LENS, layout))
    files += _layouts(takes, folder)
    now("motion transfer")
    files += _transferred(takes[0], folder, parts)
    films = []
    for other in MOVES:
        now(f"{other}, {MOVES_LENS}")
        films.append(_by_words_alone(parts, prompt, other))
    labels = [words for other in MOVES for words in [other, *[""] * (SHOWN - 1)]]
    files.append(write_png(contact_sheet(torch.cat(films), SHOWN, labels), folder / "moves.png"))
    return DemoFiles(tuple(files), tuple(says))


def _written(take: Take, folder: Path, notes: dict[str, str]) -> list[Path]:
    """A lens's take: the film, beside its exact rendering and its path, and what lies behind it."""
    fps, name = take.made.fps, take.name
    both = torch.cat([take.frames, take.exact.frames], 2)
    cameras = folder / f"{name}-cameras.json"  # where `curvedray evaluate` looks for them
    write_cameras(take.made.cameras, cameras, format="curvedray")
    return [
        write_video(
            beside_path(both, take.made.cameras, f"{notes['move']}: generated, exact"),
            folder / f"{name}-exact.mp4",
            fps,
            metadata=notes,
        ),
        write_gif(both, folder / f"{name}-exact.gif", fps),
        write_video(take.frames, folder / f"{name}.mp4", fps, metadata=notes),
        cameras,
        write_png(_sheet([take]), folder / f"{name}.png"),
        write_png(take.predicted(), folder / f"{name}-distances.png"),
    ]


def _layouts(takes: list[Take], folder: Path) -> list[Path]:
    """The same prompt and move in different layouts, a row of pictures each: the map, generated, exact."""
    rows = [torch.cat([take.distances, take.frames, take.exact.frames], 2) for take in takes]
    return [
        write_gif(torch.cat(rows, 1)[:, ::2, ::2].contiguous(), folder / "layouts-exact.gif", takes[0].made.fps),
        write_png(_sheet(takes), folder / "layouts.png"),
    ]


def _transferred(source: Take, folder: Path, parts: Parts) -> list[Path]:
    """A video's motion and layout with other words: its distances are read from the video by the estimator."""
    with TemporaryDirectory() as place:
        video, cameras = Path(place) / "source.mp4", Path(place) / "source-cameras.json"
        write_video(source.exact.frames, video, source.made.fps)
        write_cameras(source.made.cameras, cameras, format="curvedray")
        film = Path(place) / "film.mp4"
        made = transfer(video, OTHER_PROMPT, parts, Embedded.load(), film, cameras=cameras)
        shown = read_video(made.files[-1])
    return [
        write_video(shown.frames, folder / "transfer-exact.mp4", shown.fps),
        write_gif(shown.frames, folder / "transfer-exact.gif", shown.fps),
    ]


def _by_words_alone(parts: Parts, prompt: str, move: str) -> UInt8[Tensor, "t h w 3"]:
    """A move without a map: where things stand is the model's own choice. Some of its frames, enlarged."""
    own = parts.model.defaults
    path: Cameras = trajectory(move, named_lens(MOVES_LENS, own.width, own.height), own.frames, fps=float(own.fps))
    made = generate(parts.model, prompt, path, adapter=parts.adapter)
    chosen = torch.linspace(0, len(made.frames) - 1, SHOWN).round().long()
    return enlarged(made.frames[chosen], ZOOM)


def _sheet(takes: list[Take]) -> Tensor:
    rows = [take.rows() for take in takes]
    return contact_sheet(torch.cat([frames for frames, _ in rows]), SHOWN, [i for _, labels in rows for i in labels])
