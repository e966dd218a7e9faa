"""Clips: nothing lost between a folder and a batch, one scale for poses and radii, caches that resume."""

import json

import numpy as np
import pytest
import torch
from tiny import TinyFootage, TinyModel, footage

from curvedray.cameras import Cameras, Lens
from curvedray.data.cache import CachedClips, build_cache
from curvedray.data.check import check_clips, motion, report_on
from curvedray.data.clips import (
    EncodedOnTheFly,
    Skipped,
    VideoShape,
    batch_of,
    clip_at,
    clip_number,
    encoded,
    fitted,
    in_near_distances,
)
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.media.video import write_video
from curvedray.radial.map import RadialMap

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


def test_each_clip_comes_once_an_epoch_in_an_order_that_depends_on_nothing_else():
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


# -- cache


def test_a_cache_gives_back_what_was_encoded(tmp_path):
    model, source = TinyModel(), TinyFootage(5, broken=(1,))
    report = build_cache(source, model, SHAPE, tmp_path, clips_a_shard=2)
    assert (report.clips, report.made) == (4, 3)
    assert report.skipped[0][0] == "clip-1"
    cached = CachedClips(tmp_path)
    assert [cached[i].id for i in range(len(cached))] == ["clip-0", "clip-2", "clip-3", "clip-4"]
    fresh, stored = encoded(source[3], model, SHAPE), cached[2]
    for name in ("latents", "text", "log_radius", "radius_known"):
        assert torch.equal(getattr(fresh, name), getattr(stored, name)), name
    assert torch.equal(fresh.cameras.world_from_camera, stored.cameras.world_from_camera)
    assert torch.equal(fresh.cameras.frame_lens.focal, stored.cameras.frame_lens.focal)
    assert (stored.caption, stored.cameras.unit) == (fresh.caption, "near")
    assert torch.equal(cached.empty_text, model.encode_text([""])[0])


def test_a_cache_goes_on_where_it_stopped_and_mends_what_is_damaged(tmp_path):
    model = TinyModel()

    class Dies(TinyFootage):
        def __getitem__(self, index):
            if index == 3:
                raise KeyboardInterrupt
            return super().__getitem__(index)

    with pytest.raises(KeyboardInterrupt):
        build_cache(Dies(6), model, SHAPE, tmp_path, clips_a_shard=2)
    assert [path.name for path in tmp_path.iterdir()] == ["shard-00000.safetensors"]
    first = (tmp_path / "shard-00000.safetensors").read_bytes()
    assert build_cache(TinyFootage(6), model, SHAPE, tmp_path, clips_a_shard=2).made == 2
    assert (tmp_path / "shard-00000.safetensors").read_bytes() == first
    (tmp_path / "shard-00001.safetensors").write_bytes(first[: len(first) // 2])
    with pytest.raises(InputError, match="whole shards"):
        CachedClips(tmp_path)
    assert build_cache(TinyFootage(6), model, SHAPE, tmp_path, clips_a_shard=2).made == 1
    assert len(CachedClips(tmp_path)) == 6


def test_a_cache_of_something_else_is_refused(tmp_path):
    build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path)
    with pytest.raises(InputError, match="another folder"):
        build_cache(TinyFootage(2), TinyModel(), VideoShape(5, 32, 48), tmp_path)
    other = TinyModel()
    other.encode_text = lambda prompts: 1 + TinyModel.encode_text(other, prompts)
    with pytest.raises(InputError, match="this model's encoders"):
        build_cache(TinyFootage(2), other, SHAPE, tmp_path)
    build_cache(TinyFootage(2, broken=(0, 1)), TinyModel(), SHAPE, tmp_path / "other")
    with pytest.raises(InputError, match="none of 2"):
        CachedClips(tmp_path / "other")
    with pytest.raises(InputError, match="data cache"):
        CachedClips(tmp_path / "nothing")


def test_processes_share_the_work_of_a_cache(tmp_path):
    model = TinyModel()
    for rank in (1, 0):
        report = build_cache(TinyFootage(5), model, SHAPE, tmp_path, clips_a_shard=2, share=(rank, 2))
        assert report.made == 2 - rank
    assert [CachedClips(tmp_path)[i].id for i in range(5)] == [f"clip-{i}" for i in range(5)]


def test_half_precision_halves_the_latents(tmp_path):
    build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path, dtype="float16")
    clip = CachedClips(tmp_path)[0]
    assert clip.latents.dtype == torch.float32
    torch.testing.assert_close(clip.latents, encoded(footage(0), TinyModel(), SHAPE).latents, rtol=1e-3, atol=1e-3)


# -- folders


def write_parts(folder, index, camera_format="curvedray", ending=".json"):
    one = footage(index, radial=False)
    write_video(one.video, folder / f"{one.id}.mp4", fps=8)
    cameras = one.cameras
    if camera_format == "realestate10k":
        cameras = Cameras(Lens.from_fov(80.0, 0.0, 48, 32), one.cameras.world_from_camera)
    write_cameras(cameras, folder / f"{one.id}{ending}", camera_format)
    return one


@pytest.mark.parametrize("table", ["csv", "jsonl"])
def test_a_metadata_table(tmp_path, table):
    one = write_parts(tmp_path, 0)
    np.savez(tmp_path / "radii.npz", radius=footage(0).radial.radius.numpy())
    row = {"video": "clip-0.mp4", "cameras": "clip-0.json", "caption": "a hill, at dusk", "radial": "radii.npz"}
    if table == "csv":
        (tmp_path / "metadata.csv").write_text(
            'video,cameras,caption,radial\nclip-0.mp4,clip-0.json,"a hill, at dusk",radii.npz\n'
        )
    else:
        (tmp_path / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source), source.name_of(0)) == ("metadata", 1, "clip-0")
    read = source[0]
    assert read.caption == "a hill, at dusk"
    torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera)
    torch.testing.assert_close(read.cameras.lens.xi, one.cameras.lens.xi)
    torch.testing.assert_close(read.radial.radius, footage(0).radial.radius)
    assert encoded(read, TinyModel(), SHAPE).radius_known.all()


def test_a_folder_that_was_written_is_read_back(tmp_path):
    write_folder(TinyFootage(2), tmp_path)
    source = FolderFootage(tmp_path)
    assert [source.name_of(i) for i in range(2)] == ["clip-0", "clip-1"]
    for index in range(2):
        one, read = footage(index), source[index]
        assert read.caption == one.caption
        torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera)
        torch.testing.assert_close(read.radial.radius, one.radial.radius)
        assert (read.video.float() - one.video.float()).abs().mean() < 6


def test_realestate10k(tmp_path):
    (tmp_path / "videos").mkdir()
    for index in range(2):
        write_parts(tmp_path / "videos", index, "realestate10k", ".txt")
    (tmp_path / "captions.json").write_text(json.dumps({"clip-0.mp4": ["a room"], "clip-1": "a garden"}))
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source)) == ("realestate10k", 2)
    assert [source[i].caption for i in range(2)] == ["a room", "a garden"]
    assert source[0].cameras.lens.size == (48, 32)
    assert float(source[0].cameras.lens.hfov.mean()) == pytest.approx(80.0, abs=1e-3)


def test_panshot(tmp_path):
    one = write_parts(tmp_path, 0, "panshot", ".npy")
    (tmp_path / "clip-0.mp4").rename(tmp_path / "film-3.mp4")
    (tmp_path / "clip-0.npy").rename(tmp_path / "film-3.npy")
    request = {"pose_path": "film-3.npy", "x_fov": 120.0, "xi": 0.6, "caption": "a street"}
    (tmp_path / "requests.json").write_text(json.dumps([request]))
    near = {"video_id": "film", "clip_id": 3, "near_depth": 0.5}
    (tmp_path / "near_plane_depth-train.jsonl").write_text(json.dumps(near) + "\n")
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source), source.name_of(0)) == ("panshot", 1, "film-3")
    read = source[0]
    assert (read.caption, read.near) == ("a street", 0.5)
    assert float(read.cameras.lens.hfov) == pytest.approx(120.0, abs=1e-3)
    assert float(read.cameras.lens.xi) == pytest.approx(0.6)
    cameras, _ = in_near_distances(read)
    torch.testing.assert_close(cameras.world_from_camera[:, :3, 3], one.cameras.world_from_camera[:, :3, 3] / 0.5)


def test_a_lens_is_never_guessed(tmp_path):
    one = write_parts(tmp_path, 0, "tum", ".txt")
    row = {"video": "clip-0.mp4", "cameras": "clip-0.txt", "caption": "a"}
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row))
    with pytest.raises(InputError, match="expected a lens"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").write_text(json.dumps(row | {"hfov": 150, "xi": 0.9}))
    read = FolderFootage(tmp_path)[0]
    assert float(read.cameras.lens.hfov) == pytest.approx(150.0, abs=1e-3)
    torch.testing.assert_close(read.cameras.world_from_camera, one.cameras.world_from_camera, rtol=1e-4, atol=1e-5)


def test_errors_name_the_clip_and_the_column(tmp_path):
    write_parts(tmp_path, 0)
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-0.mp4", "camera": "clip-0.json"}')
    with pytest.raises(InputError, match=r"row 1.*columns among"):
        FolderFootage(tmp_path)
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-0.mp4", "cameras": "clip-0.json", "near": "two"}')
    with pytest.raises(InputError, match="near: expected a number"):
        FolderFootage(tmp_path)
    (tmp_path / "metadata.jsonl").write_text('{"video": "clip-9.mp4", "cameras": "clip-0.json"}')
    with pytest.raises(InputError, match="clip clip-9"):
        FolderFootage(tmp_path)[0]
    (tmp_path / "metadata.jsonl").unlink()
    with pytest.raises(InputError, match="none of them"):
        FolderFootage(tmp_path)


# -- the check


def test_motion_is_exact_for_small_and_large_turns():
    for degrees in (1e-4, 1.0, 90.0, 179.9):
        angle = torch.tensor(degrees).double().deg2rad()
        poses = torch.eye(4).double().repeat(2, 1, 1)
        poses[1, :3, :3] = torch.tensor(
            [[angle.cos(), 0, angle.sin()], [0, 1, 0], [-angle.sin(), 0, angle.cos()]], dtype=torch.double
        )
        poses[1, 0, 3] = 0.25
        rotation, travel = motion(Cameras(Lens.from_fov(90.0), poses))
        assert rotation.item() == pytest.approx(degrees, rel=1e-6)
        assert travel.item() == 0.25


def test_the_check_says_what_is_wrong():
    assert not report_on(footage(0)).problems
    one = footage(0)
    far = one.cameras.world_from_camera.clone()
    far[:, :3, 3] *= 1e4
    bad = type(one)("x", " ", one.video, Cameras(one.cameras.lens, far[:7], "metric"), one.radial)
    said = " | ".join(report_on(bad, VideoShape(81, 480, 832)).problems)
    for words in ("no caption", "7 poses for 9 frames", "fewer than the 81", "48 x 32 pixels", "absurd scale"):
        assert words in said
    still = type(one)("x", "y", one.video[:1].expand(9, -1, -1, -1), one.cameras)
    said = " | ".join(report_on(still).problems)
    assert "still picture" in said
    assert "no near distance" in said


def test_the_check_goes_on_past_a_broken_clip():
    rows = list(check_clips(TinyFootage(3, broken=(1,))))
    assert [bool(row.problems) for row in rows] == [False, True, False]
    assert "rubbish" in rows[1].problems[0]
