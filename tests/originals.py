"""Small data sets written as their authors lay them out, from a camera path that is known.

Each writer has the data set's own convention in its own words, and none of the package's readers' code: a reader that
turns an axis the wrong way finds other points than were written.

    t frame; a world whose z is up, in metres; cameras with OpenCV's axes
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scipy.spatial.transform import Rotation

from curvedray.media.image import write_png
from curvedray.media.video import write_video

WIDTH, HEIGHT, FRAMES = 24, 18, 5  # of a phone's shape
FX, FY, CX, CY = 15.0, 14.0, 12.5, 7.0  # pixels, with pixel centres at +0.5


@dataclass(frozen=True)
class Truth:
    """What was written: world_from_camera in the data set's own world, and a pinhole."""

    poses: np.ndarray

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Where points of the first camera's frame are seen in every frame (t n 2), by the textbook."""
        world = np.c_[points, np.ones(len(points))] @ self.poses[0].T
        seen = np.einsum("tij,nj->tni", np.linalg.inv(self.poses), world)[..., :3]
        return np.stack([FX * seen[..., 0] / seen[..., 2] + CX, FY * seen[..., 1] / seen[..., 2] + CY], -1)


def truth(frames: int = FRAMES, far: float = 3000.0) -> Truth:
    """A hand-held walk, far from the origin, by a camera that looks along the world's y, its own y down."""
    level = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # columns: x right, y down is -z, z ahead is y
    poses = np.tile(np.eye(4), (frames, 1, 1))
    for t in range(frames):
        shake = Rotation.from_euler("yxz", [0.03 * t, 0.02 * t - 0.05, 0.015 * t]).as_matrix()
        poses[t, :3, :3] = level @ shake
        poses[t, :3, 3] = [far + 0.1 * t, far + 0.25 * t, 1.5 + 0.02 * t * t]
    return Truth(poses)


def picture(index: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(index)
    return torch.randint(0, 255, (HEIGHT, WIDTH, 3), dtype=torch.uint8, generator=generator)


def pictures(folder: Path, names: list[str]) -> None:
    for index, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_png(picture(index), folder / name)


def numbers(matrix: np.ndarray) -> str:
    return " ".join(f"{i:.12g}" for i in np.asarray(matrix).reshape(-1))


# -- the data sets


def kitti360(root: Path, known: Truth) -> None:
    """Poses are those of a sensor (forward, right, down); the camera sits on it, and looks to its left."""
    drive = "2013_05_28_drive_0000_sync"
    sensor_from_camera = np.eye(4)
    sensor_from_camera[:3, :3] = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # x ahead, y down, z to the left
    sensor_from_camera[:3, 3] = [0.7, -0.3, -1.2]
    numbered = [10 + t for t in range(len(known.poses))]
    sensor = known.poses @ np.linalg.inv(sensor_from_camera)
    lines = [f"{n} {numbers(pose[:3])}" for n, pose in zip(numbered, sensor, strict=True)]
    (root / "data_poses" / drive).mkdir(parents=True)
    (root / "data_poses" / drive / "poses.txt").write_text("\n".join(lines) + "\n")
    (root / "calibration").mkdir()
    placed = f"image_00: {numbers(np.eye(4)[:3])}\nimage_02: {numbers(sensor_from_camera[:3])}\n"
    (root / "calibration" / "calib_cam_to_pose.txt").write_text(placed)
    lens = f"""%YAML:1.0
---
model_type: MEI
camera_name: image_02
image_width: {WIDTH}
image_height: {HEIGHT}
mirror_parameters:
   xi: 0.0
distortion_parameters:
   k1: 0.0
   k2: 0.0
   p1: 0.0
   p2: 0.0
projection_parameters:
   gamma1: {FX}
   gamma2: {FY}
   u0: {CX - 0.5}
   v0: {CY - 0.5}
"""
    (root / "calibration" / "image_02.yaml").write_text(lens)
    pictures(root / "data_2d_raw" / drive / "image_02" / "data_rgb", [f"{n:010d}.png" for n in numbered])


def opengl(poses: np.ndarray) -> list:
    return (poses @ np.diag([1.0, -1, -1, 1])).tolist()


def nerfstudio(root: Path, known: Truth, lens: dict | None = None, name: str = "images/frame_{:05d}.png") -> None:
    names = [name.format(t + 1) for t in range(len(known.poses))]
    said = {"fl_x": FX, "fl_y": FY, "cx": CX, "cy": CY, "w": WIDTH, "h": HEIGHT, "camera_model": "OPENCV"} | (
        lens or {}
    )
    frames = [{"file_path": i, "transform_matrix": pose} for i, pose in zip(names, opengl(known.poses), strict=True)]
    root.mkdir(parents=True, exist_ok=True)
    (root / "transforms.json").write_text(json.dumps(said | {"frames": frames}))


def dl3dv(root: Path, known: Truth) -> None:
    """Numbers of the full size, images at a quarter of it, in images_4."""
    full = {"fl_x": 4 * FX, "fl_y": 4 * FY, "cx": 4 * CX, "cy": 4 * CY, "w": 4 * WIDTH, "h": 4 * HEIGHT}
    scene = root / "1K" / "0a1b7c20a92c43c6b8954b1ac909fb2f0fa8b2997b80604bc8bbec80a1cb2da3" / "nerfstudio"
    nerfstudio(scene, known, full)
    pictures(scene / "images_4", [f"frame_{t + 1:05d}.png" for t in range(len(known.poses))])


def colmap(root: Path, known: Truth) -> None:
    """Text: camera_from_world as a quaternion, real part first."""
    (root / "flat" / "sparse" / "0").mkdir(parents=True)
    model = root / "flat" / "sparse" / "0"
    (model / "cameras.txt").write_text(f"1 PINHOLE {WIDTH} {HEIGHT} {FX} {FY} {CX} {CY}\n")
    lines = []
    for t, pose in enumerate(np.linalg.inv(known.poses)):
        x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
        lines += [f"{t + 1} {numbers(np.array([w, x, y, z]))} {numbers(pose[:3, 3])} 1 img_{t}.png", ""]
    (model / "images.txt").write_text("\n".join(lines) + "\n")
    (model / "points3D.txt").write_text("")
    pictures(root / "flat" / "images", [f"img_{t}.png" for t in range(len(known.poses))])


def scannetpp_dslr(root: Path, known: Truth) -> None:
    scene = root / "data" / "0a5c013435"
    nerfstudio(scene / "dslr" / "nerfstudio", known, name="DSC{:05d}.png")
    names = [f"DSC{t + 1:05d}.png" for t in range(len(known.poses))]
    pictures(scene / "dslr" / "resized_images", names)


WALL = 8.0  # metres from the first camera, ahead along the world's y
DEPTH_WIDTH, DEPTH_HEIGHT = WIDTH // 2, HEIGHT // 2  # a sensor has fewer pixels than the video
BLIND = (1, 2)  # row and column where the sensor saw nothing


def depths(folder: Path, known: Truth, names: list[str]) -> None:
    """What a depth sensor stores of a wall: millimetres along the camera's axis in 16 bits, 0 where it saw nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    x = ((np.arange(DEPTH_WIDTH) + 0.5) * WIDTH / DEPTH_WIDTH - CX) / FX
    y = ((np.arange(DEPTH_HEIGHT) + 0.5) * HEIGHT / DEPTH_HEIGHT - CY) / FY
    rays = np.stack([*np.meshgrid(x, y), np.ones((DEPTH_HEIGHT, DEPTH_WIDTH))], -1)
    for name, pose in zip(names, known.poses, strict=True):
        towards = rays @ pose[1, :3]  # how far along the world's y a step along the camera's axis goes
        along = (known.poses[0, 1, 3] + WALL - pose[1, 3]) / towards
        along[BLIND] = 0
        Image.fromarray(np.round(1000 * along).astype(np.uint16)).save(folder / f"{name}.png")


def scannetpp_iphone(root: Path, known: Truth) -> None:
    scene = root / "0a5c013435" / "iphone"
    grow = 1920 / WIDTH
    k = [[FX * grow, 0, CX * grow - 0.5], [0, FY * 1440 / HEIGHT, CY * 1440 / HEIGHT - 0.5], [0, 0, 1]]
    entries = {f"frame_{t:06d}": {"aligned_pose": p.tolist(), "intrinsic": k} for t, p in enumerate(known.poses)}
    pictures(scene / "rgb", [f"{name}.png" for name in entries])
    depths(scene / "depth", known, list(entries))
    (scene / "pose_intrinsic_imu.json").write_text(json.dumps(entries))


def arkitscenes(root: Path, known: Truth) -> None:
    """Frames at twice the track's rate: every other one has no entry."""
    scene = root / "Training" / "41069021"
    times = [305.377 + 0.1 * t for t in range(len(known.poses))]
    rows = []
    for time, pose in zip(times, np.linalg.inv(known.poses), strict=True):
        rows.append(
            f"{time + 0.002:.6f} {numbers(Rotation.from_matrix(pose[:3, :3]).as_rotvec())} {numbers(pose[:3, 3])}"
        )
    names = [f"41069021_{time:.3f}" for time in times]
    (scene / "lowres_wide_intrinsics").mkdir(parents=True)
    (scene / "lowres_wide.traj").write_text("\n".join(rows) + "\n")
    for name in names:
        line = f"{WIDTH} {HEIGHT} {FX} {FY} {CX - 0.5} {CY - 0.5}"
        (scene / "lowres_wide_intrinsics" / f"{name}.pincam").write_text(line)
    depths(scene / "lowres_depth", known, names)
    sure = np.full((DEPTH_HEIGHT, DEPTH_WIDTH), 2, np.uint8)
    sure[0, 0], sure[0, 1] = 0, 1
    (scene / "confidence").mkdir()
    for name in names:
        Image.fromarray(sure).save(scene / "confidence" / f"{name}.png")
    between = [f"41069021_{time + 0.05:.3f}" for time in times]
    pictures(scene / "lowres_wide", [f"{name}.png" for name in names])
    pictures(scene / "lowres_wide", [f"{name}.png" for name in between])


def realcam(root: Path, known: Truth) -> None:
    shares = [FX / WIDTH, FY / HEIGHT, CX / WIDTH, CY / HEIGHT]
    row = {
        "dataset_source": "RealEstate10K",
        "video_path": "RealEstate10K/test/a.mp4",
        "short_caption": "a room",
        "long_caption": "a room, seen while walking",
        "camera_intrinsics": shares,
        "camera_extrinsics": np.linalg.inv(known.poses).tolist(),
    }
    (root / "RealEstate10K" / "test").mkdir(parents=True)
    film(root / row["video_path"], len(known.poses))
    (root / "RealCam-Vid_test.jsonl").write_text(json.dumps(row) + "\n")


def film(path: Path, frames: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(torch.stack([picture(t) for t in range(frames)]), path, 10.0)


def panshot(root: Path, known: Truth) -> None:
    """As released; the world's y is down in it, which the caller must know. Two splits."""
    for split, clip in (("train", "abc-1"), ("test", "xyz-2")):
        shots = root / "PanShot"
        for name in (f"meta-{split}", f"pose-{split}", f"videos-{split}"):
            (shots / name).mkdir(parents=True, exist_ok=True)
        videos = [{"video": f"{clip}-{i}", "pose": f"{clip}-0-81", "x_fov": "90", "xi": 0.5 * i} for i in range(2)]
        (shots / f"meta-{split}" / f"{clip}.json").write_text(json.dumps([{"videos": videos}]))
        np.save(shots / f"pose-{split}" / f"{clip}-0-81.npy", known.poses[:, :3].astype(np.float32))
        said = [{"video": video["video"], "caption": f"a street of {split}"} for video in videos]
        (shots / f"captioned-{split}.jsonl").write_text("\n".join(map(json.dumps, said)))
        for video in videos:
            film(shots / f"videos-{split}" / f"{video['video']}.mp4", len(known.poses))
        (root / "PanFlow").mkdir(exist_ok=True)
        near = {"video_id": clip.split("-")[0], "clip_id": int(clip.split("-")[1]), "near_depth": 0.5}
        (root / "PanFlow" / f"near_plane_depth-{split}.jsonl").write_text(json.dumps(near))


def davis(root: Path, sequences: tuple[str, ...] = ("bear", "blackswan")) -> None:
    for name in sequences:
        pictures(root / "JPEGImages" / "480p" / name, [f"{t:05d}.png" for t in range(FRAMES)])
        for t in range(FRAMES):
            mask = torch.zeros(HEIGHT, WIDTH, 3, dtype=torch.uint8)
            mask[t : t + 4, 5:9] = 255
            place = root / "Annotations" / "480p" / name
            place.mkdir(parents=True, exist_ok=True)
            write_png(mask, place / f"{t:05d}.png")
    sets = root / "ImageSets" / "480p"
    sets.mkdir(parents=True)
    for split, name in (("train", sequences[0]), ("val", sequences[1])):
        line = "/JPEGImages/480p/{0}/{1:05d}.jpg /Annotations/480p/{0}/{1:05d}.png"
        (sets / f"{split}.txt").write_text("\n".join(line.format(name, t) for t in range(FRAMES)))


def miradata(root: Path) -> None:
    film(root / "clip_video" / "000000000" / "000000000007_0.mp4", FRAMES)
    head = "clip_id,source,video_id,file_path,short_caption,dense_caption"
    rows = [
        '7,youtube,aaa,clip_video/000000000/000000000007_0.mp4,a ride,"a long ride, by a river"',
        "8,youtube,bbb,clip_video/000000000/000000000008_0.mp4,not downloaded,",
    ]
    (root / "miradata_v1_9k.csv").write_text("\n".join([head, *rows]) + "\n")
