"""Digests of an encoding, a short training run and a generated video: a refactoring must leave them as they were.

    python benchmarks/same_numbers.py

Run it before and after a change that should not alter results, on the same machine and with nothing else changed: bits
differ between CPUs, so a digest means nothing on another one. It calls public names and commands only, so the same
script runs on both sides.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from curvedray import Cameras, Lens, TokenGrid, curved_ray_attention, trajectory
from curvedray.encoding.attention import Backend

PROMPT = "a red ball and a blue box in a desert courtyard"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def encoding(backend: Backend) -> str:
    torch.manual_seed(0)
    grid = TokenGrid(3, 4, 6)
    path = trajectory("orbit left 40deg", Lens.from_fov(150, 1.0, 96, 64), frames=3).world_from_camera
    cameras = Cameras(Lens.from_fov(150, 1.0, 96, 64), path)
    q, k, v = torch.randn(3, 1, 2, grid.tokens, 48)
    mu, sigma = torch.randn(1, grid.tokens) / 4, torch.rand(1, grid.tokens)
    out = curved_ray_attention(q, k, v, cameras, grid, mu, sigma, backend=backend, query_rotation=True)
    return digest(out.numpy().tobytes())


def command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "curvedray", *words], check=True, env=ENVIRONMENT, capture_output=True)


def training(folder: Path) -> str:
    command("train", "quick", "steps=12", "data.clips=8", "every.validate=0", "-o", str(folder / "run"))
    lines = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    return digest(json.dumps([line["loss"] for line in lines if "loss" in line]).encode())


def video(folder: Path) -> str:
    import av

    out = folder / "orbit.mp4"
    command("generate", PROMPT, "--move", "orbit left 30deg", "--lens", "fisheye-150", "--seed", "3", "-o", str(out))
    with av.open(str(out)) as container:
        frames = [frame.to_ndarray(format="rgb24").tobytes() for frame in container.decode(video=0)]
    return digest(b"".join(frames))  # the file also holds where its adapter was


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        print(f"encoding, reference  {encoding('reference')}")
        print(f"encoding, fast       {encoding('fast')}")
        print(f"training losses      {training(Path(scratch))}")
        print(f"generated video      {video(Path(scratch))}")
