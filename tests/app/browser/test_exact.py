"""The browser's lens and ray-caster are those of the package: rays, masks, distances and pictures, read back.

The tolerances hold for Chromium's software rasteriser; graphics cards have looser square roots and cosines.
"""

import base64
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from curvedray.app.limits import MOST_BLOCKS
from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.media.distance_colours import near_to_far, radial_picture
from curvedray.moves.trajectory import trajectory
from curvedray.world.blocks import block_scene, parse_blocks
from curvedray.world.preview import preview_scene
from curvedray.world.raycast import render
from curvedray.world.scene import Scene
from curvedray.world.world import scene_from_caption

SIZE = (192, 128)
LENSES = [
    (60, 0.0),
    (90, 0.0),
    (120, 0.0),
    (110, 0.55),
    (150, 1.0),
    (180, 1.3),
    (118, 1.2),
    (210, 1.0),
    (225, 1.5),
    (235, 1.7),
    (239, 2.0),
]

READ = """async ({ scene, camera, how, colours }) => {
  const { Caster } = await import('/view/caster.js');
  window.caster ??= new Caster(document.createElement('canvas'), colours);
  let bytes;
  if (how.mode === 'rays' || how.mode === 'radius') bytes = new Uint8Array(caster.read(scene, camera, how).buffer);
  else {
    const [width, height] = camera.lens.size, { gl } = caster;
    caster.draw(scene, camera, how);
    bytes = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  }
  let text = '';
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}"""


@pytest.fixture(scope="module")
def page(chromium, static_files) -> Iterator[Any]:
    page = chromium.new_page()
    page.goto(f"{static_files}/view/caster.js")
    yield page
    page.close()


def numbers(scene: Scene) -> dict:
    """A scene as the server hands it to the page."""
    room = vars(scene.room) | {"half_depth": scene.room.half_depth}
    return {"room": room, "things": [vars(i) | {"half_depth": i.half_depth} for i in scene.things]}


def camera(cameras: Cameras, frame: int = 0) -> dict:
    lens = cameras.frame_lens[frame]
    (fx, fy), (cx, cy) = lens.focal.tolist(), lens.center.tolist()
    seen = {
        "fx": fx,
        "fy": fy,
        "cx": cx,
        "cy": cy,
        "xi": lens.xi.item(),
        "max_angle": lens.max_angle,
        "size": lens.size,
    }
    return {"lens": seen, "pose": cameras.world_from_camera[frame].flatten().tolist()}


def still(lens: Lens) -> Cameras:
    return Cameras(lens, torch.eye(4)[None], "metric")


def read(page, scene: Scene, cameras: Cameras, frame: int = 0, **how: Any) -> np.ndarray:
    how["time"] = frame / max(1, cameras.frames - 1)
    given = {"scene": numbers(scene), "camera": camera(cameras, frame), "how": how, "colours": near_to_far().tolist()}
    code = page.evaluate(READ, given)
    width, height = cameras.lens.size
    kind = np.float32 if how["mode"] in ("rays", "radius") else np.uint8
    made = np.frombuffer(base64.b64decode(code), kind).reshape(height, width, 4)
    return made if kind is np.float32 else made[::-1, :, :3]


@pytest.mark.parametrize(("hfov", "xi"), LENSES)
def test_rays_are_unprojects(page, hfov, xi):
    limit = 2 * math.degrees(math.acos(-min(xi, 1 / xi if xi else math.inf)))
    lens = Lens.from_fov(min(hfov, 0.98 * limit), xi, *SIZE)
    made = read(page, block_scene(parse_blocks("ball 1m at ahead 3m")), still(lens), mode="rays")
    rays, exist = lens.rays()
    assert (made[..., 3] > 0).tolist() == exist.tolist()
    assert np.abs(made[..., :3] - rays.numpy())[exist].max() <= 1e-5


@pytest.mark.parametrize("name", ["kitti360", "fisheye-180"])
def test_the_image_circle_of_a_named_lens(page, name):
    lens = named_lens(name, 128, 128)
    made = read(page, block_scene(parse_blocks("ball 1m at ahead 3m")), still(lens), mode="rays")
    assert (made[..., 3] > 0).tolist() == lens.mask().tolist()


def test_a_shift_of_half_a_pixel_would_be_found(page):
    lens = Lens.from_fov(150, 1.0, *SIZE)
    shifted = replace(lens, center=lens.center + 0.5)
    made = read(page, block_scene(parse_blocks("ball 1m at ahead 3m")), still(shifted), mode="rays")
    assert np.abs(made[..., :3] - lens.rays()[0].numpy()).max() > 1e-3


def test_there_is_room_for_every_block(page):
    assert page.evaluate("async () => (await import('/view/glsl_scene.js')).MOST_THINGS") >= MOST_BLOCKS


SCENES = {
    "court": lambda: (
        scene_from_caption(
            "a red ball moving left and a blue box with a green pillar behind in a desert courtyard"
        ).scene
    ),
    "preview": preview_scene,
    "blocks": lambda: block_scene(
        parse_blocks(
            "box 1x0.6x2m at left 2m ahead 4m turned 30deg; wall 6x3m at ahead 7m;"
            "ball 0.8m at right 1m ahead 3m up 0.5m moving left 1m;"
            "pillar 0.5x1.2m at right 2m ahead 5m"
        )
    ),
    "shadows": lambda: replace(preview_scene(), room=replace(preview_scene().room, shadows=0.34, deep=6.0, ahead=1.5)),
}
VIEWS = [
    ("pinhole-90", "static"),
    ("fisheye-150", "orbit left 30deg radius 3"),
    ("fisheye-180", "pedestal up 1 and tilt down 20deg"),
    ("kitti360", "pan right 70deg and roll cw 20deg"),
]


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(("lens", "move"), VIEWS)
def test_pictures_and_distances_are_the_ray_casters(page, name, lens, move):
    scene = SCENES[name]()
    cameras = trajectory(move, named_lens(lens, *SIZE), 3, unit="metric", near=1.0)
    truth = render(scene, cameras)
    edges = 5 if scene.room.shadows else 0  # pixels where a hard shadow's edge rounds to the other side
    for frame in (0, 2):
        made = read(page, scene, cameras, frame, mode="picture", samples=2).astype(int)
        off = np.abs(made - truth.frames[frame].numpy().astype(int)).max(-1)
        assert (off > 2).sum() <= edges
        radius, surface = np.moveaxis(read(page, scene, cameras, frame, mode="radius")[..., :2], -1, 0)
        assert (surface != truth.surface[frame].numpy()).sum() <= 2  # silhouettes
        valid = truth.valid[frame].numpy() & (surface == truth.surface[frame].numpy())
        assert np.abs(np.log(radius[valid] / truth.radius[frame].numpy()[valid])).max() < 1e-3


def test_distances_in_colour(page):
    scene = SCENES["blocks"]()
    cameras = still(named_lens("fisheye-180", *SIZE))
    truth = render(scene, cameras, samples=1)
    made = read(page, scene, cameras, mode="distance", limits=[1.5, 9.0]).astype(int)
    expected = radial_picture(truth.radius, truth.valid, (1.5, 9.0))[0].numpy().astype(int)
    expected[~cameras.lens.mask().numpy()] = 0
    assert (np.abs(made - expected).max(-1) > 8).mean() < 1e-3  # one colour of 256 next to another
