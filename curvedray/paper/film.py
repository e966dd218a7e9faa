"""The second long step of a row: film the test clips, as a list of requests that `curvedray generate --requests` takes.

So an item's videos are made as a user's are, and on a cluster where the setting names one. A row's folder is named by
all that made its videos; beside them lie the list and the maps that a teacher changed.

    t y x latent frame, row, column
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from einops import rearrange
from jaxtyping import Float

from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.generation.filming import Crew, Filmed, film_requests
from curvedray.generation.parts import NO_ADAPTER
from curvedray.generation.recipe import RECIPE
from curvedray.generation.requests import VideoRequest
from curvedray.generation.write import RADII, Files
from curvedray.inputs import read_arrays
from curvedray.paper.clips import ALMOST_LOSSLESS, TestClip, TestClips
from curvedray.paper.experiment import Row
from curvedray.paper.listener import Listener
from curvedray.paper.needs import of_scale, require
from curvedray.paper.setting import Setting, key_of, weights_key
from curvedray.paper.teachers import taught
from curvedray.radial.interval import TEACHER_SIGMA
from curvedray.radial.map import RadialMap, write_radial_map

FILMING = 3  # raised when what is filmed changes, so that old videos are not taken for new ones
REQUESTS = "requests.jsonl"


def film_row(setting: Setting, name: str, row: Row, weights: Path | None, tests: TestClips, hears: Listener) -> Path:
    """The folder of a row's videos, one per test clip, with noise that all rows share; what is there is kept."""
    if row.videos:
        require(row.videos, setting.places)
        return Path(setting.places[row.videos])
    settings = setting.filming | dict(row.filming)
    made_of = [FILMING, weights_key(weights), setting.model_key, tests.key, settings, row.map, row.sigma]
    folder = setting.folder("videos", key_of(made_of))
    todo = [clip for clip in tests.clips if not (folder / (clip.id + RECIPE)).is_file()]  # the last of a video's files
    if not todo:
        return folder
    hears.say(f"{name}: filming {len(todo)} clips")
    for key in of_scale(setting.scale):
        require(key, setting.places)
    requests = requests_of(setting, row, tests, folder.resolve())  # a worker elsewhere stands in another folder
    write_requests(requests, folder / REQUESTS)
    predicts = weights is not None and setting.recipe_of(row).adapter.rule.predicts_radius
    heard: list[Filmed] = []

    def done(film: Filmed) -> None:
        heard.append(film)
        hears.tick(len(heard), len(todo), "filming")

    wanted = {clip.id for clip in todo}
    crew = Crew(setting.model, str(NO_ADAPTER if weights is None else weights.resolve()), (("device", setting.device),))
    files = Files(pictures=False, radii=predicts, crf=ALMOST_LOSSLESS)
    chosen = [request for request in requests if request.name in wanted]
    films = film_requests(chosen, folder.resolve(), crew, engine=setting.engine, files=files, done=done)
    for film in films:
        if film.failure:  # rows are compared clip by clip, so a row without one of them is no row
            raise InputError(f"{name}, clip {film.name}", "a video", film.failure)
    return folder


def requests_of(setting: Setting, row: Row, tests: TestClips, folder: Path) -> list[VideoRequest]:
    """A request per test clip. The number of a clip is its seed: every row starts from the same noise."""
    settings = {"zoom": 1} | setting.filming | dict(row.filming)  # pixels are scored as the model made them
    if row.map:
        settings |= {"radial_sigma": TEACHER_SIGMA if row.sigma is None else row.sigma}
    return [
        VideoRequest(
            clip.caption,
            name=clip.id,
            camera=str(tests.camera_file(clip).resolve()),
            near=clip.near,
            radial=str(map_for(setting, row, clip, tests, folder).resolve()) if row.map else None,
            seed=seed,
            **settings,
        )
        for seed, clip in enumerate(tests.clips)
    ]


def write_requests(requests: Sequence[VideoRequest], path: Path) -> None:
    lines = [{key: value for key, value in asdict(i).items() if value not in (None, "")} for i in requests]
    with whole_file(path) as temporary:
        temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))


def map_for(setting: Setting, row: Row, clip: TestClip, tests: TestClips, folder: Path) -> Path:
    """The file of the map that a clip is given: its own, or on tokens what the row's teacher makes of it."""
    if row.map == "exact":
        return tests.map_file(clip)
    path = folder / "maps" / f"{clip.id}.npz"
    if not path.is_file():
        exact, grid = tests.map(clip), setting.grid
        interval, known = exact.on(grid)
        centre, known = taught(interval.mu, known, grid.frames, row.map, clip.id)
        radius, valid = (
            rearrange(i, "(t y x) -> t y x", t=grid.frames, y=grid.rows) for i in (centre.exp() * exact.near, known)
        )
        write_radial_map(RadialMap(radius, valid, exact.near, exact.unit), path)
    return path


def head_radii(video: Path) -> Float[np.ndarray, "t y x"] | None:
    """Near distances that the middle curved block predicted in the last step of a row's video; None: it predicts none.

    Of the supervised blocks it is the middle one too: they are all of the curved ones, or that one.
    """
    path = video.with_name(video.stem + RADII)
    if not path.is_file():
        return None
    found = read_arrays(path, "a radial head's distances")
    block = middle_of(found["blocks"].tolist())
    return np.asarray(found["radius"][found["blocks"].tolist().index(block)], np.float64)


def middle_of(blocks: Sequence[int]) -> int | None:
    """The block whose predictions stand for a model's: the paper's layer 15 of 10 to 19."""
    return blocks[len(blocks) // 2] if blocks else None
