"""A panorama through a lens: as the ray-caster sees it, wherever the lens looks; nothing aliases."""

import math
from functools import lru_cache

import pytest
import torch
import torch.nn.functional as F

from curvedray.cameras import Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.cameras.sphere import equirectangular_rays
from curvedray.data import sphere_kernel
from curvedray.data.sphere_pyramid import View, distances_seen, look, look_planes, pyramid_of
from curvedray.media.planes import planes_from_rgb
from curvedray.moves.trajectory import trajectory
from curvedray.world.panorama import panorama_frames
from curvedray.world.raycast import render
from curvedray.world.world import scene

WIDTH, HEIGHT = 208, 120


@lru_cache(maxsize=1)
def court() -> tuple[torch.Tensor, torch.Tensor]:
    picture, radius = next(panorama_frames(scene(3).scene, torch.eye(4)[None], 384))
    return torch.from_numpy(picture), torch.from_numpy(radius)


def shown(panorama: torch.Tensor, lens: Lens, rotation: torch.Tensor) -> torch.Tensor:
    view = View.of(lens)
    return look(pyramid_of(panorama, *view.used(panorama.shape[1])), view, rotation)


def shift(a: torch.Tensor, b: torch.Tensor) -> float:
    """How far, in pixels, b is displaced against a: the least-squares answer of the brightness equation."""
    a, b = a.double().mean(-1), b.double().mean(-1)
    mean = (a + b) / 2
    gx, gy = (mean[1:-1, 2:] - mean[1:-1, :-2]) / 2, (mean[2:, 1:-1] - mean[:-2, 1:-1]) / 2
    slopes, change = torch.stack([gx.flatten(), gy.flatten()], -1), (b - a)[1:-1, 1:-1].flatten()
    return torch.linalg.lstsq(slopes, -change[:, None]).solution.norm().item()


@pytest.mark.parametrize(
    "name",
    ["pinhole-90", "fisheye-180", *(pytest.param(i, marks=pytest.mark.slow) for i in ("fisheye-150", "kitti360"))],
)
@pytest.mark.parametrize(("move", "yaw", "pitch"), [("static", 0, 0), ("static", 177, 5), ("roll cw 30deg", 60, -80)])
def test_a_shot_is_what_the_ray_caster_sees(name, move, yaw, pitch):
    """Ahead, over the seam behind, and at a pole: within a tenth of a pixel, and nearly every colour the same."""
    lens = named_lens(name, WIDTH, HEIGHT)
    cameras = trajectory(move, lens, 2, unit="metric", yaw=yaw, pitch=pitch)[[1]]
    rotation = cameras.world_from_camera[0, :3, :3]
    direct, taken = render(scene(3).scene, cameras), shown(court()[0], lens, rotation)
    inside = (
        -F.max_pool2d(-lens.mask()[None].float(), 5, 1, 2)[0] > 0
    )  # on the rim the ray-caster shows parts of pixels
    both = [picture * inside[..., None] for picture in (direct.frames[0], taken)]
    assert shift(*both) < 0.1
    assert (both[0].float() - both[1].float()).abs().mean() < 0.75  # levels: edges of shadows are hard
    assert (taken[~lens.mask()] == 0).all()


def test_the_shift_is_measured():
    """The measure that the test above relies on sees a tenth of a pixel."""
    lens = named_lens("fisheye-150", WIDTH, HEIGHT)
    moved = Lens(lens.focal, lens.center + torch.tensor([0.1, 0.0]), lens.xi, lens.size)
    eye = torch.eye(3)
    assert shift(shown(court()[0], lens, eye), shown(court()[0], moved, eye)) == pytest.approx(0.1, abs=0.03)


def test_distances_are_the_ray_casters():
    lens = named_lens("fisheye-150", WIDTH, HEIGHT)
    cameras = trajectory("static", lens, 1, unit="metric", yaw=160, pitch=20)
    direct = render(scene(3).scene, cameras)
    seen = distances_seen(court()[1], lens, cameras.world_from_camera[0, :3, :3])
    both = direct.valid[0] & torch.isfinite(seen)
    assert (direct.valid[0] == torch.isfinite(seen)).float().mean() > 0.99
    error = (seen / direct.radius[0] - 1).abs()[both]
    assert error.median() < 1e-4
    assert error.quantile(0.99) < 0.02


def stripes(period: float, width: int = 1024) -> torch.Tensor:
    """Grey waves along the horizon's circle and across it, `period` degrees long."""
    rays = equirectangular_rays(width, width // 2)
    yaw, pitch = torch.atan2(rays[..., 0], rays[..., 2]), torch.asin(-rays[..., 1])
    waves = torch.sin(yaw * 360 / period) * torch.sin(pitch * 360 / period)
    return (127.5 + 120 * waves).round().to(torch.uint8)[..., None].expand(-1, -1, 3)


def test_nothing_aliases_and_what_can_be_shown_is():
    lens = named_lens("fisheye-150", WIDTH, HEIGHT)  # a pixel is about 0.7 degrees, of the panorama 0.35
    fine = shown(stripes(0.9), lens, torch.eye(3)).float()
    assert fine[20:-20, 30:-30].std() < 6  # it was 60 in the panorama
    coarse = shown(stripes(6.0), lens, torch.eye(3)).float()
    assert coarse[40:80, 60:150].std() > 40


def test_crowded_pixels_at_a_pole_are_averaged(monkeypatch):
    """Columns by turns black and white are thin wedges that meet at the pole: grey there, where none can be shown."""
    panorama = torch.zeros(256, 512, 3, dtype=torch.uint8)
    panorama[:, ::2] = 255
    lens = named_lens("pinhole-60", 64, 64)
    up = trajectory("static", lens, 1, pitch=90).world_from_camera[0, :3, :3]
    seen = shown(panorama, lens, up).float()[24:40, 24:40]
    assert seen.std() < 12
    assert seen.mean() == pytest.approx(127.5, abs=1.5)
    monkeypatch.setattr("curvedray.data.sphere_pyramid.STEEPEST", 1e9)
    assert shown(panorama, lens, up).float()[24:40, 24:40].std() > 30


def test_turning_the_panorama_turns_the_picture():
    """A panorama rolled by whole pixels, seen by a lens turned as much, is the same picture: seam or no seam."""
    panorama, lens = court()[0], named_lens("wide-110", WIDTH, HEIGHT)
    width = panorama.shape[1]
    for columns in (1, width // 2, width - 3):
        angle = 2 * math.pi * columns / width
        cos, sin = math.cos(angle), math.sin(angle)
        turn = torch.tensor([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])
        # Only with copies as fine as the panorama are whole pixels the same pixels.
        view = View.of(lens)
        there = look(pyramid_of(panorama.roll(columns, 1), copies=1), view, turn)
        here = look(pyramid_of(panorama, copies=1), view, torch.eye(3))
        assert (there.int() - here.int()).abs().max() <= 1


@pytest.mark.parametrize("name", ["pinhole-60", "fisheye-180", "kitti360"])
def test_the_compiled_work_is_its_twins(name):
    """Copies agree but for rounding, and so does what is seen of them, at every level and angle."""
    if sphere_kernel.library() is None:
        pytest.skip("no compiler here")
    generator = torch.Generator().manual_seed(0)
    panorama = torch.randint(0, 256, (96, 192, 3), dtype=torch.uint8, generator=generator)
    view = View.of(named_lens(name, 60, 44))
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    for finest in (0, 1):
        fast, slow = (pyramid_of(panorama, finest, 4, compiled=i) for i in (True, False))
        assert fast.copies.tolist() == slow.copies.tolist()
        apart = (fast.atlas.int() - slow.atlas.int()).abs()
        assert apart.max() <= 2  # each copy is made of whole numbers, of the one before it
        assert apart.float().mean() < 0.2
        seen = [look(slow, view, turn, compiled=i).int() for i in (True, False)]
        assert (seen[0] - seen[1]).abs().max() <= 1
        assert (seen[0] != seen[1]).float().mean() < 0.01
        planes = torch.empty(66, 60, dtype=torch.uint8)
        look_planes(slow, view, turn, planes)
        assert torch.equal(planes, planes_from_rgb(seen[0].to(torch.uint8)))
