"""The clips that every row films: captions, cameras, real videos, maps of distances, each a file named as the clip."""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from curvedray.cameras import Cameras
from curvedray.data.clips import Footage, fitted
from curvedray.data.fingerprint import file_fingerprint
from curvedray.data.folders import FolderFootage
from curvedray.data.sources import WORLDS
from curvedray.errors import InputError
from curvedray.files import plain_name, scratch_folder, whole_file
from curvedray.formats import read_cameras, write_cameras
from curvedray.inputs import read_arrays, read_json
from curvedray.media.pixels import frames_from_video, video_from_frames
from curvedray.media.video import write_video
from curvedray.paper.experiment import TestSet
from curvedray.paper.families import FAMILIES, belongs
from curvedray.paper.needs import require
from curvedray.paper.setting import Setting, key_of
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.training.log import Tick, no_tick

log = logging.getLogger(__name__)
ALMOST_LOSSLESS = 4  # crf of real and generated videos
LONGEST_SEARCH = 40  # times as many clips are looked at as are wanted of a family


@dataclass(frozen=True)
class TestClip:
    """What a row is told of a clip, and its near distance in the cameras' unit (None: nothing to divide by)."""

    __test__ = False

    id: str
    caption: str
    near: float | None


@dataclass(frozen=True)
class TestClips:
    """A test set on disk: clips.json, cameras/, reference/ and, where they are known, maps/ and moving/."""

    __test__ = False

    folder: Path

    @property
    def key(self) -> str:
        return self.folder.name

    @cached_property
    def clips(self) -> list[TestClip]:
        return [TestClip(**record) for record in read_json(self.folder / "clips.json")]

    def camera_file(self, clip: TestClip) -> Path:
        return self.folder / "cameras" / f"{clip.id}.json"

    def cameras(self, clip: TestClip) -> Cameras:
        return read_cameras(self.camera_file(clip))

    def map_file(self, clip: TestClip) -> Path:
        path = self.folder / "maps" / f"{clip.id}.npz"
        if not path.is_file():
            fix = "Label the clips: curvedray radial label."
            raise InputError(f"clip {clip.id}", "a map of distances", "none", fix)
        return path

    def map(self, clip: TestClip) -> RadialMap:
        return read_radial_map(self.map_file(clip))

    def moving(self, clip: TestClip) -> Bool[Tensor, "t h w"]:
        return torch.from_numpy(read_arrays(self.folder / "moving" / f"{clip.id}.npz")["moving"]).bool()

    @property
    def maps(self) -> Path | None:
        return self.folder / "maps" if (self.folder / "maps").is_dir() else None


def make_test_clips(setting: Setting, wanted: TestSet, tick: Tick = no_tick) -> TestClips:
    """The clips of a test set, made now or before; all of them, or none."""
    count = min(setting.clips or setting.scale.clips, wanted.most)
    family = wanted.family_at(setting.scale)
    if setting.scale.is_world:
        source: object = [WORLDS[setting.scale.source][0], "test", setting.model_key]
    else:
        require(wanted.place, setting.places)
        beside = [place for place in ("labels", "moving") if place in setting.places]
        source = [[place, file_fingerprint(Path(setting.places[place]))] for place in (wanted.place, *beside)]
    folder = setting.folder("tests", key_of([source, family, wanted.moving, count, asdict(setting.shape)]))
    if not folder.is_dir():
        with scratch_folder(folder) as scratch:
            write_clips(setting, wanted, family, count, scratch, tick)
            _keep(scratch, folder)
    return TestClips(folder)


def _keep(scratch: Path, folder: Path) -> None:
    """Give a finished test set its name, unless another run that shares it was quicker: then its own is as good."""
    try:
        os.replace(scratch, folder)
    except OSError:
        if not folder.is_dir():
            raise


def write_clips(setting: Setting, wanted: TestSet, family: str, count: int, folder: Path, tick: Tick) -> None:
    found: list[TestClip] = []
    model = setting.open_model() if setting.scale.is_world else None
    for footage, moving in footage_of(setting, wanted, count):
        if not belongs(footage.cameras, family) or (wanted.moving and (moving is None or not moving.any())):
            continue
        if model is None and known_share(footage, setting) < wanted.least_known:
            continue
        name = plain_name(footage.id, "clip")
        video = footage.video
        if model is not None:  # as the model's own decoder would show it: the best that any row can do
            pixels = video_from_frames(video)[None].to(model.device)
            video = frames_from_video(model.decode(model.encode(pixels)))[0].cpu()
        near = near_of(footage)
        write_cameras(footage.cameras, folder / "cameras" / f"{name}.json")
        write_video(video, folder / "reference" / f"{name}.mp4", footage.cameras.fps or 16.0, crf=ALMOST_LOSSLESS)
        if footage.radial is not None:
            write_radial_map(footage.radial, folder / "maps" / f"{name}.npz")
        if moving is not None:
            with whole_file(folder / "moving" / f"{name}.npz") as temporary, temporary.open("wb") as file:
                np.savez_compressed(file, moving=moving.numpy())
        found.append(TestClip(name, footage.caption, near))
        tick(len(found), count, "test clips")
        if len(found) == count:
            break
    if not found:
        raise InputError("test clips", FAMILIES[family][0], "none")
    (folder / "clips.json").write_text(json.dumps([asdict(clip) for clip in found], indent=1))


def footage_of(setting: Setting, wanted: TestSet, count: int) -> Iterator[tuple[Footage, Bool[Tensor, "t h w"] | None]]:
    """Test footage at the model's size, one after another, with what moves in it where that is known."""
    shape = setting.shape
    if setting.scale.is_world:
        draw = WORLDS[setting.scale.source][1]
        for index in range(count * LONGEST_SEARCH):
            clip = draw(index, "test", shape.frames, shape.height, shape.width)
            radial = RadialMap.from_metric(clip.radius, clip.valid)
            yield Footage(clip.id, clip.caption, clip.video, clip.cameras, radial), clip.moving
        return
    labels = setting.places.get("labels") if wanted.place == "panshot" else None
    folder = FolderFootage(Path(setting.places[wanted.place]), None if labels is None else Path(labels), shape.frames)
    masks = setting.places.get("moving")
    chosen = folder.held_out if wanted.place == "panshot" else ()  # of other sets every clip is one never trained on
    for index in chosen or range(len(folder)):
        try:
            whole = folder[index]
            mask = None if masks is None else Path(masks) / f"{whole.id}.npz"
            if mask is not None and mask.is_file():
                whole = replace(whole, moving=torch.from_numpy(read_arrays(mask)["moving"]).bool())
            footage = fitted(whole, shape)
        except InputError as error:  # too short, or damaged: one clip less, and it is said which
            log.warning("%s: left out: %s", folder.name_of(index), error)
            continue
        yield footage, footage.moving


def known_share(footage: Footage, setting: Setting) -> float:
    """Of a clip's tokens, how many have a distance."""
    return 0.0 if footage.radial is None else float(footage.radial.on(setting.grid)[1].double().mean())


def near_of(footage: Footage) -> float | None:
    """What divides the cameras' translations when it is filmed: its own near distance, else its map's."""
    if footage.near is not None or footage.radial is None or footage.cameras.unit != "metric":
        return footage.near
    return footage.radial.near
