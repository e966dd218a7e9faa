"""Cameras: the same path whatever the world's origin, one per latent frame, and nothing that is not a rigid pose."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from curvedray import Cameras, InputError, Lens, TokenGrid
from curvedray.cameras import check_poses, inverse_pose
from curvedray.cameras.lens import pixel_centers


def random_poses(frames, seed=0, batch=(), dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    square = torch.randn(*batch, frames, 3, 3, dtype=torch.float64, generator=generator)
    rotation = torch.linalg.qr(square).Q
    rotation = rotation * torch.linalg.det(rotation).sign()[..., None, None]
    poses = torch.eye(4, dtype=torch.float64).repeat(*batch, frames, 1, 1)
    poses[..., :3, :3] = rotation
    poses[..., :3, 3] = torch.randn(*batch, frames, 3, dtype=torch.float64, generator=generator)
    return poses.to(dtype)


def cameras_of(poses, **kwargs):
    return Cameras(Lens.from_fov(90.0, 0.5, 64, 48).to(poses.dtype), poses, **kwargs)


# -- poses


def test_an_inverse_undoes_its_pose():
    poses = random_poses(5, batch=(2,))
    torch.testing.assert_close(inverse_pose(poses) @ poses, torch.eye(4, dtype=torch.float64).expand(2, 5, 4, 4))


@given(seed=st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_where_the_world_has_its_origin_does_not_matter(seed):
    cameras = cameras_of(random_poses(4, seed))
    moved = cameras_of(random_poses(1, seed + 1) @ cameras.world_from_camera)
    torch.testing.assert_close(moved.query_from_source(), cameras.query_from_source(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        moved.relative_to_first().world_from_camera, cameras.relative_to_first().world_from_camera, rtol=1e-9, atol=1e-9
    )


def test_a_far_origin_costs_no_digits_that_the_poses_have():
    poses = random_poses(3)
    poses[:, :3, 3] += 1000.0
    wanted = cameras_of(poses).query_from_source()
    got = cameras_of(poses.float()).query_from_source()
    # A float32 position near 1000 is itself good to 6e-5.
    assert (got - wanted).abs().max() < 5e-4


def test_a_camera_that_only_turns_stays_exactly_where_it_was():
    poses = random_poses(3)
    poses[:, :3, 3] = torch.tensor([1e6, -0.1, 3.0])
    assert cameras_of(poses.float()).query_from_source()[..., :3, 3].abs().max() == 0


def test_carrying_from_source_to_query_composes():
    cameras = cameras_of(random_poses(4))
    query_from_source = cameras.query_from_source()
    eye = torch.eye(4, dtype=torch.float64)
    for q in range(4):
        torch.testing.assert_close(query_from_source[q, q], eye)
        for s in range(4):
            torch.testing.assert_close(query_from_source[q, s] @ query_from_source[s, q], eye)
            point = torch.tensor([0.3, -0.2, 2.0, 1.0], dtype=torch.float64)
            world = cameras.world_from_camera[s] @ point
            torch.testing.assert_close(cameras.world_from_camera[q] @ (query_from_source[q, s] @ point), world)
    others = cameras_of(random_poses(2, seed=9))
    assert cameras.query_from_source(others).shape == (2, 4, 4, 4)
    torch.testing.assert_close(
        cameras.query_from_source(others)[1, 3],
        inverse_pose(others.world_from_camera[1]) @ cameras.world_from_camera[3],
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_relative_to_first_starts_exactly_at_the_identity(dtype):
    cameras = cameras_of(random_poses(4, batch=(2,), dtype=dtype), unit="metric", fps=16.0)
    relative = cameras.relative_to_first()
    assert torch.equal(relative.world_from_camera[:, 0], torch.eye(4, dtype=dtype).expand(2, 4, 4))
    assert (relative.unit, relative.fps) == ("metric", 16.0)
    again = relative.relative_to_first()
    torch.testing.assert_close(again.world_from_camera, relative.world_from_camera)


def test_scaling_divides_translations_alone_and_leaves_the_original():
    cameras = cameras_of(random_poses(3), unit="metric")
    before = cameras.world_from_camera.clone()
    scaled = cameras.scaled(2.5)
    torch.testing.assert_close(scaled.world_from_camera[:, :3, 3], before[:, :3, 3] / 2.5)
    assert torch.equal(scaled.world_from_camera[:, :3, :3], before[:, :3, :3])
    assert torch.equal(cameras.world_from_camera, before)
    assert scaled.unit == "near"
    for near in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="near distance"):
            cameras.scaled(near)


def test_gradients_reach_the_poses():
    poses = random_poses(3).requires_grad_()
    cameras_of(poses).query_from_source().square().sum().backward()
    assert torch.isfinite(poses.grad).all()
    assert (poses.grad != 0).any()


# -- frames


def test_one_camera_a_latent_frame():
    grid = TokenGrid.from_video(17, 48, 64)
    cameras = cameras_of(random_poses(17))
    latent = cameras.latent_frames(grid)
    assert len(latent) == 5
    assert torch.equal(latent.world_from_camera, cameras.world_from_camera[::4])
    assert latent.latent_frames(grid) is latent
    with pytest.raises(InputError, match="17 poses"):
        cameras_of(random_poses(16)).latent_frames(grid)


def test_a_lens_per_frame_travels_with_its_frame():
    fovs = torch.linspace(40, 120, 17, dtype=torch.float64)
    cameras = Cameras(Lens.from_fov(fovs, 0.5, 64, 48), random_poses(17))
    latent = cameras.latent_frames(TokenGrid.from_video(17, 48, 64))
    torch.testing.assert_close(latent.lens.hfov, fovs[::4])
    torch.testing.assert_close(cameras[3].lens.hfov, fovs[3:4])
    torch.testing.assert_close(cameras[[5, 1]].lens.hfov, fovs[[5, 1]])
    assert len(cameras[-1]) == 1
    batched = Cameras(Lens.from_fov(fovs, 0.5, 64, 48), random_poses(17, batch=(2,)))
    torch.testing.assert_close(batched[2:4].frame_lens.hfov, fovs[2:4].expand(2, 2))
    one = cameras_of(random_poses(4))
    assert one[1:3].lens is one.lens
    assert one.frame_lens.batch_shape == (4,)


def test_rays_of_patches_are_the_lens_at_their_corners():
    cameras, grid = cameras_of(random_poses(2, batch=(3,))), TokenGrid(2, 3, 4)
    offsets = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    rays, valid = cameras.rays(grid, offsets)
    assert rays.shape == (3, 2, 12, 3, 3)
    assert valid.all()
    for patch, (row, col) in enumerate((r, c) for r in range(3) for c in range(4)):
        corner = torch.tensor([col * 16.0, row * 16.0], dtype=torch.float64)
        torch.testing.assert_close(rays[1, 0, patch, 0], cameras.lens.unproject(corner)[0])
        right = corner + torch.tensor([16.0, 0.0])
        torch.testing.assert_close(rays[2, 1, patch, 1], cameras.lens.unproject(right)[0])


# -- what is refused


def broken(change):
    poses = random_poses(3)
    change(poses)
    return poses


def mirrored(poses):
    poses[1, :3, 0] *= -1


BAD_POSES = {
    "nan": (lambda p: p[1].__setitem__((0, 3), math.nan), "finite"),
    "infinity": (lambda p: p[1].__setitem__((0, 0), math.inf), "finite"),
    "scaled": (lambda p: p[1, :3, :3].mul_(1.1), "rotation"),
    "sheared": (lambda p: p[1].__setitem__((0, 1), 3.0), "rotation"),
    "zero": (lambda p: p[1, :3, :3].zero_(), "rotation"),
    "mirrored": (mirrored, "right-handed"),
    "last row": (lambda p: p[1].__setitem__((3, 0), 0.5), "last row"),
}


@pytest.mark.parametrize(("change", "law"), BAD_POSES.values(), ids=BAD_POSES.keys())
def test_what_is_not_a_pose_is_refused_by_frame_and_law(change, law):
    with pytest.raises(InputError, match=law) as error:
        cameras_of(broken(change))
    assert error.value.name == "pose of frame 1"


def test_rotations_rounded_to_a_few_digits_are_accepted():
    check_poses((random_poses(20) * 1e4).round() / 1e4)


BAD_CAMERAS = {
    "no frames": lambda: cameras_of(torch.zeros(0, 4, 4)),
    "fps": lambda: cameras_of(random_poses(2), fps=0.0),
    "fps nan": lambda: cameras_of(random_poses(2), fps=math.nan),
    "lens of other frames": lambda: Cameras(Lens.from_fov(torch.tensor([60.0, 70.0]), 0.0), random_poses(3)),
    "empty slice": lambda: cameras_of(random_poses(3))[5:],
    "grid": lambda: TokenGrid(0, 1, 1),
    "grid stride": lambda: TokenGrid(1, 1, 1, (4, 0, 16)),
    "video frames": lambda: TokenGrid.from_video(80, 480, 832),
    "video height": lambda: TokenGrid.from_video(81, 481, 832),
    "video of nothing": lambda: TokenGrid.from_video(1, 0, 832),
    "video stride": lambda: TokenGrid.from_video(81, 480, 832, (0, 16, 16)),
}


@pytest.mark.parametrize("make", BAD_CAMERAS.values(), ids=BAD_CAMERAS.keys())
def test_impossible_cameras_and_grids_are_refused(make):
    with pytest.raises(InputError, match="expected"):
        make()


def test_wrong_shapes_and_words_are_refused_without_executed_annotations():
    """In the tests the annotations catch these first; a user's session has InputError alone."""
    script = """
import torch
from curvedray import Cameras, InputError, Lens, TokenGrid, trajectory
from curvedray.moves.trajectory import keyframes, look_at
lens, poses = Lens.from_fov(60.0), torch.eye(4).expand(3, 4, 4)
makes = [
    lambda: Cameras(lens, torch.eye(4)),
    lambda: Cameras(lens, poses[:, :3]),
    lambda: Cameras(lens, poses, unit="miles"),
    lambda: Lens(torch.ones(3), torch.ones(2), torch.tensor(0.0), (4, 4)),
    lambda: Lens(torch.ones(2).long(), torch.ones(2), torch.tensor(0.0), (4, 4)),
    lambda: Lens.from_fov(60.0, axis="sideways"),
    lambda: Lens("wide", "centre", 0, (4, 4)),
    lambda: Lens(torch.ones(2), torch.ones(2), torch.tensor(0.0), (4.5, 4)),
    lambda: Lens(torch.ones(2), torch.ones(2), torch.tensor(0.0), "832x480"),
    lambda: Lens.from_fov("wide"),
    lambda: Cameras("fishy", poses),
    lambda: Cameras(None, poses),
    lambda: Cameras(lens, "poses"),
    lambda: Cameras(lens, poses.long()),
    lambda: trajectory("static", 90),
    lambda: trajectory(None, lens),
    lambda: trajectory("static", lens, 2.5),
    lambda: trajectory("static", lens, "9"),
    lambda: keyframes("poses", lens),
    lambda: look_at([[0, 0, None]], [0, 0, 1]),
    lambda: TokenGrid(1.5, 2, 3),
    lambda: TokenGrid(1, 2, 3, 16),
]
for make in makes:
    try:
        make()
        print("accepted")
    except InputError as error:
        print(error.name)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    poses = "Cameras.world_from_camera"
    assert out[:6] == [poses, poses, "Cameras.unit", "Lens", "Lens", "field of view's axis"]
    assert out[6:10] == ["numbers of a lens", "width of Lens.size", "Lens.size", "numbers of a lens"]
    assert out[10:14] == ["lens", "lens", poses, poses]
    assert out[14:20] == ["lens", "moves", "frames", "frames", "keyframes", "positions"]
    assert out[20:] == ["TokenGrid.frames", "stride"]


def test_arrays_lists_and_names_are_as_good_as_tensors():
    """NumPy arrays, lists and lens names at the doors give what tensors and lenses give.

    Whole numbers too: a tensor of them made look_at round its rotations to whole numbers.
    """
    script = """
import numpy as np
import torch
from curvedray import Cameras, Lens, TokenGrid, trajectory
from curvedray.cameras.named_lenses import named_lens
from curvedray.moves.trajectory import keyframes, look_at
lens = Lens(torch.tensor([400.0, 410.0]), torch.tensor([320.0, 240.0]), torch.tensor(0.5), (640, 480))
for same in (
    Lens(np.array([400, 410], np.float32), [320, 240], 0.5, [np.int64(640), 480]),
    Lens([400.0, 410.0], np.array([320, 240]), np.float32(0.5), (640, 480)),
):
    assert same.size == lens.size
    assert all(torch.equal(getattr(same, i), getattr(lens, i)) for i in ("focal", "center", "xi"))
points = np.random.default_rng(0).normal(size=(5, 3)) + [0, 0, 4]
pixels, seen = lens.project(points)
torch.testing.assert_close(pixels, lens.project(torch.from_numpy(points))[0])
torch.testing.assert_close(lens.unproject(pixels.numpy())[0], lens.unproject(pixels)[0])
poses = np.tile(np.eye(4), (3, 1, 1))
cameras = Cameras("fisheye-150", poses)
assert torch.equal(cameras.lens.focal, named_lens("fisheye-150").focal)
assert torch.equal(Cameras(lens, poses.tolist()).world_from_camera, torch.eye(4).expand(3, 4, 4))
assert torch.equal(trajectory("pan left 9deg", "pinhole-90", 5).world_from_camera,
                   trajectory("pan left 9deg", named_lens("pinhole-90"), np.int64(5)).world_from_camera)
keys = look_at(np.array([[0.0, 0, 0], [1.0, 0, 0]]), [0, 0, 5.0])
places, target = torch.tensor([[0, 0, 0], [2, 0, 0]]), torch.tensor([0, 0, 5])
assert torch.equal(look_at(places, target), look_at(places.float(), target.float()))
assert torch.equal(look_at(places.tolist(), target.tolist()), look_at(places.float(), target.float()))
assert len(keyframes(keys.numpy(), "pinhole-90", 7, times=[0, 2])) == 7
assert TokenGrid(np.int64(1), 2, 3, [4, 16, 16]) == TokenGrid(1, 2, 3)
assert Lens.from_fov(np.array([60.0, 70.0]), 0.0).batch_shape == (2,)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


# -- the token grid


def test_the_grid_of_a_video():
    grid = TokenGrid.from_video(81, 480, 832)
    assert (grid.frames, grid.rows, grid.cols) == (21, 30, 52)
    assert grid.tokens == 32760
    with pytest.raises(InputError, match="nearest is 81 x 480 x 832"):
        TokenGrid.from_video(80, 479, 830)


few = st.integers(1, 40)


@given(frames=few, rows=few, cols=few, stride=st.tuples(few, few, few))
def test_a_video_and_its_grid_say_the_same_size(frames, rows, cols, stride):
    dt, dy, dx = stride
    grid = TokenGrid.from_video((frames - 1) * dt + 1, rows * dy, cols * dx, stride)
    assert grid == TokenGrid(frames, rows, cols, stride)
    assert grid.video_frames == (frames - 1) * dt + 1
    assert grid.tokens == grid.frames * grid.patches == len(grid.patch_points((cols, rows), torch.zeros(1, 2))) * frames


def test_tokens_run_along_x_then_y():
    grid = TokenGrid(2, 3, 4)
    points = grid.patch_points((64, 48), torch.tensor([[0.0, 0.0], [0.5, 0.5]]))
    assert points.shape == (12, 2, 2)
    assert points[:5, 0].tolist() == [[0, 0], [16, 0], [32, 0], [48, 0], [0, 16]]
    assert points[-1, 1].tolist() == [56, 40]


def test_pixel_centres_lie_at_the_half():
    centers = pixel_centers((3, 2), torch.zeros(1))
    assert centers[0, 0].tolist() == [0.5, 0.5]
    assert centers[1, 2].tolist() == [2.5, 1.5]
