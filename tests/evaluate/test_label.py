"""Teachers and labels: exact where depth is exact, resumed where nothing changed, invalid where in doubt."""

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
import torch
from textured_room import HALF, render

from curvedray.cameras import Cameras, Lens
from curvedray.cameras.named_lenses import named_lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.depth_anything import depth_of, load_depth_anything
from curvedray.evaluate.estimators.perspective import Perspective
from curvedray.evaluate.estimators.protocol import Estimate
from curvedray.evaluate.estimators.triangulation import Triangulation, triangulate
from curvedray.evaluate.estimators.unidepth import load_unidepth, matrix, read_result
from curvedray.evaluate.label import TEACHERS, label_clip, label_videos, make_teacher
from curvedray.evaluate.matching import Job
from curvedray.evaluate.scores import Failure
from curvedray.formats import write_cameras
from curvedray.media.video import read_video, write_video
from curvedray.radial.map import read_radial_map


def wall(frames, lens):
    """A network that sees a wall four metres ahead, and doubts the corner."""
    depth = torch.full(frames.shape[:3], 4.0)
    depth[:, 0, 0] = torch.nan
    return depth


WALL = Perspective(wall, "wall", "1", "Apache-2.0")


@pytest.fixture
def job(tmp_path):
    frames = torch.randint(0, 255, (3, 32, 48, 3), dtype=torch.uint8)
    video = write_video(frames, tmp_path / "clip.mp4", 8)
    lens = Lens.from_fov(80, 0.0, 48, 32)
    write_cameras(Cameras(lens, torch.eye(4).repeat(3, 1, 1), "metric"), tmp_path / "clip-cameras.json")
    return Job("clip", video, tmp_path / "clip-cameras.json")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A tiny random Depth Anything of the real classes, as a folder in the real layout."""
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    backbone = Dinov2Config(
        hidden_size=24,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=48,
        image_size=70,
        patch_size=14,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
    )
    sizes = {"reassemble_hidden_size": 24, "neck_hidden_sizes": [8] * 4, "fusion_hidden_size": 8, "head_hidden_size": 8}
    torch.manual_seed(0)
    folders = {}
    for kind in ("metric", "relative"):
        config = DepthAnythingConfig(backbone_config=backbone, depth_estimation_type=kind, max_depth=20, **sizes)
        folders[kind] = tmp_path_factory.mktemp(kind)
        DepthAnythingForDepthEstimation(config).save_pretrained(folders[kind])
    return folders


def test_a_wall_seen_by_a_pinhole_has_the_radius_of_a_wall(job):
    map, _ = label_clip(job, WALL)
    rays, _ = Lens.from_fov(80, 0.0, 48, 32).rays()
    torch.testing.assert_close(map.radius[0][1:], (4 / rays[..., 2])[1:], rtol=1e-5, atol=0)
    assert not map.valid[:, 0, 0].any()  # in doubt: invalid, never clipped
    assert map.valid[:, 1:].all()


def test_a_fisheye_is_labelled_through_views(job):
    answer = WALL.estimate(torch.zeros(2, 32, 48, 3, dtype=torch.uint8).numpy(), named_lens("fisheye-150", 48, 32))
    assert not isinstance(answer, Failure)
    assert answer.radial is not None
    assert "pinhole views" in answer.note
    assert answer.radial.shape == (2, 32, 48)
    assert torch.isfinite(torch.from_numpy(answer.radial)).float().mean() > 0.95


def test_labels_are_kept_until_something_changes(job, tmp_path):
    asked = []

    def counted(frames, lens):
        asked.append(len(frames))
        return wall(frames, lens)

    teacher, out = Perspective(counted, "wall", "1", "Apache-2.0"), tmp_path / "maps"
    (first,) = label_videos([job], teacher, out)
    (again,) = label_videos([job], teacher, out)
    assert first == again
    assert len(asked) == 1
    note = json.loads((out / "clip.label.json").read_text())
    assert (note["teacher"], note["version"], note["licence"]) == ("wall", "1", "Apache-2.0")
    label_videos([job], Perspective(counted, "wall", "2", "Apache-2.0"), out)  # another teacher
    (out / "clip.npz").unlink()
    label_videos([job], Perspective(counted, "wall", "2", "Apache-2.0"), out)  # a map that is gone
    (out / "clip.label.json").write_text("{")
    label_videos([job], Perspective(counted, "wall", "2", "Apache-2.0"), out)  # a note that is damaged
    assert len(asked) == 4
    assert read_radial_map(out / "clip.npz").radius.shape == (3, 32, 48)


def test_a_clip_that_cannot_be_labelled_is_named_and_the_rest_goes_on(job, tmp_path):
    bad = Job("bad", tmp_path / "nowhere.mp4", None)
    no_lens = Job("no_lens", job.video, None)
    labels = label_videos([bad, no_lens, job], WALL, tmp_path / "maps")
    assert [bool(label.failure) for label in labels] == [True, True, False]
    assert "nothing there" in labels[0].failure
    assert "a lens is needed" in labels[1].failure
    assert sorted(path.name for path in (tmp_path / "maps").glob("*.npz")) == ["clip.npz"]


def test_depth_anything_loads_from_its_folder_and_fits_any_size(weights, job):
    teacher = load_depth_anything(str(weights["metric"]), side=70)
    map, _ = label_clip(job, teacher)
    assert map.radius.shape == (3, 32, 48)
    assert map.valid.float().mean() > 0.9
    assert teacher.licence == "Apache-2.0"


def test_depth_follows_the_networks_own_numbers(weights):
    """On a picture of the network's own size nothing is resized: depth is what the class itself says."""
    from transformers import AutoModelForDepthEstimation

    model = AutoModelForDepthEstimation.from_pretrained(weights["metric"]).eval()
    frames = torch.randint(0, 255, (1, 70, 70, 3), dtype=torch.uint8)
    pixels = (frames.movedim(-1, 1).float() / 255 - torch.tensor([0.485, 0.456, 0.406])[:, None, None]) / torch.tensor(
        [0.229, 0.224, 0.225]
    )[:, None, None]
    with torch.no_grad():
        expected, got = model(pixel_values=pixels).predicted_depth, depth_of(model, frames, 70)
    torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)


def test_depth_without_a_unit_and_weights_that_are_not_there_are_refused(weights, tmp_path):
    with pytest.raises(InputError, match="relative depth, which has no unit"):
        load_depth_anything(str(weights["relative"]))
    with pytest.raises(InputError, match="a folder or a hub id"):
        load_depth_anything(str(tmp_path))


def test_unidepth_takes_its_licence_and_doubts_what_it_doubts(monkeypatch):
    with pytest.raises(InputError, match="non-commercial use only"):
        load_unidepth()
    monkeypatch.setitem(sys.modules, "unidepth", None)
    with pytest.raises(InputError, match="pip install git"):
        load_unidepth(accept_noncommercial=True)
    depth = torch.arange(1.0, 101.0).reshape(1, 1, 10, 10)
    found = read_result({"depth": depth, "confidence": torch.arange(100.0).reshape(1, 1, 10, 10)})
    assert torch.isnan(found).sum() == 10
    assert torch.isnan(found[0]).all()
    assert matrix(Lens.from_fov(90, 0.0, 40, 20))[0].tolist() == [20, 0, 20]


def test_unidepth_is_asked_as_its_own_code_asks(monkeypatch):
    """A stand-in with UniDepthV2's interface: from_pretrained, infer(rgb, K) -> depth and confidence."""

    class UniDepthV2(torch.nn.Module):
        @classmethod
        def from_pretrained(cls, name):
            return cls()

        def infer(self, rgb, intrinsics):
            assert rgb.shape[0] == 3
            assert intrinsics.shape == (3, 3)
            return {"depth": torch.full((1, 1, *rgb.shape[1:]), 3.0), "confidence": torch.ones(1, 1, *rgb.shape[1:])}

    package, models = ModuleType("unidepth"), ModuleType("unidepth.models")
    models.UniDepthV2 = UniDepthV2
    monkeypatch.setitem(sys.modules, "unidepth", package)
    monkeypatch.setitem(sys.modules, "unidepth.models", models)
    teacher = load_unidepth(accept_noncommercial=True)
    lens = Lens.from_fov(60, 0.0, 24, 16)
    answer = teacher.estimate(torch.zeros(2, 16, 24, 3, dtype=torch.uint8).numpy(), lens)
    assert not isinstance(answer, Failure)
    assert answer.radial is not None
    rays, _ = lens.rays()
    torch.testing.assert_close(torch.from_numpy(answer.radial[0]).float(), 3 / rays[..., 2])


# -- COLMAP: exact where two frames see the same point


def sideways(frames, reach=0.6):
    poses = torch.eye(4, dtype=torch.float64).repeat(frames, 1, 1)
    poses[:, 0, 3] = torch.linspace(0, reach, frames)
    return poses


def test_two_rays_meet_in_the_point_they_see():
    lens, poses = Lens.from_fov(150.0, 0.9, 96, 64).to(torch.float64), sideways(2)
    points = torch.tensor([[0.2, 0.1, 3.0], [1.5, -0.5, 2.0], [0.3, 0.0, 400.0]], dtype=torch.float64)
    seen = tuple(lens.project(points - pose[:3, 3])[0] for pose in poses)
    (one, other), angle, good = triangulate(seen, (lens, lens), tuple(poses))
    assert good.tolist() == [True, True, False]  # the last is too far to have an angle
    assert (angle[:2] > 5).all()
    torch.testing.assert_close(one[:2], points[:2].norm(dim=-1))
    torch.testing.assert_close(other[:2], (points - poses[1, :3, 3])[:2].norm(dim=-1))
    shifted = (seen[0], seen[1] + torch.tensor([0.0, 5.0]))
    assert not triangulate(shifted, (lens, lens), tuple(poses))[2].any()  # rays that miss each other


@pytest.mark.slow
def test_colmap_teaches_sparse_distances_that_are_exact(tmp_path):
    """A textured room through a fisheye: half of the distances are the wall's to a percent, nine in ten to six."""
    lens, poses = Lens.from_fov(120.0, 0.6, 240, 160), sideways(5)
    video = render(lens, poses)
    cameras = Cameras(lens, poses.float(), "metric")
    answer = Triangulation(1500).along(video, cameras)
    assert not isinstance(answer, Failure)
    rays, _ = lens.rays()
    found = torch.from_numpy(answer.radial)
    known = torch.isfinite(found)
    assert 100 * len(video) < known.sum() < 0.1 * known.numel()
    half = torch.tensor(HALF, dtype=torch.float64)
    errors = []
    for frame, pose in enumerate(poses):
        directions = rays.double()
        away = (torch.where(directions > 0, half, -half) - pose[:3, 3]) / directions
        errors.append((found[frame] / away.min(-1).values - 1).abs()[known[frame]])
    assert torch.cat(errors).median() < 0.01
    assert torch.cat(errors).quantile(0.9) < 0.06
    write_video(torch.from_numpy(video), tmp_path / "room.mp4", 8, crf=4)
    write_cameras(cameras, tmp_path / "room-cameras.json")
    map, note = label_clip(Job("room", tmp_path / "room.mp4", tmp_path / "room-cameras.json"), make_teacher("colmap"))
    assert "points per frame" in note
    assert map.valid.any()
    assert map.unit == "metric"
    grown = poses.float().clone()
    grown[:, :3, 3] *= 1000
    write_cameras(Cameras(lens, grown, "arbitrary"), tmp_path / "room-cameras.json")
    same, _ = label_clip(Job("room", tmp_path / "room.mp4", tmp_path / "room-cameras.json"), make_teacher("colmap"))
    assert same.unit == "cameras"
    assert same.near == pytest.approx(1000 * map.near, rel=0.05)


def test_a_teacher_who_knows_the_cameras_sees_in_their_unit(job, tmp_path):
    """Regression: labels of RealEstate10K's poses, whose scale nobody knows, were refused wherever they were used."""

    @dataclass(frozen=True)
    class Along:
        name: str = "along"
        version: str = "1"
        floor: str = "none"
        every_frame: bool = True

        def estimate(self, video, lens=None, clip=""):
            return Failure("only along cameras", clip)

        def along(self, video, cameras, clip=""):
            return Estimate(radial=np.full(video.shape[:3], 500.0))  # far beyond 20, of whatever that is

    frames, height, width = read_video(job.video).frames.shape[:3]
    poses = torch.eye(4).repeat(frames, 1, 1)
    seen = {}
    for unit in ("arbitrary", "metric"):
        write_cameras(Cameras(Lens.from_fov(80, 0.0, width, height), poses, unit), tmp_path / "c.json")
        with suppress(InputError):  # 500 metres are too far to be believed
            seen[unit] = label_clip(Job("clip", job.video, tmp_path / "c.json"), Along())[0]
    assert list(seen) == ["arbitrary"]
    assert (seen["arbitrary"].unit, seen["arbitrary"].near) == ("cameras", 500)


def test_colmap_needs_cameras_and_every_teacher_has_a_name(job):
    with pytest.raises(InputError, match="--cameras"):
        label_clip(Job("clip", job.video, None), make_teacher("colmap"), "pinhole-70")
    still = Cameras(Lens.from_fov(80, 0.0, 48, 32), torch.eye(4).repeat(3, 1, 1), "near")
    with pytest.raises(InputError, match="near distances"):
        Triangulation().along(torch.zeros(3, 32, 48, 3, dtype=torch.uint8).numpy(), still)
    with pytest.raises(InputError, match=" or ".join(TEACHERS)):
        make_teacher("oracle")
