"""The first thing a stranger runs: the embedded model films one scene, beside the exact rendering of the same camera.

t frame   h w pixels
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.cameras.named_lenses import named_lens
from curvedray.formats import write_cameras
from curvedray.generation.generate import generate
from curvedray.generation.parts import Parts
from curvedray.generation.sampling import Generated
from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet, enlarged
from curvedray.media.video import write_gif, write_video
from curvedray.moves.describe import describe
from curvedray.moves.trajectory import trajectory
from curvedray.radial.map import RadialMap
from curvedray.world.preview import beside_path, render_caption
from curvedray.world.raycast import Rendered

PROMPT = "a red ball and a blue box in a desert courtyard"
MOVE = "orbit left 30deg"
LENSES = ("pinhole-90", "fisheye-150", "fisheye-180")
MOVES = ("dolly in 0.8", "truck right 0.8", "pan left 40deg", "tilt up 25deg", "roll cw 35deg")
MOVES_LENS = "wide-110"
ZOOM = 4
SHOWN = 5  # frames of a sheet


@dataclass(frozen=True, eq=False)
class Take:
    """A generated video and what the same camera exactly sees of the same caption."""

    name: str
    made: Generated
    exact: Rendered  # at the size the generated frames are shown at

    @classmethod
    def film(cls, parts: Parts, name: str, prompt: str, move: str, lens: str, seed: int = 0) -> "Take":
        own = parts.model.defaults
        cameras = trajectory(move, named_lens(lens, own.width, own.height), own.frames, fps=float(own.fps))
        made = generate(parts.model, prompt, cameras, adapter=parts.adapter, seed=seed)
        fine = made.cameras.lens.sized(ZOOM * own.width, ZOOM * own.height)
        return cls(name, made, render_caption(prompt, Cameras(fine, cameras.world_from_camera, cameras.unit)))

    @property
    def frames(self) -> UInt8[Tensor, "t h w 3"]:
        """The generated frames, enlarged to be seen."""
        return enlarged(self.made.frames, ZOOM)

    def rows(self) -> tuple[Tensor, list[str]]:
        """Some frames, generated and exact, and their labels."""
        chosen = torch.linspace(0, len(self.made.frames) - 1, SHOWN).round().long()
        labels = [f"{self.name}, frame {i}" for i in chosen.tolist()]
        return torch.cat([self.frames[chosen], self.exact.frames[chosen]]), labels + ["exact"] * SHOWN

    def distances(self) -> UInt8[Tensor, "h w 3"]:
        """Predicted radii of the last step, by latent frame, above the exact ones; in near distances."""
        grid, last = self.made.grid, self.made.radii[-1]
        predicted = torch.stack([interval.pictures(grid)[0][0] for interval in last.values()]).log().mean(0).exp()
        stride = grid.stride[0]
        exact = self.exact.radius[::stride] / RadialMap.from_metric(self.exact.radius, self.exact.valid).near
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
    tick: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> DemoFiles:
    """One move through three lenses, and five moves through one; each beside its exact rendering."""
    files: list[Path] = []
    says: list[str] = []
    total = len(LENSES) + len(MOVES)
    for name in LENSES:
        tick(len(says), total, f"{move}, {name}")
        take = Take.film(parts, name, prompt, move, name)
        fps = take.made.fps
        notes = {"prompt": prompt, "move": move, "lens": name, "model": parts.model.name or "embedded"}
        both = torch.cat([take.frames, take.exact.frames], 2)
        beside = beside_path(both, take.made.cameras, f"{move}: generated, exact")
        cameras = folder / f"{name}-cameras.json"  # where `curvedray evaluate` looks for them
        write_cameras(take.made.cameras, cameras, format="curvedray")
        files += [
            write_video(beside, folder / f"{name}-exact.mp4", fps, metadata=notes),
            write_gif(both, folder / f"{name}-exact.gif", fps),
            write_video(take.frames, folder / f"{name}.mp4", fps, metadata=notes),
            cameras,
            write_png(contact_sheet(*_rows([take])), folder / f"{name}.png"),
            write_png(take.distances(), folder / f"{name}-distances.png"),
        ]
        says.append(str(describe(take.made.cameras)).splitlines()[0])
    takes: list[Take] = []
    for other in MOVES:
        tick(len(LENSES) + len(takes), total, f"{other}, {MOVES_LENS}")
        takes.append(Take.film(parts, other, prompt, other, MOVES_LENS))
    files.append(write_png(contact_sheet(*_rows(takes)), folder / "moves.png"))
    return DemoFiles(tuple(files), tuple(says))


def _rows(takes: list[Take]) -> tuple[Tensor, int, list[str]]:
    """A contact sheet's frames, columns and labels: two rows per take."""
    rows = [take.rows() for take in takes]
    return torch.cat([frames for frames, _ in rows]), SHOWN, [label for _, labels in rows for label in labels]
