"""Scenes and pictures are the ray-caster's own."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from studio_client import LENS, ORBIT

from curvedray.cameras.named_lenses import named_lens
from curvedray.moves.trajectory import trajectory
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import block_scene, parse_blocks
from curvedray.world.preview import NEAR, preview_scene
from curvedray.world.raycast import render

TEXT = (
    "box 1x1x2m at left 2m ahead 4m turned 20deg; wall 40x4m at ahead 7m; ball 0.5m at right 1m ahead 3m moving left 1m"
)


def test_a_blocked_out_scene_goes_to_values_and_back(ask):
    once = ask.post("/api/scene", {"scene": {"text": TEXT}, "lens": LENS}).json()
    again = ask.post("/api/scene", {"scene": {"blocks": once["blocks"]}, "lens": LENS}).json()
    assert again == once
    assert parse_blocks(once["text"]) == parse_blocks(TEXT)
    made = film_blocks(parse_blocks(TEXT), "static", named_lens("fisheye-150", 96, 64), 2)
    assert once["near"] == pytest.approx(made.map.near)
    scene = block_scene(parse_blocks(TEXT))
    assert once["things"][2]["motion"] == [-1.0, 0.0]
    assert [thing["colour"] for thing in once["things"]] == [list(thing.colour) for thing in scene.things]
    assert once["room"]["floor"] == 1.5


def test_a_caption_and_the_court_are_scenes_too(ask):
    court = ask.post("/api/scene", {"scene": {"court": True}}).json()
    assert court["near"] == NEAR
    assert len(court["things"]) == len(preview_scene().things)
    caption = {"caption": "a crimson sphere and a blue box in the desert"}
    found = ask.post("/api/scene", {"scene": caption}).json()
    assert {thing["kind"] for thing in found["things"]} == {"ball", "box"}
    assert any("understood as" in note for note in found["notes"])
    assert ask.post("/api/scene", {"scene": {"caption": "a cat"}}).status_code == 422


def test_a_court_is_made_large_enough_for_a_path(ask):
    body = {"scene": {"court": True}, "positions": [[0, 0, 0], [0, 0, 20], [0, 0, 3]]}
    found = ask.post("/api/scene", body).json()
    assert found["room"]["half_depth"] == 22
    assert len(found["things"]) == len(preview_scene().things) - 1  # the ball stands in its way


@pytest.mark.parametrize("frame", [0, 16])
def test_a_picture_is_the_ray_casters_at_its_time(ask, frame):
    asked = {"scene": {"text": TEXT}, "path": ORBIT | {"near": 2.0}, "frame": frame, "width": 48, "height": 32}
    picture = ask.post("/api/picture", asked)
    drawn = np.array(Image.open(io.BytesIO(picture.content)))
    lens = named_lens("fisheye-150", 96, 64)
    cameras = trajectory("orbit left 40deg", lens, 17, unit="metric", near=2.0)
    from dataclasses import replace

    scene = block_scene(parse_blocks(TEXT))
    exact = render(scene, replace(cameras, lens=lens.resized(48, 32)), samples=1)
    off = np.abs(drawn.astype(int) - exact.frames[frame].numpy()).max(-1)
    assert (off > 1).sum() <= 1  # an edge may round to either side
    metres = np.frombuffer(ask.post("/api/picture", asked | {"what": "metres"}).content, "<f4").reshape(32, 48)
    close = np.isclose(metres, exact.radius[frame].numpy(), rtol=1e-5)
    assert (~close).sum() <= 1
    colours = ask.post("/api/picture", asked | {"what": "distances"})
    near, far = (float(i) for i in colours.headers["studio-limits"].split(","))
    known = exact.radius[frame][exact.valid[frame]]
    assert torch.min(known) <= near < far <= torch.max(known)


def test_a_path_through_a_block_is_told(ask):
    body = {"scene": {"text": "box 1x1x2m at ahead 3m"}, "path": {"moves": "dolly in 1", "near": 3.0}}
    found = ask.post("/api/check", body).json()
    assert not found["clear"]
    assert "inside it at frame" in found["words"]
    assert ask.post("/api/check", body | {"path": {"moves": "static"}}).json() == {"clear": True, "words": ""}


@pytest.mark.parametrize(
    "scene",
    [{"text": "a house"}, {"blocks": [{"kind": "box", "size": [-1, 1, 1], "ahead": 3}]}, {"text": "box ahead 9999m"}],
)
def test_a_scene_that_cannot_stand_is_one_sentence(ask, scene):
    assert ask.post("/api/scene", {"scene": scene}).status_code == 422


def test_an_empty_scene_is_open_ground(ask):
    found = ask.post("/api/scene", {"scene": {"blocks": []}}).json()
    assert found["things"] == []
    assert found["text"] == ""


def test_the_page_is_told_what_there_is_to_choose_from(ask):
    told = ask.get("/api/start").json()
    assert told["models"][0]["frames"] == 17
    assert {row["name"] for row in told["adapters"]} == {"embedded", "none"}
    assert [row["maps"] for row in told["adapters"]] == [True, False]
    assert len(told["formats"]) == 21
    assert len(told["colours"]) == 256
    orbit = next(row for row in told["moves"] if row["name"] == "orbit")
    assert orbit["amount"] == {"value": 40.0, "unit": "deg"}
    assert orbit["distance"] == {"value": 1.0, "unit": "near", "word": "radius"}
