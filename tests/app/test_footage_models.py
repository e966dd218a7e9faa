"""A transfer is filmed by the model that was asked for, Wan among them: tiny random weights of its own classes."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from studio_client import Asker
from tiny_wan import tiny_wan, trained

from curvedray.adapter.file import save_adapter
from curvedray.app import footage, worker_models
from curvedray.app.facts import Shelf
from curvedray.app.filming import step_picture
from curvedray.app.footage import transfer_take
from curvedray.app.studio import Studio
from curvedray.app.worker_channel import Channel
from curvedray.app.worker_models import WorkerModels
from curvedray.cameras import Lens
from curvedray.evaluate.estimators.perspective import Perspective
from curvedray.formats import write_cameras
from curvedray.media.video import read_video, write_video
from curvedray.moves.trajectory import trajectory

NAME = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"


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
