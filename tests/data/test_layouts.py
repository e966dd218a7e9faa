"""Data sets as their authors lay them out: known points are where they belong, down is down, metres are metres."""

import errno
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import originals
import pytest
import torch
from originals import CX, CY, DEPTH_HEIGHT, DEPTH_WIDTH, FRAMES, FX, FY, HEIGHT, WIDTH, truth

from curvedray.cameras import Cameras, Lens, inverse_pose
from curvedray.cameras.other_lens_models import Mei
from curvedray.data import pictures
from curvedray.data.check import check_clips
from curvedray.data.clips import VideoShape, fitted
from curvedray.data.folders import FolderFootage
from curvedray.data.layouts import LAYOUTS
from curvedray.data.layouts.captures import nerfstudio_records
from curvedray.errors import InputError
from curvedray.evaluate.estimators.colmap import Colmap
from curvedray.evaluate.pose import find_pose_jobs
from curvedray.formats import write_cameras
from curvedray.media.video import read_video

POINTS = np.array([[0.3, -0.2, 4.0], [-1.0, 0.5, 6.0], [0.0, 1.0, 9.0], [2.0, 0.1, 12.0]])
# layout, how it is written, the name of its clip, and whether its world's vertical and unit are known
UPRIGHT = [
    ("kitti-360", originals.kitti360, "2013_05_28_drive_0000_sync-image_02-000010", "metric"),
    ("nerfstudio", originals.dl3dv, None, "arbitrary"),
    ("scannet++", originals.scannetpp_dslr, "0a5c013435-dslr-00000", "metric"),
    ("scannet++", originals.scannetpp_iphone, "0a5c013435-iphone-00000", "metric"),
    ("arkitscenes", originals.arkitscenes, "41069021-00000", "metric"),
    ("colmap", originals.colmap, "flat", "arbitrary"),
    ("realcam-vid", originals.realcam, "RealEstate10K-a", "arbitrary"),
]
IDS = [f"{row[0]}-{row[1].__name__}" for row in UPRIGHT]


def seen_pixels(cameras: Cameras, points: np.ndarray) -> np.ndarray:
    """Where our cameras see points of the first camera's frame."""
    poses = cameras.world_from_camera.double()
    first = torch.cat([torch.from_numpy(points), torch.ones(len(points), 1).double()], 1) @ poses[0].T
    there = torch.einsum("tij,nj->tni", inverse_pose(poses), first)[..., :3]
    pixels, valid = cameras.frame_lens.to(torch.float64).project(there)
    assert valid.all()
    return pixels.numpy()


@pytest.mark.parametrize(("layout", "write", "name", "unit"), UPRIGHT, ids=IDS)
def test_known_points_are_seen_where_the_data_set_says(tmp_path, layout, write, name, unit):
    known = truth()
    write(tmp_path, known)
    source = FolderFootage(tmp_path, frames=FRAMES)
    assert (source.layout, len(source)) == (layout, 1)
    assert name is None or source.name_of(0) == name
    one = source[0]
    np.testing.assert_allclose(seen_pixels(one.cameras, POINTS), known.pixels(POINTS), atol=2e-3)
    assert one.cameras.unit == unit
    steps = one.cameras.world_from_camera[:, :3, 3].diff(dim=0).norm(dim=-1).numpy()
    np.testing.assert_allclose(steps, np.linalg.norm(np.diff(known.poses[:, :3, 3], axis=0), axis=-1), rtol=1e-4)
    if layout not in ("colmap", "realcam-vid"):  # their worlds have no known vertical
        down = known.poses[:, 2, :3] * -1  # the world's -z in each camera's frame
        np.testing.assert_allclose(one.cameras.world_from_camera[:, 1, :3].numpy(), down, atol=1e-5)
    assert one.video.shape == (FRAMES, HEIGHT, WIDTH, 3)
    if layout != "realcam-vid":  # a video is compressed
        assert (one.video[2] == originals.picture(2)).all()
    rows = list(check_clips(source))
    assert all("no caption" in p or "no near distance" in p for row in rows for p in row.problems), rows[0].problems


@pytest.mark.parametrize("write", [originals.scannetpp_iphone, originals.arkitscenes])
def test_what_a_depth_sensor_saw_lies_on_the_wall_it_saw(tmp_path, write):
    """Every distance along its own ray, from its own camera, ends on the wall; and what is not known stays so."""
    write(tmp_path, truth())
    one = FolderFootage(tmp_path, frames=FRAMES)[0]
    assert one.radial is not None
    assert (one.radial.unit, one.radial.radius.shape) == ("metric", (FRAMES, DEPTH_HEIGHT, DEPTH_WIDTH))
    rays, _ = one.cameras.frame_lens.resized(DEPTH_WIDTH, DEPTH_HEIGHT).rays()
    poses = one.cameras.world_from_camera
    places = torch.einsum("tij,tyxj->tyxi", poses[:, :3, :3], rays * one.radial.radius[..., None])
    ahead = (places + poses[:, None, None, :3, 3])[..., 2]  # the world's own y, in which the wall stands
    unknown = torch.zeros(DEPTH_HEIGHT, DEPTH_WIDTH, dtype=torch.bool)
    unknown[originals.BLIND] = True
    unknown[0, 0] = write is originals.arkitscenes  # of low confidence
    assert (one.radial.valid == ~unknown).all()
    assert (ahead[one.radial.valid] - originals.WALL).abs().max() < 2e-3  # millimetres were stored


def test_a_frame_without_a_depth_has_no_distances_and_another_size_is_named(tmp_path):
    originals.scannetpp_iphone(tmp_path, truth())
    folder = tmp_path / "0a5c013435" / "iphone" / "depth"
    (folder / "frame_000002.png").unlink()
    radial = FolderFootage(tmp_path, frames=FRAMES)[0].radial
    assert radial is not None
    assert radial.valid.flatten(1).any(1).tolist() == [True, True, False, True, True]
    originals.Image.fromarray(np.ones((3, 4), np.uint16)).save(folder / "frame_000003.png")
    with pytest.raises(InputError, match=r"frame_000003\.png"):
        FolderFootage(tmp_path, frames=FRAMES)[0]
    shutil.rmtree(folder)
    assert FolderFootage(tmp_path, frames=FRAMES)[0].radial is None


@pytest.mark.parametrize(("layout", "write"), [row[:2] for row in UPRIGHT[:2]], ids=IDS[:2])
def test_a_frame_that_is_missing_names_its_clip_and_the_others_are_read(tmp_path, layout, write):
    write(tmp_path, truth(6))
    images = sorted(path for path in tmp_path.rglob("*.png"))
    source = FolderFootage(tmp_path, frames=3)
    assert len(source) == 2
    shutil.move(images[-1], tmp_path / "moved-away")
    reports = list(check_clips(source))
    assert [row.frames for row in reports] == [3, 0]
    assert images[-1].name in reports[1].problems[0]


@pytest.mark.slow
def test_a_fisheye_with_distortion_is_fitted_and_its_fit_is_near(tmp_path):
    """KITTI-360's own numbers, at a tenth of the size: the MEI formula against the lens that was fitted to it."""
    originals.kitti360(tmp_path, truth())
    path = tmp_path / "calibration" / "image_02.yaml"
    numbers = {"xi": 2.2134, "k1": 0.016798, "k2": 1.6548, "p1": 0.00042, "p2": 0.00042}
    size = {"gamma1": 133.6, "gamma2": 133.6, "u0": 71.6, "v0": 70.5, "image_width": 140, "image_height": 140}
    text = path.read_text().splitlines()
    path.write_text("\n".join(_replaced(line, numbers | size) for line in text))
    images = tmp_path / "data_2d_raw" / "2013_05_28_drive_0000_sync" / "image_02" / "data_rgb"
    for index, file in enumerate(sorted(images.iterdir())):
        square = originals.picture(index)[:14, :14].repeat(10, 10, 1)
        originals.write_png(square, file)
    lens = FolderFootage(tmp_path)[0].cameras.lens.to(torch.float64)
    model = Mei(*numbers.values(), 133.6, 133.6, 72.1, 71.0, (140, 140))
    rays = torch.nn.functional.normalize(torch.tensor([[0.0, 0, 1], [1, 0, 1], [0, -1, 0.5], [-1, 1, 1.0]]), dim=-1)
    theirs, ours = model.project(rays)[0], lens.project(rays.double())[0]
    assert (theirs - ours).norm(dim=-1).max() < 0.3
    assert lens.max_angle == pytest.approx(np.pi / 2)


def _replaced(line: str, numbers: dict[str, float]) -> str:
    key = line.split(":")[0].strip()
    return f"{line.split(':')[0]}: {numbers[key]}" if key in numbers else line


@pytest.mark.slow
def test_rectified_kitti_cameras_are_where_cam0_to_world_says(tmp_path):
    """cam0_to_world R_rect_00 = world_from_sensor sensor_from_cam0, as its authors give it."""
    known = truth()
    originals.kitti360(tmp_path, known)
    drive = "2013_05_28_drive_0000_sync"
    turn = np.eye(4)
    turn[:3, :3] = originals.Rotation.from_euler("xyz", [0.01, -0.02, 0.03]).as_matrix()
    lines = [f"P_rect_00: {FX} 0 {CX - 0.5} 0 0 {FY} {CY - 0.5} 0 0 0 1 0", f"S_rect_00: {WIDTH} {HEIGHT}"]
    lines.append(f"R_rect_00: {originals.numbers(turn[:3, :3])}")
    (tmp_path / "calibration" / "perspective.txt").write_text("\n".join(lines))
    names = [f"{10 + t:010d}.png" for t in range(FRAMES)]
    originals.pictures(tmp_path / "data_2d_raw" / drive / "image_00" / "data_rect", names)
    source = FolderFootage(tmp_path)
    index = [source.name_of(i) for i in range(len(source))].index(f"{drive}-image_00-000010")
    rows = np.loadtxt(tmp_path / "data_poses" / drive / "poses.txt")[:, 1:].reshape(-1, 3, 4)
    world_from_cam0 = np.tile(np.eye(4), (FRAMES, 1, 1))
    world_from_cam0[:, :3] = rows  # image_00 sits at the sensor itself in this calibration
    world_from_cam0 = world_from_cam0 @ np.linalg.inv(turn)
    np.testing.assert_allclose(
        seen_pixels(source[index].cameras, POINTS), replace(known, poses=world_from_cam0).pixels(POINTS), atol=2e-3
    )


def test_a_gap_in_the_poses_ends_a_clip(tmp_path):
    originals.kitti360(tmp_path, truth(7))
    poses = next((tmp_path / "data_poses").rglob("poses.txt"))
    lines = poses.read_text().splitlines()
    poses.write_text("\n".join([*lines[:3], *lines[4:]]))  # the car stood at frame 13
    assert [record.id[-6:] for record in FolderFootage(tmp_path, frames=3).records] == ["000010", "000014"]


def test_a_long_capture_is_cut_and_every_clip_has_its_own_cameras(tmp_path):
    known = truth(7)
    originals.dl3dv(tmp_path, known)
    source = FolderFootage(tmp_path, frames=3)
    assert len(source) == 2
    second = replace(known, poses=known.poses[3:6])
    np.testing.assert_allclose(seen_pixels(source[1].cameras, POINTS), second.pixels(POINTS), atol=2e-3)
    assert {record.source for record in source.records} == {"1K-" + source.name_of(0).split("-")[1]}
    assert len(FolderFootage(tmp_path)) == 1  # nobody said how long: one clip of all of it


def test_panshot_as_released(tmp_path):
    known = truth(far=1.0)
    originals.panshot(tmp_path, known)
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source)) == ("panshot", 4)
    assert [source.records[i].split for i in range(4)] == ["train", "train", "test", "test"]
    assert source.held_out == [2, 3]
    one = source[1]
    assert (one.id, one.near, one.caption) == ("abc-1-1", 0.5, "a street of train")
    assert float(one.cameras.lens.hfov) == pytest.approx(90, abs=1e-3)
    assert float(one.cameras.lens.xi) == 0.5
    torch.testing.assert_close(one.cameras.world_from_camera, torch.from_numpy(known.poses).float())
    (tmp_path / "PanFlow" / "near_plane_depth-test.jsonl").write_text(
        json.dumps({"video_id": "other", "clip_id": 0, "near_depth": 1})
    )
    assert "a near depth of xyz-2" in list(check_clips(FolderFootage(tmp_path)))[2].problems[0]


def test_a_sound_panshot_is_read_without_a_note_and_a_broken_part_of_it_is_named(tmp_path, caplog):
    originals.panshot(tmp_path, truth(far=1.0))
    assert len([FolderFootage(tmp_path)[i] for i in range(4)]) == 4
    assert not caplog.records
    (tmp_path / "PanShot" / "meta-test" / "xyz-2.json").write_text('[{"videos": [')
    source = FolderFootage(tmp_path)
    assert [source.name_of(i) for i in range(len(source))] == ["abc-1-0", "abc-1-1", "xyz-2"]
    assert "xyz-2.json" in list(check_clips(source))[2].problems[0]
    (tmp_path / "PanShot" / "meta-test" / "xyz-2.json").write_text('[{"videos": 3}]')
    assert "xyz-2.json" in list(check_clips(FolderFootage(tmp_path)))[2].problems[0]


def test_a_phones_video_with_a_missing_frame_is_named_and_its_other_clips_are_used(tmp_path):
    originals.scannetpp_iphone(tmp_path, truth())
    shape = FolderFootage(tmp_path, frames=2)[1].video.shape
    frames = sorted(tmp_path.rglob("rgb/*.png"))
    frames[1].unlink()
    source = FolderFootage(tmp_path, frames=2)
    with pytest.raises(InputError, match=f"none between {frames[0].name} and {frames[2].name}"):
        source[0]
    assert source[1].video.shape == shape
    for every_second in frames[3::2]:
        every_second.unlink()  # as people keep them: every second frame is no gap
    assert FolderFootage(tmp_path, frames=2)[0].video.shape == shape


def test_a_disk_is_looked_through_only_as_far_as_data_sets_go(tmp_path):
    request = {"pose_path": "poses/a.npy", "x_fov": 90, "xi": 0.5, "caption": "a street"}
    deep = tmp_path.joinpath(*"abcdef")
    (deep / "poses").mkdir(parents=True)
    (deep / "requests.json").write_text(json.dumps(request))
    with pytest.raises(InputError, match="none of them"):
        FolderFootage(tmp_path)
    assert FolderFootage(tmp_path.joinpath(*"abc")).layout == "panshot"


def test_davis_has_frames_masks_and_a_split_and_asks_for_cameras(tmp_path):
    originals.davis(tmp_path)
    source = FolderFootage(tmp_path)
    assert (source.layout, [source.name_of(i) for i in range(2)]) == ("davis", ["bear", "blackswan"])
    assert source.held_out == [1]
    with pytest.raises(InputError, match="curvedray data pose"):
        source[0]
    lens = Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT)
    write_cameras(Cameras(lens, torch.eye(4).repeat(FRAMES, 1, 1)), tmp_path / "cameras" / "bear.json")
    one = FolderFootage(tmp_path)[0]
    assert one.moving is not None
    assert one.moving.sum().item() == 16 * FRAMES
    assert one.moving[2, 2:6, 5:9].all()
    small = fitted(one, VideoShape(3, HEIGHT // 2, WIDTH // 2))
    assert small.moving is not None
    assert small.moving.shape == small.video.shape[:3]
    assert small.moving[2, 1:3, 3:4].all()
    write_cameras(Cameras(lens, torch.eye(4).repeat(3, 1, 1)), tmp_path / "cameras" / "bear.json")
    with pytest.raises(InputError, match="another video's"):
        FolderFootage(tmp_path)[0]


def test_miradata_lists_what_was_downloaded(tmp_path):
    originals.miradata(tmp_path)
    source = FolderFootage(tmp_path)
    assert (source.layout, len(source), source.name_of(0)) == ("miradata", 1, "000000000007_0")
    assert source.records[0].caption == "a long ride, by a river"
    lens = Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT)
    cameras = Cameras(lens, torch.eye(4).repeat(FRAMES, 1, 1))
    write_cameras(cameras, tmp_path / "cameras" / "000000000007_0.json")
    assert FolderFootage(tmp_path)[0].video.shape[0] == FRAMES


def test_long_videos_of_miradata_are_cut_and_no_more_is_decoded(tmp_path, monkeypatch):
    originals.miradata(tmp_path)
    whole = read_video(tmp_path / "clip_video" / "000000000" / "000000000007_0.mp4").frames
    monkeypatch.setattr(pictures, "LARGEST_DECODED", 3 * whole[:2].numel() // 2)  # more than a part, less than all
    monkeypatch.setattr(pictures, "read_video", None)
    names = [f"000000000007_0-{first:05d}" for first in range(0, FRAMES - 1, 2)]
    jobs, _ = find_pose_jobs(tmp_path, None, None, frames=2)
    assert [job.clip for job in jobs] == names
    assert len({job.key(Colmap()) for job in jobs}) == len(jobs)
    lens = Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT)
    path = torch.eye(4).repeat(FRAMES, 1, 1)
    path[:, 0, 3] = torch.arange(FRAMES)
    for job in jobs:
        write_cameras(Cameras(lens, path[:2]), job.output)
    source = FolderFootage(tmp_path, frames=2)
    assert [source.name_of(i) for i in range(len(source))] == names
    assert len({source.fingerprint(i) for i in range(len(source))}) == len(names)
    assert torch.equal(torch.cat([source[i].video for i in range(len(source))]), whole[: 2 * len(names)])
    write_cameras(Cameras(lens, path), tmp_path / "cameras" / "000000000007_0.json")  # those of all of it count more
    torch.testing.assert_close(FolderFootage(tmp_path, frames=2)[1].cameras.world_from_camera, path[:2])
    monkeypatch.setattr(pictures, "LARGEST_DECODED", 10)
    with pytest.raises(InputError, match="of them in a clip"):
        FolderFootage(tmp_path, frames=2)[0]


def test_realcams_pickled_metadata_is_never_opened(tmp_path):
    np.savez(tmp_path / "RealCam-Vid_test.npz", np.array([{"video_path": "a"}], dtype=object))
    with pytest.raises(InputError, match="never opened"):
        FolderFootage(tmp_path)


def test_folders_of_images(tmp_path):
    known = truth(4)
    lens = Lens(torch.tensor([FX, FY]), torch.tensor([CX, CY]), torch.tensor(0.0), (WIDTH, HEIGHT))
    for name in ("walk", "talk"):
        originals.pictures(tmp_path / name, [f"{t}.png" for t in (1, 2, 10, 11)])
    local = torch.from_numpy(np.linalg.inv(known.poses[0]) @ known.poses).float()
    write_cameras(Cameras(lens, local, "metric"), tmp_path / "walk" / "cameras.json")
    (tmp_path / "captions.json").write_text(json.dumps({"walk": "a walk"}))
    source = FolderFootage(tmp_path)
    assert (source.layout, [source.name_of(i) for i in range(2)]) == ("frames", ["talk", "walk"])
    one = source[1]
    assert (one.video[2] == originals.picture(2)).all()  # 10 comes after 2
    np.testing.assert_allclose(seen_pixels(one.cameras, POINTS), known.pixels(POINTS), atol=2e-3)
    with pytest.raises(InputError, match="a camera file"):
        source[0]


@pytest.mark.slow
def test_a_folder_of_frames_in_a_table(tmp_path):
    originals.pictures(tmp_path / "walk", [f"{t}.png" for t in range(3)])
    cameras = Cameras(Lens.from_fov(70.0, 0.0, WIDTH, HEIGHT), torch.eye(4).repeat(3, 1, 1))
    write_cameras(cameras, tmp_path / "walk.json")
    (tmp_path / "metadata.csv").write_text("video,cameras\nwalk,walk.json\n")
    assert FolderFootage(tmp_path)[0].video.shape == (3, HEIGHT, WIDTH, 3)


@pytest.mark.slow
def test_no_layout_takes_anothers_folder(tmp_path):
    """Each layout finds clips in its own data set, and those that come before it find none there."""
    writers: dict[str, Any] = {i[1].__name__: (i[0], partial(i[1], known=truth())) for i in UPRIGHT}
    writers |= {"davis": ("davis", originals.davis), "miradata": ("miradata", originals.miradata)}
    names = [layout.name for layout in LAYOUTS]
    for kind, (layout, write) in writers.items():
        folder = tmp_path / kind
        folder.mkdir()
        write(folder)
        found = [one.name for one in LAYOUTS[: names.index(layout) + 1] if one.records(folder, None)]
        assert found == [layout], kind


def test_a_disk_that_disappears_is_a_sentence(tmp_path, monkeypatch):
    """While a folder is listed, and while a clip of it is read."""
    originals.davis(tmp_path)
    source = FolderFootage(tmp_path)
    shutil.rmtree(tmp_path / "JPEGImages")
    assert all("nothing there" in row.problems[0] for row in check_clips(source))

    def stale(*_):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("curvedray.data.layouts.davis.image_files", stale)
    originals.pictures(tmp_path / "JPEGImages" / "480p" / "bear", ["0.png"])
    with pytest.raises(InputError, match=r"Stale file handle.*still there"):
        FolderFootage(tmp_path)


def test_what_a_clip_is_made_of_does_not_depend_on_where_it_lies(tmp_path):
    originals.scannetpp_iphone(tmp_path / "a", truth())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    one, other = (FolderFootage(tmp_path / name) for name in "ab")
    assert one.fingerprint(0) == other.fingerprint(0)
    path = next((tmp_path / "b").rglob("frame_000002.png"))
    originals.write_png(originals.picture(99), path)
    assert FolderFootage(tmp_path / "b").fingerprint(0) != one.fingerprint(0)


def test_captures_are_looked_for_without_a_question_per_file(tmp_path, monkeypatch):
    scene = tmp_path / "1K" / "scene" / "frames"
    scene.mkdir(parents=True)
    for number in range(300):
        (scene / f"{number}.png").touch()
    asked, real = [], Path.stat

    def stat(path, **options):
        asked.append(path)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert nerfstudio_records(tmp_path, None) == []
    assert len(asked) < 10
