"""Takes are filmed by the model that was asked for, Wan among them, and judged: tiny weights of its own classes."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from studio_client import Asker
from tiny_wan import tiny_wan, trained

from curvedray.adapter.file import save_adapter
from curvedray.app import filming, footage, worker_models
from curvedray.app.facts import Shelf
from curvedray.app.filming import film_take, step_picture
from curvedray.app.footage import transfer_take
from curvedray.app.studio import Studio
from curvedray.app.worker_channel import Channel
from curvedray.app.worker_models import WorkerModels
from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.perspective import Perspective
from curvedray.evaluate.scores import Failure
from curvedray.extras import MissingExtra
from curvedray.formats import write_cameras
from curvedray.media.video import read_video, write_video
from curvedray.moves.trajectory import trajectory

NAME = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"
SMALL = {"frames": 9, "width": 48, "height": 32}


class Heard(Channel):
    """A channel that keeps what the worker says."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def say(self, event: str, **more: Any) -> None:
        self.said.append(more)

    def check(self) -> None:
        pass


@pytest.fixture
def wan():
    model = tiny_wan()
    model.defaults = replace(model.defaults, frames=9, height=32, width=48, steps=2, guidance=1.0)
    return model


def test_a_transfer_on_wan(wan, tmp_path, monkeypatch):
    adapter = save_adapter(trained(wan), tmp_path / "maps.safetensors")
    wall = Perspective(lambda frames, lens: torch.full(frames.shape[:3], 4.0), "wall", "1", "Apache-2.0")
    monkeypatch.setattr(worker_models, "load_model", lambda name: wan)
    monkeypatch.setattr(footage, "make_teacher", lambda name: wall)
    studio = Studio(tmp_path / "studio", Shelf((NAME,), (str(adapter),)))
    ask = Asker(studio)
    cameras = trajectory("truck right 0.5", Lens.from_fov(90, 0, 48, 32), 9, unit="metric", near=4.0)
    shades = torch.randint(0, 255, (9, 32, 48, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    write_cameras(cameras, tmp_path / "path.json")
    body = {
        "upload": ask.upload("video", "mine.mp4", write_video(shades, tmp_path / "mine.mp4", 8).read_bytes()),
        "cameras": ask.upload("cameras", "path.json", (tmp_path / "path.json").read_bytes()),
        "prompt": "a cat",
        "model": NAME,
        "adapter": str(adapter),
    }
    assert ask.post("/api/transfer", body).status_code == 202
    assert ask.post("/api/transfer", body | {"model": "another"}).status_code == 422
    heard = Heard()
    (tmp_path / "take").mkdir()
    transfer_take(WorkerModels(studio.folder, heard), tmp_path / "take", body)
    assert read_video(tmp_path / "take" / "film.mp4").frames.shape == (9, 32, 48, 3)
    assert {score["metric"] for score in heard.said[-1]["scores"]} >= {"AbsRel", "SILog"}
    assert heard.said[-1]["files"]["beside"] == "film-transfer.mp4"
    assert heard.said[-1]["files"]["recipe"] == "film-recipe.json"


def test_the_page_knows_which_adapters_fit_a_transfer(wan, tmp_path):
    adapter = save_adapter(trained(wan), tmp_path / "maps.safetensors")
    start = Asker(Studio(tmp_path / "studio", Shelf((NAME,), (str(adapter),)))).get("/api/start").json()
    of = {row["name"]: (row["maps"], row["models"]) for row in start["adapters"]}
    assert of[str(adapter)] == (True, None)
    assert of["embedded"] == (True, ["embedded"])


def test_a_large_models_step_shows_its_first_frame(wan):
    picture, frames = step_picture(wan, torch.zeros(1, 16, 3, 4, 6))
    assert frames == 1
    assert picture[:2] == b"\xff\xd8"


# -- how a film is judged


@dataclass
class Judge:
    """One that fails as it is told to, and keeps the lenses that it was given."""

    error: Exception | None = None
    name: str = "colmap"
    version: str = "1"
    floor: str = "none"
    every_frame: bool = False
    lenses: list[Lens] = field(default_factory=list)

    def estimate(self, video, lens=None, clip=""):
        self.lenses.append(lens)
        if self.error is not None:
            raise self.error
        return Failure("no two frames could be matched")


def film_on(wan, monkeypatch, folder, moves):
    """What the worker says of a film of the tiny model, and the names of its files."""
    monkeypatch.setattr(worker_models, "load_model", lambda name: wan)
    heard = Heard()
    (folder / "take").mkdir()
    asked = {"prompt": "a cat", "model": NAME, "adapter": "none", "path": {"moves": moves, **SMALL}}
    film_take(WorkerModels(folder, heard), folder / "take", asked)
    return heard.said


@pytest.mark.parametrize("error", [None, InputError("lens", "another", "this"), RuntimeError("no memory")])
def test_a_film_that_nobody_can_judge_is_made_and_its_verdict_unknown(wan, tmp_path, monkeypatch, error):
    """Where curvedray[sfm] was not installed the take ended as failed, though its video was there; so did one whose
    judge refused it."""

    def made(name):
        if error is None:
            raise MissingExtra("pycolmap")
        return Judge(error)

    monkeypatch.setattr(filming, "estimator", made)
    said = film_on(wan, monkeypatch, tmp_path, "truck right 0.5")
    files = [name for news in said for name in news.get("files", {}).values()]
    assert all((tmp_path / "take" / name).is_file() for name in files)
    assert "film.mp4" in files
    verdict = said[-1]["verdict"]
    assert verdict["obeyed"] is None
    assert (verdict["estimator"], verdict["recovered"]) == ("colmap", [])
    expected = "Run: pip install 'curvedray[sfm]'" if error is None else str(error)
    assert verdict["words"].startswith("nobody can tell: ")
    assert expected in verdict["words"]
    # A judge that broke down is a Failure like any other; one that is missing or refuses can be helped, so it is noted.
    assert len(said[-1]["notes"]) == (error is None or isinstance(error, InputError))


def test_a_film_is_judged_through_the_lens_of_each_frame(wan, tmp_path, monkeypatch):
    """A film that zooms was judged through its first frame's lens alone."""
    judge = Judge()
    monkeypatch.setattr(filming, "estimator", lambda name: judge)
    assert film_on(wan, monkeypatch, tmp_path, "zoom in 2")[-1]["verdict"]["obeyed"] is None
    (lens,) = judge.lenses
    assert (lens.batch_shape, lens.size) == ((9,), (48, 32))
    torch.testing.assert_close(lens.focal[-1], 2 * lens.focal[0])
