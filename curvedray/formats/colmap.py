"""COLMAP models, text or binary, through pycolmap: camera_from_world, a lens per camera, frames by image name.

UCM is COLMAP's EUCM at beta 1, exactly; other models are exact or fitted, and a fit says its error.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from curvedray.cameras import Cameras, inverse_pose
from curvedray.cameras.other_lens_models import EUCM, LensModel, Mei, OpenCVFisheye, ucm_lens
from curvedray.errors import InputError
from curvedray.extras import needed
from curvedray.formats import colmap_binary
from curvedray.formats.build import gather, numbered
from curvedray.formats.lenses import PINHOLE_XI, fitted, gather_lens, given_lens, lens_numbers
from curvedray.formats.source import Source, complete, natural

FILES = ("cameras", "images", "points3D")
ALL_FILES = (*FILES, "rigs", "frames")
PERSPECTIVE = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV")
FISHEYE = ("SIMPLE_FISHEYE", "FISHEYE", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "OPENCV_FISHEYE")


def pycolmap() -> ModuleType:
    """The one door to pycolmap."""
    needed("pycolmap")
    import pycolmap

    # What goes wrong is said by an InputError or a Failure, so COLMAP itself stays quiet.
    pycolmap.logging.minloglevel = pycolmap.logging.Level.FATAL.value
    return pycolmap


def detect(source: Source) -> str | None:
    folder = _folder(source)
    kinds = [kind for kind in (".bin", ".txt") if all((folder / f"{name}{kind}").is_file() for name in FILES[:2])]
    if not kinds or not (source.path.is_dir() or source.path.stem in FILES):
        return None
    return f"a folder with cameras{kinds[0]} and images{kinds[0]}"


def _folder(source: Source) -> Path:
    return source.path if source.path.is_dir() else source.path.parent


def read(source: Source) -> Cameras:
    """The model's folder, or one of the files in it."""
    source = replace(source, path=_folder(source))
    if not detect(source):
        source.fail("", "a folder with cameras and images, .bin or .txt", "none of them", "Look in sparse/0.")
    for path in sorted(source.path.iterdir()):
        if path.stem in ALL_FILES and path.exists() and not path.is_file():  # pycolmap would wait for a pipe for ever
            source.fail(path.name, "a file", "a folder, a pipe or a device")
    colmap = pycolmap()
    if (source.path / "cameras.bin").is_file():
        colmap_binary.check(source.path, colmap)
    try:
        model = colmap.Reconstruction(source.path)
        named = [(image.name, image) for image in model.images.values() if image.has_pose]
    except (ValueError, RuntimeError, IndexError, MemoryError, OverflowError) as error:
        source.fail("", "a COLMAP model", error, "Is a file cut short?")
    images = [image for _, image in sorted(named, key=lambda pair: natural(pair[0]))]
    if not images:
        source.fail("", "at least one image with a pose", "none")
    where = [f"image {image.name}" for image in images]
    matrices = [torch.from_numpy(image.cam_from_world().matrix().copy()) for image in images]
    poses = inverse_pose(complete(torch.stack(matrices).double()))
    cameras = [model.cameras[image.camera_id] for image in images]
    sizes = [(camera.width, camera.height) for camera in cameras]
    lens = given_lens(source, sizes[0])
    if lens is None:
        lenses = {camera.camera_id: camera for camera in cameras}
        numbers = {key: _lens(source, key, camera) for key, camera in lenses.items()}
        lens = gather_lens(source, where, [numbers[camera.camera_id] for camera in cameras], sizes)
    return gather(source, where, poses, lens, "arbitrary")


def _lens(source: Source, key: int, camera: Any) -> list[float]:
    where, numbers, size = f"camera {key}", camera.params.tolist(), (camera.width, camera.height)
    name = camera.model.name
    if min(size) < 1 or not all(abs(number) < 1e12 for number in numbers):
        source.fail(where, "a size and finite numbers", f"{size}, {numbers}")
    if not (camera.focal_length_x > 0 and camera.focal_length_y > 0):
        source.fail(where, "a focal length above zero", f"{camera.focal_length_x:g}")
    # Where COLMAP has one focal length for both axes, we write it twice.
    doubled = [numbers[0], *numbers] if len(camera.focal_length_idxs()) == 1 else numbers
    return fitted(source, where, _model(source, where, name, doubled, size))


def _model(source: Source, where: str, name: str, numbers: list[float], size: tuple[int, int]) -> LensModel:
    focal, k = numbers[:4], [*numbers[4:], 0.0, 0.0, 0.0, 0.0][:4]
    if name in PERSPECTIVE:
        return Mei.of([0.0, *k, *focal], size)  # at xi 0 it is OpenCV's own model: k1 k2 p1 p2
    if name in FISHEYE:
        return OpenCVFisheye.of([*focal, *k], size)
    if name != "EUCM":
        source.fail(where, f"{', '.join((*PERSPECTIVE, *FISHEYE))} or EUCM", name)
    try:
        return EUCM.of(numbers, size)
    except InputError as error:
        source.fail(where, error.expected, error.got)


def write(cameras: Cameras, *, text: bool = False, image_name: str = "frame_{:05d}.png") -> dict[str, bytes]:
    """A folder of files, binary unless `text`. A pinhole is written as PINHOLE, any other lens as EUCM with beta 1."""
    colmap = pycolmap()
    model = colmap.Reconstruction()
    camera_from_world = inverse_pose(cameras.world_from_camera.double())
    width, height = cameras.lens.size
    known: dict[tuple[float, ...], Any] = {}
    for i, (row, pose) in enumerate(zip(lens_numbers(cameras).double().tolist(), camera_from_world, strict=True)):
        if tuple(row) not in known:
            known[tuple(row)] = _camera(colmap, len(known) + 1, row, width, height)
            model.add_camera_with_trivial_rig(known[tuple(row)])
        rigid = colmap.Rigid3d(colmap.Rotation3d(pose[:3, :3].numpy()), pose[:3, 3].numpy())
        image = colmap.Image(name=numbered(image_name, i), camera_id=known[tuple(row)].camera_id, image_id=i + 1)
        model.add_image_with_trivial_frame(image, rigid)
    with tempfile.TemporaryDirectory() as folder:
        (model.write_text if text else model.write_binary)(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def _camera(colmap: ModuleType, key: int, row: list[float], width: int, height: int) -> Any:
    fx, fy, cx, cy, xi = row
    name, numbers = "PINHOLE", [fx, fy, cx, cy]
    if xi > PINHOLE_XI:
        name, numbers = "EUCM", EUCM.of_ucm(ucm_lens(fx, fy, cx, cy, xi, (width, height))).numbers
    return colmap.Camera(model=name, width=width, height=height, params=numbers, camera_id=key)
