"""Clips: nothing lost between a folder and a batch, one scale for poses and radii, caches that resume."""

import pytest
import torch
from tiny import TinyFootage, TinyModel, footage

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.data.clips import (
    EncodedOnTheFly,
    Footage,
    Skipped,
    VideoShape,
    batch_of,
    clip_at,
    clip_number,
    encoded,
    fitted,
    in_near_distances,
)
from curvedray.encoding.curved import OFFSETS
from curvedray.errors import InputError
from curvedray.generation.shot import near_of
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

SHAPE = VideoShape(9, 32, 48)


# -- footage to clip


def test_poses_and_radii_are_divided_by_one_number():
    one = footage(1)
    clip = encoded(one, TinyModel(), SHAPE)
    assert clip.cameras.unit == "near"
    travel = one.cameras.world_from_camera[::4, :3, 3] / one.radial.near
    torch.testing.assert_close(clip.cameras.world_from_camera[:, :3, 3], travel)
    named = encoded(footage(1, near=2.5), TinyModel(), SHAPE)  # a near distance somebody measured wins
    ratio = 2.5 / one.radial.near
    torch.testing.assert_close(named.cameras.world_from_camera[:, :3, 3] * ratio, travel)
    torch.testing.assert_close(named.log_radius.exp() * ratio, clip.log_radius.exp())


def test_cropping_moves_the_lens_with_the_pixels():
    wide = footage(0, height=64, width=192)
    small = fitted(wide, SHAPE)
    assert small.video.shape == (9, 32, 48, 3)
    assert small.cameras.lens.size == (48, 32)
    before = wide.cameras.lens.unproject(torch.tensor([[48.0, 0.0], [96.0, 32.0], [144.0, 64.0]]))[0]
    after = small.cameras.lens.unproject(torch.tensor([[0.0, 0.0], [24.0, 16.0], [48.0, 32.0]]))[0]
    torch.testing.assert_close(before, after)
    assert small.radial.radius.shape == (9, 64, 96)
    assert torch.equal(small.radial.radius, wide.radial.radius[:, :, 48:144])


def test_a_map_smaller_than_the_video_is_cropped_in_proportion():
    wide = footage(0, height=64, width=192)
    half = RadialMap(wide.radial.radius[:, ::2, ::2], wide.radial.valid[:, ::2, ::2], 1.0)
    assert fitted(type(wide)(wide.id, "", wide.video, wide.cameras, half), SHAPE).radial.radius.shape == (9, 32, 48)


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="at least 9 frames"):
        fitted(footage(0, frames=5), SHAPE)
    one = footage(0)
    with pytest.raises(InputError, match="a camera per frame"):
        fitted(type(one)(one.id, "", one.video, one.cameras[:5]), SHAPE)
    square = Cameras(Lens.from_fov(90.0, 0.0, 48, 48), one.cameras.world_from_camera, "metric")
    with pytest.raises(InputError, match="lens"):
        fitted(type(one)(one.id, "", one.video, square), SHAPE)
    unknown = Cameras(one.cameras.lens, one.cameras.world_from_camera, "arbitrary")
    with pytest.raises(InputError, match="unknown scale"):
        in_near_distances(type(one)(one.id, "", one.video, unknown, one.radial))
    kept, _ = in_near_distances(type(one)(one.id, "", one.video, unknown))
    assert kept.unit == "arbitrary"


def test_a_map_in_the_cameras_own_unit_agrees_with_them_at_any_scale(tmp_path):
    """Regression: labels triangulated between RealEstate10K's poses were refused as metres beside an unknown scale."""
    one, seen = footage(0), []
    for scale in (1.0, 50.0):
        poses = one.cameras.world_from_camera.clone()
        poses[:, :3, 3] *= scale
        cameras = Cameras(one.cameras.lens, poses, "arbitrary")
        map = RadialMap.from_metric(scale * one.radial.radius, unit="cameras")
        map = read_radial_map(write_radial_map(map, tmp_path / "map.npz"))
        assert map.unit == "cameras"
        path, near = in_near_distances(type(one)(one.id, "", one.video, cameras, map))
        assert path.unit == "near"
        assert near_of(cameras, None, map) == pytest.approx(near.near)  # generation agrees with training
        seen.append((path.world_from_camera, near.radius / near.near, near.valid))
    for a, b in zip(*seen, strict=True):
        torch.testing.assert_close(a, b)
    assert RadialMap.from_metric(50 * one.radial.radius).valid.sum() < seen[1][2].sum()  # as metres they are too far


def test_without_a_map_no_token_is_supervised():
    assert not encoded(footage(0, radial=False, near=1.0), TinyModel(), SHAPE).radius_known.any()


def test_a_batch_keeps_every_clip_as_it_was():
    model = TinyModel()
    clips = [encoded(footage(i), model, SHAPE) for i in range(3)]
    batch = batch_of(clips)
    assert batch.cameras.batch_shape == (3,)
    for i, clip in enumerate(clips):
        torch.testing.assert_close(batch.latents[i], clip.latents)
        torch.testing.assert_close(batch.cameras.world_from_camera[i], clip.cameras.world_from_camera)
        torch.testing.assert_close(batch.cameras.frame_lens.xi[i], clip.cameras.frame_lens.xi)
        assert torch.equal(batch.radius_known[i], clip.radius_known)
    assert batch.teacher(0.1).sigma.unique().tolist() == [pytest.approx(0.1)]


# -- order


def test_each_clip_comes_once_per_epoch_in_an_order_that_depends_on_nothing_else():
    stream = [clip_number(position, 7, seed=3) for position in range(28)]
    for epoch in range(4):
        assert sorted(stream[7 * epoch : 7 * epoch + 7]) == list(range(7))
    assert stream[:7] != stream[7:14]
    assert stream[20:] == [clip_number(position, 7, seed=3) for position in range(20, 28)]
    assert stream != [clip_number(position, 7, seed=4) for position in range(28)]


def test_a_broken_clip_is_passed_over_and_named():
    clips = EncodedOnTheFly(TinyFootage(4, broken=(2,)), TinyModel(), SHAPE)
    report = Skipped()
    ids = [clip_at(clips, position, 0, report).id for position in range(8)]
    assert "clip-2" not in ids
    assert list(report) == [(2, "clip-2: expected a video that can be decoded, got rubbish")]
    with pytest.raises(InputError, match="4 in a row"):
        clip_at(EncodedOnTheFly(TinyFootage(4, broken=range(4)), TinyModel(), SHAPE), 0, 0, Skipped())


def test_tokens_without_a_ray_are_never_targets():
    """A map that covers the whole frame, behind a lens that sees a circle of it."""
    lens = named_lens("fisheye-180", 96, 96)
    lens = lens.cropped(-48, -48, 192, 192).resized(96, 96)  # the circle is half as wide as the frame
    cameras = Cameras(lens, torch.eye(4).repeat(9, 1, 1), "metric")
    everywhere = RadialMap.from_metric(torch.full((9, 96, 96), 3.0))
    one = Footage("a", "", torch.zeros(9, 96, 96, 3, dtype=torch.uint8), cameras, everywhere)
    clip = encoded(one, TinyModel(), VideoShape(9, 96, 96))
    grid = TinyModel().grid_for(9, 96, 96)
    _, exists = clip.cameras.rays(grid, torch.tensor(OFFSETS))
    known = clip.radius_known.reshape(grid.frames, grid.patches)
    assert 0 < known.float().mean() < 1
    assert (known == exists.any(-1)).all()
