"""Whatever a user has of distances, as a map for a video: a map, depth of other programs, blocks in words."""

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.files import check_writable
from curvedray.generation.parts import Parts
from curvedray.generation.write import check_no_input
from curvedray.inputs import read_json
from curvedray.models.open import usual_video
from curvedray.moves.trajectory import fitted_to, trajectory
from curvedray.radial.check import check_map, checked
from curvedray.radial.convert import Converted, convert
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import Block, blocks_from_json, parse_blocks

OWN = (".npz", ".npy")


@dataclass(frozen=True)
class MapRequest:
    """A map as it was asked for: a file or a folder and what its numbers mean, or a blocked-out scene."""

    path: Path | None = None
    meaning: str | None = None
    scale: str | None = None
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, path: Path | None, meaning: str | None, scale: str | None, blocks: str | None) -> "MapRequest | None":
        """None where no map is asked for; what contradicts itself is refused."""
        if path is not None and blocks is not None:
            raise InputError("map", "--radial or --blocks", "both")
        if path is None and (meaning is not None or scale is not None):
            raise InputError("--radial", "a file or folder of distances", "none, but how to read one")
        if blocks is not None:
            is_file = blocks.strip().lower().endswith(".json")
            parsed = blocks_from_json(read_json(blocks), blocks) if is_file else parse_blocks(blocks)
            return cls(blocks=tuple(parsed))
        if path is None:
            return None
        if meaning is None and (scale is not None or path.suffix.lower() not in OWN):
            fix = "Blender's depth pass and most depth cameras store z: --radial-meaning z; else radius."
            raise InputError("--radial-meaning", "radius (from the camera) or z (along its axis)", "nothing", fix)
        return cls(path, meaning, scale)

    @property
    def is_own_file(self) -> bool:
        """Whether it is a map already, and need not be made."""
        return self.path is not None and self.meaning is None

    def made(
        self,
        cameras: Cameras | str,
        lens: str | None,
        shape: tuple[int, int, int],
        near: float | None = None,
        fps: float = 16.0,
    ) -> Converted:
        """The map for a video of this shape (frames, height, width), filmed along these cameras at this rate."""
        frames, height, width = shape
        if isinstance(cameras, Cameras):
            cameras, _ = fitted_to(cameras, frames, width, height)
        seen = _lens(cameras, lens, width, height)
        if self.blocks:
            path = cameras if isinstance(cameras, str) else replace(cameras, lens=seen)
            return Converted(film_blocks(list(self.blocks), path, seen, frames, fps=fps, near=near).map, ())
        assert self.path is not None
        if self.is_own_file:
            return Converted(checked(read_radial_map(self.path, near), self.path), ())
        if isinstance(cameras, str):  # a move may zoom
            seen = trajectory(cameras, seen, frames, near=near or 1.0, fps=fps).lens
        options = {"scale": self.scale or "m", "lens": seen, "near": near, "size": (width, height)}
        found = convert(self.path, self.meaning or "", **options)  # type: ignore[arg-type]
        return replace(found, map=checked(found.map, self.path))


@dataclass(frozen=True, eq=False)
class MapForVideo:
    """A map that fits a video, and the file it is kept in: the user's own, or one beside the video if it was made."""

    map: RadialMap
    file: Path
    is_made: bool
    notes: tuple[str, ...]

    @classmethod
    def make(
        cls,
        wanted: MapRequest,
        cameras: Cameras | str,
        lens: str | None,
        shape: tuple[int, int, int],
        near: float | None,
        fps: float,
        output: Path | None,
        stride: tuple[int, int, int],
        inputs: Collection[str | Path] = (),
    ) -> "MapForVideo":
        """Read or make it, and refuse what does not fit, before a model is loaded; what is odd about it is noted."""
        found = wanted.made(cameras, lens, shape, near, fps)
        frames, height, width = shape
        grid = TokenGrid.from_video(frames, height, width, stride)
        seen = _lens(cameras, lens, width, height).fitted(width, height)
        odd = check_map(found.map, grid, None if seen.batch_shape else seen).problems
        notes = (*found.notes, *(f"the map is odd: {problem}" for problem in odd))
        if wanted.is_own_file and wanted.path is not None:
            return cls(found.map, wanted.path, False, notes)
        beside = Path("map.npz") if output is None else output.with_name(f"{output.stem}-map.npz")
        check_no_input(beside, inputs)
        check_writable(beside)
        return cls(found.map, beside, True, notes)

    def into(self, load: Callable[[Path], Parts]) -> Parts:
        """The parts that `load` makes with the map's file; a made map gets its own only when the video is there."""
        if not self.is_made:
            return load(self.file)
        with tempfile.TemporaryDirectory() as folder:
            parts = load(write_radial_map(self.map, Path(folder) / "map.npz"))
        assert parts.radial_source is not None
        return replace(parts, radial_source=replace(parts.radial_source, path=str(self.file)))

    def keep(self) -> list[Path]:
        """Write a made map beside its video, from which the video can be made again."""
        return [write_radial_map(self.map, self.file)] if self.is_made else []


def video_shape(
    model: str, frames: int | None, height: int | None, width: int | None, fps: float | None
) -> tuple[tuple[int, int, int], float]:
    """Frames, height and width of a model's video and its rate, with its own where nothing was asked for."""
    own = usual_video(model)
    return (frames or own[0], height or own[1], width or own[2]), fps or own[3]


def _lens(cameras: Cameras | str, lens: str | None, width: int, height: int) -> Lens:
    if isinstance(cameras, Cameras) and lens is None:
        return cameras.lens
    return named_lens(lens or USUAL_LENS, width, height)
