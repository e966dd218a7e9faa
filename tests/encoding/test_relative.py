"""Relative encodings: golden numbers of the public code, and the invariances they exist for."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from curvedray.cameras import Cameras, Lens, TokenGrid, inverse_pose
from curvedray.encoding.relative import (
    absolute_maps,
    gta,
    per_token,
    pluecker_map,
    prope,
    ray_frames,
    ray_map,
    relative_encoding,
)
from curvedray.encoding.relative import relative_ray as relray
from curvedray.errors import InputError

DATA = Path(__file__).parents[1] / "goldens"


def golden(name: str) -> dict[str, Tensor]:
    with np.load(DATA / f"{name}.npz") as file:
        return {key: torch.from_numpy(file[key]) for key in file}


def poses(count: int, seed: int = 0, turn: float = 0.4, move: float = 0.5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    out = torch.eye(4, dtype=torch.float64).repeat(count, 1, 1)
    skew = torch.randn(count, 3, 3, generator=generator, dtype=torch.float64) * turn
    out[:, :3, :3] = torch.linalg.matrix_exp(skew - skew.mT)
    out[:, :3, 3] = torch.randn(count, 3, generator=generator, dtype=torch.float64) * move
    return out


@pytest.fixture(scope="module")
def ucpe() -> tuple[dict[str, Tensor], list[Cameras], TokenGrid]:
    g = golden("ucpe_raymats_uplat")
    grid = TokenGrid(3, 4, 6)
    lenses = [Lens.from_fov(f.double(), xi.double(), 6, 4) for f, xi in zip(g["x_fov_deg"], g["xi"], strict=True)]
    return g, [Cameras(lens, pose.double()) for lens, pose in zip(lenses, g["c2w"], strict=True)], grid


def test_ray_frames_are_ucpes(ucpe):
    g, cameras, grid = ucpe
    for index, camera in enumerate(cameras):
        ray_from_world = inverse_pose(ray_frames(camera, grid)).reshape(3, 4, 6, 4, 4)
        torch.testing.assert_close(ray_from_world, g["raymats_f64"][index], atol=2e-6, rtol=0)


def test_absolute_maps_match_ucpe_in_its_own_form(ucpe):
    g, cameras, grid = ucpe
    for index, camera in enumerate(cameras):
        ours = absolute_maps(camera, grid, form="ucpe").float().reshape(3, 4, 6, 3)
        expected = torch.cat([g["up_map"], g["lat_map"]], -1)[index]
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


def test_the_exact_up_is_the_limit_of_small_steps(ucpe):
    """Against the lens itself: project a point moved towards the sky by 1e-6."""
    g, cameras, grid = ucpe
    for index, camera in enumerate(cameras):
        ray = camera.rays(grid, torch.zeros(1, 2, dtype=torch.float64))[0][..., 0, :]
        up = -camera.world_from_camera[:, 1, :3]
        lens = camera.frame_lens
        moved = lens.project(ray + 1e-6 * up[:, None])[0] - lens.project(ray)[0]
        ours = absolute_maps(camera, grid)
        torch.testing.assert_close(ours[:, :2], F.normalize(moved, dim=-1).flatten(0, 1), atol=1e-4, rtol=0)
        reference = g["up_map_delta1e3"][index].reshape(-1, 2).double()
        assert (ours[:, :2] * reference).sum(
            -1
        ).min() > 0.9999  # its small-step form keeps the bracket, hence not equal


def test_the_whole_ucpe_adapter():
    g = golden("ucpe_adapter_relray_absmap")
    grid = TokenGrid(3, 4, 6)

    def linear(name: str, x: Tensor) -> Tensor:
        return F.linear(x, g[f"w_{name}_weight"], g[f"w_{name}_bias"])

    encoding = relative_encoding(g["viewmats"], torch.linalg.inv(g["viewmats"]), grid, 16)
    for expected, extra in ((g["out"], linear("cam_encoder", g["cam_emb"])), (g["out_without_cam_emb"], 0)):
        q, k, v = (linear(f"{n}_proj", g["x"] + extra).unflatten(-1, (2, 16)).transpose(1, 2) for n in "qkv")
        out = linear("out_proj", encoding.attention(q, k, v).transpose(1, 2).flatten(2))
        torch.testing.assert_close(out, expected, atol=2e-5, rtol=1e-4)


def test_prope_and_gta_match_the_public_code():
    g = golden("prope_gta_attention")
    grid = TokenGrid(3, 2, 4)
    focal, center = g["K"][..., (0, 1), (0, 1)], g["K"][..., :2, 2]
    cameras = Cameras(Lens(focal, center, torch.zeros(1, 3), (64, 32)), inverse_pose(g["w2c"].double()).float())
    q, k, v = g["q"], g["k"], g["v"]
    torch.testing.assert_close(prope(cameras, grid, 16).attention(q, k, v), g["out_prope"], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(gta(cameras, grid, 16).attention(q, k, v), g["out_gta"], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("make", [gta, prope, relray])
@pytest.mark.parametrize("xi", [0.0, 1.6])
def test_the_world_frame_does_not_matter(make, xi):
    """At xi = 1.6 the corners have no ray, and still nothing depends on the origin."""
    grid = TokenGrid(3, 3, 4)
    lens = Lens.from_fov(torch.tensor(90.0 if xi == 0 else 250.0, dtype=torch.float64), xi, 64, 48)
    here = Cameras(lens, poses(3))
    there = Cameras(lens, poses(1, seed=9, turn=2.0, move=5.0) @ here.world_from_camera)
    q, k, v = torch.randn(3, 2, 2, grid.tokens, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(make(here, grid, 16).attention(q, k, v), make(there, grid, 16).attention(q, k, v))
    if make is relray and xi:
        assert not here.rays(grid, torch.zeros(1, 2))[1].all()
        outs = [relray(c, grid, 16, missing="identity").attention(q, k, v) for c in (here, there)]
        assert (outs[0] - outs[1]).abs().max() > 1e-3


def test_batched_cameras_are_cameras_one_by_one():
    grid = TokenGrid(2, 2, 3)
    lens = Lens.from_fov(torch.tensor(150.0, dtype=torch.float64), 0.8, 48, 32)
    both = torch.stack([poses(2, 1), poses(2, 2)])
    q, k, v = torch.randn(3, 2, 2, grid.tokens, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for make in (gta, prope, relray):
        whole = make(Cameras(lens, both), grid, 16).attention(q, k, v)
        for i in range(2):
            one = make(Cameras(lens, both[i]), grid, 16).attention(q[i : i + 1], k[i : i + 1], v[i : i + 1])
            torch.testing.assert_close(whole[i : i + 1], one)
    for name in (absolute_maps, pluecker_map, ray_map):
        torch.testing.assert_close(name(Cameras(lens, both), grid)[1], name(Cameras(lens, both[1]), grid))


def test_a_line_does_not_depend_on_where_along_it_the_camera_stands():
    grid = TokenGrid(1, 2, 3)
    lens = Lens.from_fov(torch.tensor(120.0, dtype=torch.float64), 0.5, 48, 32)
    camera = Cameras(lens, poses(1))
    line = pluecker_map(camera, grid)[4]
    moved = camera.world_from_camera.clone()
    moved[:, :3, 3] += 3.0 * line[:3]
    torch.testing.assert_close(pluecker_map(Cameras(lens, moved), grid)[4], line)
    assert (line[:3] @ line[3:]).abs() < 1e-12


def test_a_ray_map_is_the_lens_and_not_the_pose():
    grid = TokenGrid(2, 2, 3)
    lens = Lens.from_fov(torch.tensor(150.0, dtype=torch.float64), 0.8, 48, 32)
    rays = ray_map(Cameras(lens, poses(2)), grid)
    torch.testing.assert_close(rays, ray_map(Cameras(lens, poses(2, seed=1)), grid))
    corner = lens.unproject(torch.tensor([16.0, 16.0], dtype=torch.float64))[0]
    torch.testing.assert_close(rays[4], corner)  # of the second row and column of patches of 16 pixels
    narrow = Lens.from_fov(torch.tensor(60.0, dtype=torch.float64), 0.0, 48, 32)
    assert (ray_map(Cameras(narrow, poses(2)), grid)[..., 2] >= rays[..., 2]).all()  # nearer to the axis


def test_a_ray_along_camera_y_still_has_a_frame():
    grid = TokenGrid(1, 2, 1)
    lens = Lens.from_fov(torch.tensor(180.0, dtype=torch.float64), 1.0, 32, 32, axis="vertical")
    top = Lens(lens.focal, torch.tensor([0.0, 16.0], dtype=torch.float64), lens.xi, lens.size)  # ray (0, -1, 0)
    frames = ray_frames(Cameras(top, torch.eye(4, dtype=torch.float64)[None]), grid)
    identity = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    torch.testing.assert_close(frames @ inverse_pose(frames), identity, atol=1e-9, rtol=0)


def test_tokens_of_a_frame_share_its_pose():
    grid = TokenGrid(2, 2, 3)
    assert torch.equal(per_token(poses(2), grid)[6:], poses(2)[1].expand(6, 4, 4))


def test_a_head_that_cannot_be_split_is_refused():
    with pytest.raises(InputError, match="head width"):
        gta(Cameras(Lens.from_fov(90.0), torch.eye(4)[None]), TokenGrid(1, 2, 2), 20)
