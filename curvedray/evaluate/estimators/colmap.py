"""COLMAP with the lens known and fixed: structure from motion on the CPU, no weights to fetch.

A UCM lens is COLMAP's EUCM with beta = 1, alpha = xi / (1 + xi) and f = f_ucm / (1 + xi), exactly. Refining the lens
from a wrong start fails, so it is never refined: a wrong lens shows as wrong poses. Where a pure rotation explains the
matches there is no parallax to build on, and rotations come from matched bearings instead.

    t frame   n match
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool
from PIL import Image

from curvedray.cameras import Lens
from curvedray.cameras.other_lens_models import EUCM
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Frames, filled
from curvedray.evaluate.estimators.rotation import Pair, average_rotations, pair_of, rotation_share
from curvedray.evaluate.scores import Failure
from curvedray.formats.colmap import pycolmap

EXHAUSTIVE_UP_TO = 40  # frames; beyond, each is matched with its neighbours only
ROTATION_PIXELS = 1.5  # how far a match may lie from a pure rotation and still agree with it
GOOD_PIXELS = 0.5  # mean reprojection error above which other starts are tried
STARTS = 3  # pairs of frames to start from after COLMAP's own choice
SUSPECT_PIXELS = 0.75  # mean reprojection error that a wrong model has; sound ones of real clips have 0.5 to 0.6
FEWEST_INLIERS = 20.0  # points per frame under which a model hangs on chance
ROTATION_SHARE = 0.9  # of the matches that must agree before a clip counts as rotation only


@dataclass(frozen=True)
class Colmap:
    """Poses by SIFT, matching and incremental mapping. `motion` can be told instead of found out."""

    features: int = 1500
    motion: Literal["auto", "full", "rotation"] = "auto"
    least_found: float = 0.8  # share of frames that must be registered; the others are interpolated and counted
    seed: int = 0
    moving: Bool[np.ndarray, "t h w"] | None = None  # where something moves by itself: no features are taken there
    name: str = "colmap"
    every_frame: bool = False
    floor: str = "0.1 to 0.4 degrees per frame on real clips whose poses are known, under 0.3 on rendered fisheye clips"

    @property
    def version(self) -> str:
        return f"pycolmap {pycolmap().__version__}, {self.features} features, motion {self.motion}"

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        """Camera-to-world poses of every frame. Without a lens a pinhole of 65 degrees is assumed, and said so."""
        colmap = pycolmap()
        height, width = video.shape[1:3]
        note = "" if lens else "lens unknown: a pinhole of 65 degrees was assumed"
        lens = lens or Lens.from_fov(65.0, 0.0, width, height)
        if lens.size != (width, height):
            raise InputError("lens", f"one for images of {width} x {height}", f"{lens.size[0]} x {lens.size[1]}")
        if len(video) < 2:
            return Failure("one frame has no motion")
        lenses = [lens[frame] if lens.batch_shape else lens for frame in range(len(video))]
        with tempfile.TemporaryDirectory() as folder:
            database = self._match(colmap, video, lenses, Path(folder))
            pairs = _verified_pairs(colmap, database, lenses)
            if not pairs:
                return Failure("no two frames could be matched")
            still = self.motion == "auto" and rotation_share(pairs) >= ROTATION_SHARE
            turning = self.motion == "rotation" or still
            if turning:
                model = turned(pairs, len(video), pixels_per_radian(lenses))
            else:
                model = self._map(colmap, database, Path(folder), starts(pairs))
        poses = model.poses
        if len(poses) < max(2, self.least_found * len(video)):
            return Failure(f"{len(poses)} of {len(video)} frames registered")
        path, found = filled(poses, len(video))
        notes = [
            note,
            "rotation only" if turning else "",
            "" if found.all() else f"{(~found).sum()} frames interpolated",
        ]
        return Estimate(
            poses=path,
            found=found,
            note="; ".join(i for i in notes if i),
            reprojection=model.reprojection,
            inliers=model.inliers,
            suspect=model.suspect,
        )

    def _match(self, colmap: Any, video: Frames, lenses: list[Lens], folder: Path) -> Path:
        """Images, features and verified matches in a database; the image's name is the frame's number."""
        colmap.set_random_seed(self.seed)
        images, database = folder / "images", folder / "database.db"
        images.mkdir()
        for index, frame in enumerate(video):
            Image.fromarray(frame).save(images / f"{index:05d}.png", compress_level=1)
        reader = colmap.ImageReaderOptions(camera_model="EUCM", camera_params=",".join(map(str, _eucm(lenses[0]))))
        circle = lenses[0].mask()
        if not circle.all():
            Image.fromarray(circle.numpy().astype(np.uint8) * 255).save(folder / "circle.png")
            reader.camera_mask_path = folder / "circle.png"
        if self.moving is not None:
            (folder / "masks").mkdir()
            for index, mask in enumerate(self.moving):
                shown = np.where(mask, 0, 255).astype(np.uint8) * circle.numpy().astype(np.uint8)
                Image.fromarray(shown).save(folder / "masks" / f"{index:05d}.png.png")
            reader.mask_path = folder / "masks"
        # One thread: with more, images are numbered as they finish, and the mapping depends on their numbers; and
        # each thread that matches draws from random numbers of its own.
        extraction = colmap.FeatureExtractionOptions(num_threads=1)
        extraction.sift.max_num_features = self.features
        changing = any(lens is not lenses[0] for lens in lenses)
        mode = colmap.CameraMode.PER_IMAGE if changing else colmap.CameraMode.SINGLE
        colmap.extract_features(
            database,
            images,
            camera_mode=mode,
            reader_options=reader,
            extraction_options=extraction,
            device=colmap.Device.cpu,
        )
        if changing:
            _set_lenses(colmap, database, lenses)
        match = colmap.match_exhaustive if len(video) <= EXHAUSTIVE_UP_TO else colmap.match_sequential
        match(database, matching_options=colmap.FeatureMatchingOptions(num_threads=1), device=colmap.Device.cpu)
        return database

    def _map(self, colmap: Any, database: Path, folder: Path, others: list[tuple[int, int]]) -> "Model":
        """Incremental mapping with every lens fixed: the best model.

        A scene that is nearly a plane has a twisted twin, and COLMAP's first pair may fall into it: the twin
        registers every frame at twice the reprojection error. So a start whose error is not good is not the last.
        (A plane alone, seen along a straight line, has two exact solutions, and nothing in the video tells which.)
        """
        options = colmap.IncrementalPipelineOptions()
        options.ba_refine_focal_length = options.ba_refine_extra_params = options.ba_refine_principal_point = False
        options.mapper.abs_pose_refine_focal_length = options.mapper.abs_pose_refine_extra_params = False
        options.min_focal_length_ratio, options.min_model_size, options.extract_colors = 0.01, 3, False
        options.random_seed = self.seed
        options.num_threads = 1  # threads would add in another order each time, and poses must repeat
        with colmap.Database.open(database) as table:
            ids = {int(Path(image.name).stem): image.image_id for image in table.read_all_images()}
        best: Any = None
        for attempt, (i, j) in enumerate([(-1, -1), *others]):  # -1: COLMAP's own choice
            options.init_image_id1, options.init_image_id2 = ids.get(i, -1), ids.get(j, -1)
            if attempt:  # a pair we chose either works or is left; COLMAP would retry it 200 times
                options.init_num_trials, options.mapper.init_min_tri_angle = 2, 4.0
            (folder / f"models-{attempt}").mkdir()
            found = colmap.incremental_mapping(database, folder / "images", folder / f"models-{attempt}", options)
            best = max([*found.values(), *([best] if best else [])], key=_quality, default=None)
            if best and best.num_reg_images() == len(ids) and best.compute_mean_reprojection_error() < GOOD_PIXELS:
                break
        poses = {}
        for image in best.images.values() if best else ():
            if image.has_pose:
                camera_from_world = image.cam_from_world().matrix()
                rotation = camera_from_world[:, :3].T
                poses[int(Path(image.name).stem)] = _pose(rotation, -rotation @ camera_from_world[:, 3])
        if not poses:
            return Model({}, 0.0, 0.0)
        return Model(poses, best.compute_mean_reprojection_error(), best.compute_mean_observations_per_reg_image())


@dataclass(frozen=True)
class Model:
    """Camera-to-world poses by frame, and how well the matches agree with them."""

    poses: dict[int, np.ndarray]
    reprojection: float  # mean, pixels
    inliers: float  # points per frame

    @property
    def suspect(self) -> str:
        """Why it may be wrong although every frame has a pose; nothing: it looks sound."""
        if self.reprojection > SUSPECT_PIXELS:
            return f"reprojection error of {self.reprojection:.2f} px, where sound reconstructions have 0.6 or less"
        if self.inliers < FEWEST_INLIERS:
            return f"only {self.inliers:.0f} matched points per frame agree with the poses"
        return ""


def turned(pairs: list[Pair], frames: int, scale: float) -> Model:
    """A camera that only turns; `scale` is in pixels per radian."""
    poses = {frame: _pose(rotation) for frame, rotation in average_rotations(pairs, frames).items()}
    matches = np.array([pair.explained for pair in pairs])
    residual = np.average([pair.residual for pair in pairs], weights=np.maximum(matches, 1))
    return Model(poses, float(residual) * scale, float(matches.mean()))


def pixels_per_radian(lenses: list[Lens]) -> float:
    """On the axis, a mean over frames."""
    return float(np.mean([lens.focal.mean() / (1 + lens.xi) for lens in lenses]))


def starts(pairs: list[Pair]) -> list[tuple[int, int]]:
    """Pairs to start mapping from: much parallax, pairs that no plane explains first, no two from the same frame."""
    chosen: dict[int, tuple[int, int]] = {}
    for pair in sorted(pairs, key=lambda pair: (pair.flat, -pair.parallax)):
        chosen.setdefault(pair.i, (pair.i, pair.j))
    return list(chosen.values())[:STARTS]


def _quality(model: Any) -> tuple[int, int]:
    """The better model has more frames, then more observations that agree with it."""
    return model.num_reg_images(), model.compute_num_observations()


def _eucm(lens: Lens) -> list[float]:
    """fx, fy, cx, cy, alpha, beta of COLMAP's EUCM: the same lens, exactly."""
    return EUCM.of_ucm(lens).numbers


def _set_lenses(colmap: Any, database: Path, lenses: list[Lens]) -> None:
    with colmap.Database.open(database) as table:
        for image in table.read_all_images():
            camera = table.read_camera(image.camera_id)
            camera.params = _eucm(lenses[int(Path(image.name).stem)])
            table.update_camera(camera)


def _verified_pairs(colmap: Any, database: Path, lenses: list[Lens]) -> list[Pair]:
    """Every pair of frames with at least 15 verified matches."""
    tolerance = ROTATION_PIXELS / pixels_per_radian(lenses)
    kinds = colmap.TwoViewGeometryConfiguration
    solid = {int(kinds.CALIBRATED), int(kinds.UNCALIBRATED)}
    with colmap.Database.open(database) as table:
        frames = {image.image_id: int(Path(image.name).stem) for image in table.read_all_images()}
        bearings, valid = {}, {}
        for image, frame in frames.items():
            pixels = torch.from_numpy(table.read_keypoints(image)[:, :2].astype(np.float64))
            rays, exists = lenses[frame].unproject(pixels)
            bearings[image], valid[image] = rays.numpy(), exists.numpy()
        pairs = []
        ids = sorted(frames)
        for a in ids:
            for b in ids:
                if a < b and table.exists_two_view_geometry(a, b):
                    geometry = table.read_two_view_geometry(a, b)
                    matches = geometry.inlier_matches
                    matches = matches[valid[a][matches[:, 0]] & valid[b][matches[:, 1]]]
                    if len(matches) >= 15:
                        i, j = bearings[a][matches[:, 0]], bearings[b][matches[:, 1]]
                        flat = int(geometry.config) not in solid
                        pairs.append(pair_of(frames[a], frames[b], i, j, tolerance, flat))
    return pairs


def _pose(rotation: np.ndarray, translation: np.ndarray | None = None) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = rotation
    pose[:3, 3] = 0 if translation is None else translation
    return pose
