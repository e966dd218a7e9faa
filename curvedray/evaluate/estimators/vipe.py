"""NVIDIA ViPE, run as a program of its own because its pins clash with ours; we read the npz files it writes.

As UCPE does, a video through a bent lens is first rectified to a pinhole with the *requested* lens. If the video's real
lens differs, that error leaks into the poses: a ViPE score judges lens and path together.

    t frame   h, w pixels
"""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

from curvedray.cameras import Lens
from curvedray.errors import InputError
from curvedray.evaluate.estimators.protocol import Estimate, Frames, filled
from curvedray.evaluate.scores import Failure
from curvedray.formats import vipe

PINHOLE_FOV = 90.0  # degrees across the rectified image
INSTALL = "Install it in an environment of its own with: pip install nvidia-vipe (on PyPI, `vipe` is another project)"


@dataclass(frozen=True)
class Vipe:
    """Poses from ViPE: run here (`command`), or recorded before in a results folder (`results`)."""

    command: str | None = None
    results: Path | None = None
    version: str = "nvidia-vipe"
    pipeline: str = "default"
    name: str = "vipe"
    every_frame: bool = True
    floor: str = "not measured here; lens errors leak into its poses where the lens is not a pinhole"

    @classmethod
    def from_command(cls, command: str) -> "Vipe":
        """The program by its name or path; asked for its version, so that an absent one is found out at once."""
        if shutil.which(command) is None:
            raise InputError("estimator vipe", f"the program {command!r}", "it is not installed", INSTALL)
        answer = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=300)
        if answer.returncode:
            raise InputError("estimator vipe", f"`{command} --version` to answer", _last_line(answer.stderr), INSTALL)
        return cls(command=command, version=f"nvidia-vipe {_last_line(answer.stdout)}")

    @classmethod
    def from_results(cls, results: Path) -> "Vipe":
        """A folder that ViPE wrote: pose/<clip>.npz with `data` (N, 4, 4) and `inds` (N)."""
        if not (results / "pose").is_dir():
            raise InputError("ViPE results", "a folder with pose/<clip>.npz in it", results)
        digest = hashlib.sha256()
        for path in sorted((results / "pose").glob("*.npz")):
            digest.update(path.name.encode() + path.read_bytes())
        return cls(results=results, version=f"nvidia-vipe, recorded results {digest.hexdigest()[:12]}")

    def estimate(self, video: Frames, lens: Lens | None = None, clip: str = "") -> Estimate | Failure:
        if self.results:
            return read_poses(self.results / "pose" / f"{clip}.npz", len(video))
        assert self.command is not None
        from curvedray.media.video import write_video

        flat = rectified(video, lens) if lens is not None and bool((lens.xi > 0).any()) else video
        with tempfile.TemporaryDirectory() as folder:
            write_video(torch.from_numpy(flat), Path(folder) / "clip.mp4")
            run = [self.command, "infer", f"{folder}/clip.mp4", "--output", folder, "--pipeline", self.pipeline]
            answer = subprocess.run(run, capture_output=True, text=True)
            if answer.returncode:
                return Failure(f"vipe stopped with code {answer.returncode}: {_last_line(answer.stderr)}")
            return read_poses(Path(folder) / "pose" / "clip.npz", len(video))


def read_poses(path: Path, frames: int) -> Estimate | Failure:
    """Camera-to-world poses from ViPE's npz; frames it left out are interpolated and marked."""
    if not path.is_file():
        return Failure(f"ViPE wrote no {path.name}")
    try:
        poses, indices = vipe.read_poses(path)
    except InputError as error:
        return Failure(str(error))
    if indices.min() < 0 or indices.max() >= frames:
        return Failure(f"{path.name} speaks of frame {indices.max()}, the video has {frames}")
    full, found = filled({int(i): pose for i, pose in zip(indices, poses, strict=True)}, frames)
    return Estimate(poses=full, found=found, note="" if found.all() else f"{(~found).sum()} frames interpolated")


def rectified(video: Frames, lens: Lens) -> Frames:
    """The video as a pinhole of PINHOLE_FOV would have seen it, sampled through the given lens."""
    pinhole = Lens.from_fov(min(PINHOLE_FOV, float(lens.hfov.min())), 0.0, *lens.size)
    rays, _ = pinhole.rays()
    flat = []
    for index, frame in enumerate(video):
        pixels, seen = (lens[index] if lens.batch_shape else lens).project(rays)
        grid = pixels / pixels.new_tensor(lens.size) * 2 - 1
        image = torch.from_numpy(frame).permute(2, 0, 1)[None].float()
        sampled = F.grid_sample(image, grid[None], mode="bilinear", align_corners=False)[0]
        flat.append((sampled * seen).round().clamp(0, 255).to(torch.uint8).permute(1, 2, 0))
    return torch.stack(flat).numpy()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no answer"
