"""Maps of distances that the page hands over or blocks out: kept, shown in colour, cut, and followed by films."""

import io
from functools import cache
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from curvedray.app.answering import Refused
from curvedray.app.lenses import lens_of
from curvedray.app.names import folder_named, new_name
from curvedray.app.paths import path_of
from curvedray.app.requests import CutAsked, MapAsked, SceneAsked
from curvedray.app.scenes import blocks_of
from curvedray.app.uploads import Uploads
from curvedray.cameras import Cameras, TokenGrid
from curvedray.errors import InputError
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.media.pictures import enlarged
from curvedray.media.video import ENDINGS, read_video
from curvedray.models.open import token_stride
from curvedray.radial.check import check_map, checked
from curvedray.radial.convert import convert, fitted_distances
from curvedray.radial.edit import Region, edited
from curvedray.radial.grey_video import grey_distances
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.world.block_map import film_blocks

MAP = "map.npz"
SHOWN = 384  # pixels across, about
MOST_KEPT = 200
stride_of = cache(token_stride)  # of the few models that there are to choose from; to know it may load one


class Maps:
    """maps/NAME/map.npz."""

    def __init__(self, folder: Path):
        self.folder = folder

    def file(self, name: str) -> Path:
        return folder_named(self.folder, name, "map") / MAP

    def make(self, asked: MapAsked, uploads: Uploads) -> dict[str, Any]:
        """Read or block out a map, cut it, keep it, and say what is known of it."""
        if self.folder.is_dir() and sum(1 for _ in self.folder.iterdir()) >= MOST_KEPT:
            self._forget_oldest()
        made, notes = _scene_map(asked, uploads) if asked.scene is not None else _uploaded_map(asked, uploads)
        made = cut(made, asked.cuts)
        frames, height, width = made.radius.shape
        video = asked if asked.path is None else asked.path
        grid = TokenGrid.from_video(video.frames, video.height, video.width, stride_of(asked.model))
        lens = lens_of(video.lens, video.width, video.height)
        found = check_map(made, grid, lens)
        name = new_name()
        write_radial_map(made, self.folder / name / MAP)
        valid = made.radius[made.valid]
        return {
            "map": name,
            "frames": frames,
            "width": width,
            "height": height,
            "near": made.near,
            "valid": found.valid_pixels,
            "nearest": valid.min().item() if len(valid) else None,
            "farthest": valid.max().item() if len(valid) else None,
            "limits": distance_limits(made.radius, made.valid),
            "problems": list(found.problems),
            "picture": f"/api/maps/{name}/FRAME.png",
            "file": f"/api/maps/{name}/{MAP}",
            "notes": notes,
        }

    def picture(self, name: str, frame: int) -> bytes:
        """One frame in colour; all frames share the colours' distances."""
        made = read_radial_map(self.file(name))
        if not 0 <= frame < len(made.radius):
            raise Refused(404, f"frame: expected one of {len(made.radius)}, got {frame}")
        return png(distance_frames(made)[frame])

    def _forget_oldest(self) -> None:
        oldest = sorted(self.folder.iterdir())[0]
        for file in oldest.iterdir():
            file.unlink(missing_ok=True)
        oldest.rmdir()


def distance_frames(made: RadialMap) -> torch.Tensor:
    """Every frame in colour, enlarged to be seen."""
    colours = radial_picture(made.radius, made.valid, distance_limits(made.radius, made.valid))
    return enlarged(colours, max(1, round(SHOWN / colours.shape[2])))


def png(picture: torch.Tensor) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture.numpy()).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def cut(made: RadialMap, cuts: list[CutAsked]) -> RadialMap:
    """The map with some regions left to the model."""
    for one in cuts:
        left, top, right, bottom = one.box
        frames = None if one.frames is None else (one.frames[0], one.frames[1])
        made, _ = edited(made, Region((left, top, right, bottom), frames), cut=True)
    return made


def _scene_map(asked: MapAsked, uploads: Uploads) -> tuple[RadialMap, list[str]]:
    """The exact map of a blocked-out scene along a path, which stands where it is in the scene's frame."""
    assert asked.scene is not None
    assert asked.path is not None
    if not asked.scene.is_blocks:
        raise InputError("scene", "a blocked-out one, whose distances are to be followed", "another")
    path = path_of(asked.path, uploads)
    return block_map(asked.scene, path.cameras), path.notes


def block_map(scene: SceneAsked, cameras: Cameras) -> RadialMap:
    """The exact distances of blocks along cameras in metres, which stand where they are in the scene's frame."""
    first = cameras.frame_lens[0]
    return film_blocks(blocks_of(scene), cameras, first, len(cameras), scene.eye, placed=True).map


def _uploaded_map(asked: MapAsked, uploads: Uploads) -> tuple[RadialMap, list[str]]:
    path = uploads.path(asked.upload or "", "map")
    size = (asked.width, asked.height)
    if path.suffix.lower() in ENDINGS and path.is_file():
        return _grey_map(path, asked)
    if asked.grey is not None:
        raise InputError("grey", f"a depth video ({', '.join(ENDINGS)})", path.name)
    if asked.meaning is None:
        if path.suffix.lower() not in (".npz", ".npy"):
            fix = "Blender's depth pass and most depth cameras store z; a panorama's or lidar's distance is a radius."
            raise InputError("meaning", "radius (from the camera) or z (along its axis)", "nothing", fix)
        return checked(read_radial_map(path, asked.near), path.name), []
    lens = lens_of(asked.lens, *size)
    found = convert(path, asked.meaning, scale=asked.scale, lens=lens, frames=asked.frames, size=size, near=asked.near)
    return checked(found.map, path.name), list(found.notes)


def _grey_map(path: Path, asked: MapAsked) -> tuple[RadialMap, list[str]]:
    """A depth video's distances, taken evenly in time and fitted to the picture."""
    if asked.grey is None or asked.meaning is None:
        fix = "Say the metres of black and of white, and whether they are radius or z."
        raise InputError("depth video", "what its greys mean", "nothing", fix)
    frames = read_video(path).frames
    chosen = torch.linspace(0, len(frames) - 1, asked.frames).round().long()
    metres = grey_distances(frames[chosen], asked.grey.black, asked.grey.white, inverse=asked.grey.inverse)
    metres, notes = fitted_distances(metres, asked.width, asked.height)
    if len(frames) > asked.frames:
        notes = [f"{asked.frames} of its {len(frames)} frames, evenly in time", *notes]
    if len(frames) < asked.frames:
        notes = [f"its {len(frames)} frames, some of them twice, for {asked.frames}", *notes]
    if asked.meaning == "radius":
        made = RadialMap.from_metric(metres, near=asked.near)
    else:
        made = RadialMap.from_depth(metres, lens_of(asked.lens, asked.width, asked.height), asked.near)
    return checked(made, path.name), notes
