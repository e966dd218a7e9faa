"""Clips from panoramas: level, repeatable, split by source, with exact distances; and whatever is wrong with one."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from curvedray.bench.harness import threads
from curvedray.cameras import Cameras, Lens
from curvedray.cameras.sphere import CUBES, FACES, places_of
from curvedray.data.check import report_on
from curvedray.data.clips import VideoShape
from curvedray.data.example_panoramas import write_panoramas
from curvedray.data.folders import FolderFootage
from curvedray.data.panoramas import Panorama, find_panoramas
from curvedray.data.shoot import GAP, Take, _near_in_time, in_passes, shoot, shoot_clips
from curvedray.data.shot_jobs import plan_shots
from curvedray.data.splits import split_of_source
from curvedray.engine import Engine
from curvedray.errors import InputError
from curvedray.formats import read_cameras, write_cameras
from curvedray.media.image import write_png
from curvedray.media.video import read_video, write_video
from curvedray.moves.trajectory import trajectory
from curvedray.world.panorama import panorama_frames
from curvedray.world.raycast import render
from curvedray.world.world import scene

SHAPE = VideoShape(4, 64, 96)


@pytest.fixture(scope="module")
def panoramas(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "panoramas"
    write_panoramas(3, folder, frames=6, height=96)
    return folder


def taken(panorama: Panorama, folder: Path, **said):
    plan = plan_shots([panorama], 1, folder, said.pop("shape", SHAPE), **said)
    return shoot_clips(plan)[0]


def test_a_folder_of_panoramas_becomes_a_folder_of_sound_clips(panoramas, tmp_path):
    jobs = plan_shots(find_panoramas(panoramas), 4, tmp_path, SHAPE, lenses=["fisheye-150", "random"])
    report = shoot(jobs, tmp_path)
    assert (report.clips, report.skipped, report.notes) == (4, (), ())
    assert sum(report.splits.values()) == 4
    footage = FolderFootage(tmp_path)
    assert [footage.name_of(i) for i in range(4)] == [
        "court-000-0000",
        "court-000-0001",
        "court-001-0000",
        "court-002-0000",
    ]
    captions = json.loads((panoramas / "captions.json").read_text())
    for index in range(4):
        one = footage[index]
        assert one.video.shape == (4, 64, 96, 3)
        assert one.caption == captions[footage.records[index].source]
        assert one.radial.radius.shape == (4, 16, 24)
        assert not [i for i in report_on(one, SHAPE).problems if "still" not in i]
    assert float(footage[0].cameras.lens.hfov.mean()) == pytest.approx(150, abs=1e-3)
    assert footage[0].cameras.unit == "metric"


def test_a_clip_is_the_direct_rendering_from_where_the_track_was(panoramas, tmp_path):
    """Frames, cameras and distances agree with the ray-caster along the very cameras that were written."""
    found = find_panoramas(panoramas)[0]
    shot = taken(found, tmp_path, lenses=["wide-110"], moves=["pan left 40deg and tilt up 10deg"])
    cameras = read_cameras(tmp_path / shot.row["cameras"])
    track = read_cameras(panoramas / "court-000-cameras.json")
    places = track.world_from_camera[:, :3, 3]
    first = int((places - cameras.world_from_camera[0, :3, 3]).norm(dim=-1).argmin())
    torch.testing.assert_close(cameras.world_from_camera[:, :3, 3], places[first : first + 4])
    # Things may move with the panorama's time: the scene of each frame is that frame's.
    court = scene(0).scene
    video = read_video(tmp_path / shot.row["video"]).frames.float()
    with np.load(tmp_path / shot.row["radial"]) as stored:
        radius, valid = torch.from_numpy(stored["radius"]), torch.from_numpy(stored["valid"])
    for frame in (0, 3):
        now = court.at((first + frame) / 5)
        direct = render(now, cameras[[frame]])
        assert (direct.frames[0].float() - video[frame]).abs().mean() < 5  # of a coarse panorama, twice compressed
        small = render(now, replace(cameras[[frame]], lens=cameras.lens.resized(24, 16)), samples=1)
        both = valid[frame] & small.valid[0]
        assert (radius[frame] / small.radius[0] - 1).abs()[both].median() < 0.01


@pytest.mark.parametrize("projection", list(CUBES))
def test_a_clip_of_a_cube_is_the_direct_rendering(tmp_path, projection):
    """Six faces, each rendered exactly, in every way that cubes are laid out."""
    court, side = scene(3).scene, 96
    lens, places = Lens.from_fov(90.0, 0.0, side, side), places_of(projection)
    rows, cols = len(CUBES[projection]), len(CUBES[projection][0].split())
    cube = torch.zeros(rows * side, cols * side, 3, dtype=torch.uint8)
    for name, (row, col) in places.items():
        pose = torch.eye(4)
        pose[:3, :3] = torch.tensor(FACES[name], dtype=torch.float32).T
        face = render(court.at(0.0), Cameras(lens, pose[None], "metric")).frames[0]
        cube[row * side : (row + 1) * side, col * side : (col + 1) * side] = face
    write_png(cube, tmp_path / "cube.png")
    (panorama,) = find_panoramas(tmp_path / "cube.png", projection)
    shot = taken(panorama, tmp_path / "out", lenses=["fisheye-150"], moves=["pan left 90deg and tilt up 30deg"])
    assert not shot.failure
    cameras = read_cameras(tmp_path / "out" / shot.row["cameras"])
    video = read_video(tmp_path / "out" / shot.row["video"]).frames.float()
    for frame in (0, 3):
        direct = render(court.at(0.0), cameras[[frame]]).frames[0].float()
        assert (direct - video[frame]).abs().mean() < 4  # of coarse faces, compressed


def test_clips_that_end_before_a_video_is_torn_are_taken(panoramas, tmp_path, monkeypatch):
    """They are filmed in one pass with those that reach into the torn part, and do not fail with them."""
    whole = Panorama.frames

    def torn(self, first, count):
        for number, frame in enumerate(whole(self, first, count), first):
            if number == 5:
                raise InputError("court", "a video that can be decoded", "rubbish at frame 5")
            yield frame

    monkeypatch.setattr(Panorama, "frames", torn)
    jobs = [
        replace(plan_shots(find_panoramas(panoramas)[:1], 1, tmp_path, SHAPE)[0], id=f"clip-{start}", start=start)
        for start in (0.0, 0.99)
    ]
    early, late = shoot_clips(jobs)
    assert (early.failure, late.row) == ("", None)
    assert "rubbish at frame 5" in late.failure
    assert read_video(tmp_path / early.row["video"]).frames.shape == (4, 64, 96, 3)


def test_the_horizon_is_kept_whatever_the_panorama_does(tmp_path):
    """A panorama that rolls and pitches with its rig, and one that is level, give the same picture."""
    court, turns = scene(5).scene, trajectory("roll cw 40deg and tilt up 20deg", Lens.from_fov(90.0), 3)
    level, tilted = torch.eye(4).repeat(3, 1, 1), turns.world_from_camera
    pictures = {}
    for name, poses in (("level", level), ("tilted", tilted)):
        frames = np.stack([picture for picture, _ in panorama_frames(court, poses, 192)])
        write_video(torch.from_numpy(frames), tmp_path / f"{name}.mp4", 8.0, crf=4)
        write_cameras(Cameras(Lens.from_fov(90.0), poses, "metric", 8.0), tmp_path / f"{name}-cameras.json")
        panorama = Panorama(tmp_path / f"{name}.mp4", id="same", cameras=tmp_path / f"{name}-cameras.json")
        shot = taken(panorama, tmp_path / "out" / name, moves=["pan right 20deg"], shape=VideoShape(3, 64, 96))
        assert not shot.failure
        pictures[name] = read_video(tmp_path / "out" / name / shot.row["video"]).frames.float()
        cameras = read_cameras(tmp_path / "out" / name / shot.row["cameras"])
        down = cameras.world_from_camera[:, :3, 1]
        torch.testing.assert_close(down, torch.tensor([[0.0, 1.0, 0.0]]).expand(3, 3), atol=1e-5, rtol=0)
    assert (pictures["level"] - pictures["tilted"]).abs().mean() < 3


@pytest.mark.slow
def test_a_world_that_is_not_upright_is_said_and_can_be_set_upright(tmp_path):
    write_png(torch.randint(0, 255, (32, 64, 3), dtype=torch.uint8), tmp_path / "a.png")
    leaning = trajectory("static", Lens.from_fov(90.0), 1, pitch=50)
    write_cameras(replace(leaning, unit="metric"), tmp_path / "a-cameras.json")
    found = find_panoramas(tmp_path)[0]
    assert "50 degrees apart" in taken(found, tmp_path / "x").note
    shot = taken(found, tmp_path / "y", level="panorama", moves=["pan left 10deg"])
    assert not shot.note
    down = read_cameras(tmp_path / "y" / shot.row["cameras"]).world_from_camera[:, :3, 1]
    torch.testing.assert_close(down, torch.tensor([[0.0, 1.0, 0.0]]).expand(4, 3), atol=1e-5, rtol=0)


def test_a_run_that_stopped_goes_on_and_the_same_seed_gives_the_same_bytes(panoramas, tmp_path):
    found = find_panoramas(panoramas)
    jobs = plan_shots(found, 3, tmp_path / "a", SHAPE, seed=4)
    shoot_clips(jobs[:1])
    report = shoot(jobs, tmp_path / "a")
    assert (report.clips, report.kept) == (3, 1)
    (tmp_path / "a" / "court-001-0000.mp4").unlink()
    assert shoot(jobs, tmp_path / "a").kept == 2
    shoot(plan_shots(found, 3, tmp_path / "b", SHAPE, seed=4), tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        if path.suffix != ".npz":  # an archive holds the time it was written
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    other = plan_shots(found, 3, tmp_path / "b", SHAPE, seed=5)
    assert shoot(other, tmp_path / "b").kept == 0
    # What is taken of a panorama does not depend on the other panoramas.
    alone = plan_shots(found[2:], 1, tmp_path, SHAPE, seed=5)[0]
    assert (alone.lens, alone.move, alone.yaw) == (other[2].lens, other[2].move, other[2].yaw)


def test_a_clip_is_the_same_whichever_others_are_taken_with_it(panoramas, tmp_path):
    """Of one video, in one pass over it: other windows, other lenses, one that zooms; and one that is refused."""
    found, said = find_panoramas(panoramas)[:2], {"lenses": ["fisheye-150", "pinhole-60", "wide-110"], "seed": 3}
    moves = ["pan left 40deg", "zoom in 2x", "tilt up 10deg"]
    together = plan_shots(found, 8, tmp_path / "together", SHAPE, moves=moves, **said)
    assert [len(one) for one in in_passes(together)] == [4, 1, 1, 1, 1]
    long = [replace(job, shape=VideoShape(400, 480, 832)) for job in together[:3]]
    assert [len(one) for one in in_passes(long)] == [1, 1, 1]  # not all in memory at once
    assert len({job.start for job in together[:4]}) == 4
    odd = [*together[:3], replace(together[3], lens="pinhole-90", shape=VideoShape(81, 64, 96))]
    shots = shoot_clips(odd)
    assert [bool(shot.failure) for shot in shots] == [False, False, False, True]
    for job in plan_shots(found, 8, tmp_path / "alone", SHAPE, moves=moves, **said)[:3]:
        assert not shoot_clips([job])[0].failure
        for ending in ("mp4", "json"):
            one, other = (tmp_path / name / f"{job.id}.{ending}" for name in ("together", "alone"))
            assert one.read_bytes() == other.read_bytes(), one.name


def test_a_long_gap_between_clips_is_not_decoded(panoramas, tmp_path):
    job = plan_shots(find_panoramas(panoramas)[:1], 1, tmp_path, SHAPE)[0]
    take = Take.planned(job, "")
    takes = [replace(take, first=first) for first in (300, 0, 2, 2 + 4 + GAP, 3)]
    assert [[one.first for one in group] for group in _near_in_time(takes)] == [[0, 2, 3, 6 + GAP], [300]]


def test_splits_are_by_source_and_stay():
    names = [f"film-{i}" for i in range(4000)]
    splits = [split_of_source(name, val=0.1, test=0.2) for name in names]
    assert splits == [split_of_source(name, val=0.1, test=0.2) for name in names]
    assert splits.count("val") / 4000 == pytest.approx(0.1, abs=0.02)
    assert splits.count("test") / 4000 == pytest.approx(0.2, abs=0.02)
    with pytest.raises(InputError, match="below 1"):
        split_of_source("a", val=0.5, test=0.5)


@pytest.mark.slow
def test_a_zoom_has_a_lens_per_frame(panoramas, tmp_path):
    shot = taken(find_panoramas(panoramas)[1], tmp_path, moves=["zoom in 2x"], lenses=["pinhole-90"])
    focal = read_cameras(tmp_path / shot.row["cameras"]).lens.focal[:, 0]
    assert float(focal[-1] / focal[0]) == pytest.approx(2, rel=1e-4)


def test_a_table_says_everything(panoramas, tmp_path):
    (tmp_path / "sub").mkdir()
    for file in ("court-000.mp4", "court-000-cameras.json", "court-001.png", "court-001-depth.npz"):
        (tmp_path / "sub" / file).write_bytes((panoramas / file).read_bytes())
    rows = [
        {"panorama": "sub/court-000.mp4", "cameras": "sub/court-000-cameras.json", "unit": "arbitrary", "near": 0.5},
        {"panorama": "sub/court-001.png", "depth": "sub/court-001-depth.npz", "depth_scale": "cm", "split": "test"},
        {"panorama": "sub/court-001.png", "id": "other", "colour": "red"},
        {"panorama": "sub/court-001.png", "id": "../x"},
        {"panorama": "sub/court-001.png", "id": "negative", "near": -1},
    ]
    (tmp_path / "panoramas.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = find_panoramas(tmp_path)
    faults = [i for i in found if isinstance(i, InputError)]
    assert len(faults) == 3
    sound = [i for i in found if isinstance(i, Panorama)]
    report = shoot(plan_shots(sound, 2, tmp_path / "out", SHAPE), tmp_path / "out", faults)
    assert (report.clips, len(report.skipped)) == (2, 3)
    with (tmp_path / "out" / "metadata.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["near"], second["split"]) == ("0.5", "test")
    metres = FolderFootage(tmp_path / "out")[1].radial
    assert metres.radius[metres.valid].max() < 0.5  # metres taken for centimetres, as it was told


@pytest.mark.parametrize("move", ["dolly in 1m", "orbit left 20deg", "truck left 1"])
def test_a_move_that_travels_is_refused(panoramas, tmp_path, move):
    with pytest.raises(InputError, match="seen from one place"):
        taken(find_panoramas(panoramas)[1], tmp_path, moves=[move])


# -- what is wrong with a panorama


def test_what_is_wrong_is_named_skipped_and_counted_and_the_run_goes_on(panoramas, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for file in panoramas.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    write_png(torch.zeros(40, 60, 3, dtype=torch.uint8), folder / "photo.png")  # of the wrong shape
    (folder / "damaged.mp4").write_bytes((panoramas / "court-000.mp4").read_bytes()[:300])
    track = read_cameras(panoramas / "court-000-cameras.json")
    (folder / "short.mp4").write_bytes((panoramas / "court-000.mp4").read_bytes())
    write_cameras(track[:4], folder / "short-cameras.json")  # another video's
    jumped = track.world_from_camera.clone()
    jumped[4:, 0, 3] += 500
    (folder / "jump.mp4").write_bytes((panoramas / "court-000.mp4").read_bytes())
    write_cameras(replace(track, world_from_camera=jumped), folder / "jump-cameras.json")
    (folder / "flat.png").write_bytes((panoramas / "court-001.png").read_bytes())
    np.savez(folder / "flat-depth.npz", radius=np.ones((1, 30, 30)))
    found = find_panoramas(folder)
    (folder / "court-002.mp4").unlink()  # a mount that disappears between the plan and the work
    report = shoot(plan_shots(found, len(found), tmp_path / "out", SHAPE), tmp_path / "out")
    reasons = {name.rsplit("-", 1)[0]: reason for name, reason in report.skipped}
    assert report.clips == 2
    for name, words in {
        "photo": "--projection cube-3x2",
        "damaged": "can be decoded",
        "short": "another panorama's track",
        "jump": "jumps at frame 4",
        "flat": "equirectangular distances",
        "court-002": "nothing there",
    }.items():
        assert words in reasons.pop(name), name
    assert not reasons
    assert len(FolderFootage(tmp_path / "out")) == 2


def test_too_few_frames_and_too_few_panoramas_are_sentences(panoramas, tmp_path):
    shot = taken(find_panoramas(panoramas)[0], tmp_path, shape=VideoShape(81, 64, 96))
    assert "at least 81 frames" in shot.failure
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="panoramas that end in"):
        find_panoramas(tmp_path)


@pytest.mark.slow
def test_workers_on_ray_take_the_same_clips(panoramas, tmp_path):
    found = find_panoramas(panoramas)
    with threads(1):  # as many as a worker takes
        for name, engine in (("here", Engine()), ("ray", Engine("ray", workers=2))):
            report = shoot(plan_shots(found, 4, tmp_path / name, SHAPE), tmp_path / name, engine=engine)
            assert (report.clips, report.skipped) == (4, ())
    for path in (tmp_path / "here").iterdir():
        if path.suffix != ".npz":
            assert path.read_bytes() == (tmp_path / "ray" / path.name).read_bytes(), path.name


@pytest.mark.slow
def test_an_adapter_is_trained_on_clips_from_panoramas(tmp_path):
    from typer.testing import CliRunner

    from curvedray.cli import app

    def ran(*words):
        run = CliRunner().invoke(app, [str(word) for word in words])
        assert run.exit_code == 0, run.output

    ran("data", "example", "--panoramas", "--clips", 6, "-o", tmp_path / "panoramas")
    ran("data", "shoot", tmp_path / "panoramas", "--clips", 24, "--size", "96x64", "--frames", 17, "-o", tmp_path / "c")
    ran("data", "check", tmp_path / "c", "--size", "96x64", "--frames", 17)
    ran("train", "quick", "steps=40", "--data", tmp_path / "c", "-o", tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert np.isfinite(losses).all()
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
