"""The package's own estimator, for clips of the procedural world: poses in metres, lens, horizon, radii and caption.

It was trained on that world alone, as the embedded model shows it, and means nothing anywhere else. Its floor, measured
on test clips, is in its file and stands beside every score.

    b clip   t frame   h w pixels
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, UInt8
from scipy.spatial.transform import Rotation
from torch import Tensor

from curvedray.cameras import Lens
from curvedray.cameras.lens import widest_angle
from curvedray.configs import config_of
from curvedray.errors import InputError
from curvedray.evaluate.estimators.clip_reader import GRID, HEIGHT, WIDTH, ClipReader, ReaderShape, Reading, joined
from curvedray.evaluate.estimators.protocol import Estimate, Frames, UpAndLens, filled
from curvedray.evaluate.metrics.lens import up_directions
from curvedray.evaluate.scores import Failure
from curvedray.files import write_tensors
from curvedray.inputs import MB, exists, parsed_json, read_tensors
from curvedray.media.pixels import video_from_frames

WEIGHTS = Path(__file__).parents[2] / "assets" / "embedded_estimator.safetensors"
FRAMES = GRID.video_frames
NARROWEST, SPARE = (
    0.1,
    0.02,
)  # radians: its narrowest field, and what it stays below the widest of a lens
BATCH = 16
LARGEST = 500 * MB  # of an estimator's file


@dataclass(frozen=True)
class Embedded:
    """Reads clips of the procedural world."""

    reader: ClipReader
    version: str
    floor: str
    name: str = "embedded"
    every_frame: bool = True

    @classmethod
    def load(cls, path: Path = WEIGHTS) -> "Embedded":
        reader, floor = load_reader(path)
        return cls(reader, hashlib.sha256(path.read_bytes()).hexdigest()[:12], floor)

    @torch.no_grad()
    def read(self, videos: UInt8[Tensor, "b t h w 3"]) -> Reading:
        """Everything it can tell of many clips, the caption's logits too."""
        reason = unreadable(tuple(videos.shape[1:4]))
        if reason:
            raise InputError("videos", f"{FRAMES} frames of {WIDTH} x {HEIGHT}, or that enlarged", reason)
        return joined([self.reader.read(at_reading_size(some)) for some in videos.split(BATCH)])

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        reason = unreadable(video.shape[:3])
        if reason:
            return Failure(f"the embedded estimator reads {FRAMES} frames of {WIDTH} x {HEIGHT}: {reason}", clip)
        reading = self.read(torch.from_numpy(video)[None])
        path = poses(reading)[0]
        all_poses, found = filled(dict(zip(range(0, FRAMES, GRID.stride[0]), path, strict=True)), FRAMES)
        lens_read = lens_of(reading, 0, (video.shape[2], video.shape[1]))
        view = UpAndLens(up_directions(torch.from_numpy(path)).numpy(), lens_read)
        radial = reading.log_radius[0].double().exp().numpy()
        return Estimate(all_poses, found, view, radial, f"reads as {self.caption(reading, 0)}")

    def caption(self, reading: Reading, clip: int) -> str:
        """What it sees in one clip, most likely words: the theme, then the things."""
        shape = self.reader.shape
        said = (reading.colour[clip].argmax(-1).tolist(), reading.kind[clip].argmax(-1).tolist())
        things = [
            f"{colour} {shape.kinds[kind]}"
            for colour, missing, kind in zip(shape.colours, *said, strict=True)
            if not missing and kind < len(shape.kinds)
        ]
        return ", ".join([shape.themes[int(reading.theme[clip].argmax())], *things])


def unreadable(shape: tuple[int, ...]) -> str:
    """Why a video of (frames, height, width) cannot be read; nothing: it can."""
    frames, height, width = shape
    if frames != FRAMES:
        return f"this video has {frames} frames"
    if height * WIDTH != width * HEIGHT:
        return f"this video is shaped {width} x {height}"
    return f"this video is smaller, {width} x {height}" if height < HEIGHT else ""


def at_reading_size(videos: UInt8[Tensor, "b t h w 3"]) -> Float[Tensor, "b 3 t rows cols"]:
    """Pixels in [-1, 1] at the size it was trained on, larger ones averaged over areas."""
    frames = rearrange(video_from_frames(videos), "b c t h w -> (b t) c h w")
    small = F.interpolate(frames, (HEIGHT, WIDTH), mode="area")
    return rearrange(small, "(b t) c h w -> b c t h w", t=videos.shape[1])


def poses(reading: Reading) -> Float[np.ndarray, "b t 4 4"]:
    """Camera-to-world poses in metres, one per latent frame; the first camera, which stands level, is the world."""
    batch, frames = reading.turn.shape[:2]
    paths = np.tile(np.eye(4), (batch, frames, 1, 1))
    turns = Rotation.from_rotvec(reading.turn.double().reshape(-1, 3).numpy())
    paths[:, :, :3, :3] = turns.as_matrix().reshape(batch, frames, 3, 3)
    paths[:, :, :3, 3] = reading.shift.double().numpy()
    return paths


def lens_of(reading: Reading, clip: int, size: tuple[int, int]) -> Lens:
    """One clip's lens at an image (width, height), kept to what a lens can be."""
    xi = reading.xi[clip].double().clamp_min(0)
    widest = 2 * widest_angle(xi) - SPARE
    fov = reading.fov[clip].double().clamp_min(NARROWEST).minimum(widest)
    return Lens.from_fov(torch.rad2deg(fov), xi, *size)


def save_reader(reader: ClipReader, path: Path, floor: str, card: dict[str, Any] | None = None) -> None:
    """All of it as one safetensors file in half precision; its sizes, its floor and its card are in the header."""
    header = {"shape": asdict(reader.shape), "floor": floor, "card": card or {}}
    tensors = {name: tensor.half() for name, tensor in reader.state_dict().items()}
    write_tensors(path, tensors, {"curvedray": json.dumps(header, sort_keys=True)})


def load_reader(path: Path = WEIGHTS) -> tuple[ClipReader, str]:
    """The reader in the package, or another one from a file that `save_reader` wrote, and its floor."""
    if not exists(path):
        fix = "Choose another estimator, or train it: experiments/embedded/estimator.py."
        raise InputError("estimator embedded", f"its weights in {path.name}", "none there", fix)
    name = f"estimator {path.name}"
    tensors, header = read_tensors(path, "an estimator's weights", LARGEST)
    record = parsed_json(header.get("curvedray", "null"), name, "a header of save_reader")
    if not isinstance(record, dict) or not isinstance(record.get("floor"), str):
        raise InputError(name, "a whole file of save_reader", "one without its shape and floor")
    shape = config_of(ReaderShape, record.get("shape"), f"{name}, shape")
    with torch.device("meta"):  # sizes alone: nothing is made before the file is known to hold it
        reader = ClipReader(shape)
    check_tensors(name, tensors, reader.state_dict())
    reader.load_state_dict({key: tensor.float() for key, tensor in tensors.items()}, assign=True)
    return reader.eval().requires_grad_(False), record["floor"]


def check_tensors(name: str, stored: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Refuse what is missing or too much, of another size, no fractions, or not finite."""
    for key in sorted(stored.keys() ^ wanted.keys()):
        raise InputError(name, "a whole file of save_reader", f"one {'with' if key in stored else 'without'} {key}")
    for key, tensor in stored.items():
        if tensor.shape != wanted[key].shape or not tensor.is_floating_point():
            got = f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
            raise InputError(f"{name}, {key}", f"fractions of shape {tuple(wanted[key].shape)}", got)
        if not tensor.float().isfinite().all():
            raise InputError(f"{name}, {key}", "finite numbers", "infinite ones or NaN")
