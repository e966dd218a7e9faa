"""Every reader, handed noise and damaged files: it gives Cameras or an InputError, and nothing else."""

import json
import random
from functools import cache

import numpy as np
import pytest
import torch

from curvedray import Cameras, InputError, Lens
from curvedray.formats import FORMATS, read_cameras, read_lens, write_cameras

WORDS = [
    b"nan",
    b"inf",
    b"1e400",
    b"-1",
    b"0",
    b"1e-320",
    b"[]",
    b"{}",
    b"null",
    b'""',
    b"\xff\xfe",
    b"\0",
    b"9" * 5000,
]
LENS = (
    b"model_type: MEI\nimage_width: 1400\nimage_height: 1400\nmirror_parameters:\n   xi: 2.2\ndistortion_parameters:\n"
)
LENS += b"   k1: 0.02\n   k2: 1.6\n   p1: 0.0\n   p2: 0.0\nprojection_parameters:\n   gamma1: 1336\n   gamma2: 1335\n"
LENS += b"   u0: 716\n   v0: 705\n"
UNIK3D = b'{"name": "MEI", "params": [1336, 1335, 716, 705, 0.02, 1.6, 0, 0, 2.2]}'
SENSOR = b"T_BS:\n  data: [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]\nresolution: [64, 48]\n"
SENSOR += b"intrinsics: [30, 30, 32, 24]\ndistortion_model: radtan\ndistortion_coefficients: [0.1, 0, 0, 0]\n"


def cameras(xi=0.0):
    poses = torch.eye(4).repeat(3, 1, 1)
    poses[:, :3, 3] = torch.arange(9.0).reshape(3, 3) / 7
    return Cameras(Lens.from_fov(90.0, xi, 64, 48), poses, fps=24.0)


@cache
def good_file(name, folder):
    """A valid file of each format, as bytes."""
    if name == "panshot-request":
        write_cameras(cameras(), folder / "p.npy")
        return json.dumps([{"pose_path": "p.npy", "x_fov": 100.0, "xi": 0.5, "caption": "a"}]).encode()
    if name == "nerfstudio":
        frames = [{"file_path": f"f{i}", "transform_matrix": np.eye(4).tolist()} for i in range(3)]
        lens = {"camera_model": "OPENCV_FISHEYE", "w": 64, "h": 48, "fl_x": 30.0, "fl_y": 30.0, "k1": 0.01}
        return json.dumps({**lens, "frames": frames}).encode()
    if name == "trajectorycrafter":
        return b"0 2 10 15 12 6 0\n0 -3 -10 -20 0\n0 -0.02 -0.09 0\n"
    if name == "asl":
        (folder / "sensor.yaml").write_bytes(SENSOR)
    write_cameras(cameras(), folder / "good", name)
    if name == "numpy-poses":
        (folder / "intrinsics.npy").write_bytes((folder / "good" / "intrinsics.npy").read_bytes())
        return (folder / "good" / "poses.npy").read_bytes()
    return (folder / "good").read_bytes()


def wounded(content: bytes, chance: random.Random) -> bytes:
    """One wound: a byte, a cut, an insertion, a line lost or doubled, a word changed, an early end."""
    at, length = chance.randrange(len(content) + 1), chance.randint(1, 12)
    lines, words = content.splitlines(keepends=True) or [b""], content.split(b" ")
    line, word = chance.randrange(len(lines)), chance.randrange(len(words))
    return chance.choice(
        [
            content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :],
            content[:at] + content[at + length :],
            content[:at] + chance.choice(WORDS) + content[at:],
            content[:at] + chance.randbytes(length) + content[at:],
            b"".join(lines[:line] + lines[line + 1 :]),
            b"".join(lines[: line + 1] + lines[line:]),
            b" ".join([*words[:word], chance.choice(WORDS), *words[word + 1 :]]),
            content[:at],
        ]
    )


def damaged(content: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 3)):
        content = wounded(content, chance)
    return content


def survives(read, path, **options):
    """Whether it was read; an InputError is a good answer too, anything else is our bug."""
    try:
        read(path, **options)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "colmap"])
def test_a_damaged_file_is_read_or_refused(name, tmp_path):
    chance, path, folder = random.Random(name), tmp_path / "poses.npy", tmp_path  # the name that numpy-poses needs
    content = good_file(name, folder)
    path.write_bytes(content)
    assert survives(read_cameras, path)
    outcomes = set()
    for _ in range(60):
        path.write_bytes(damaged(content, chance))
        outcomes.add(survives(read_cameras, path))
        outcomes.add(survives(read_cameras, path, format=name))
    assert False in outcomes  # the wounds are felt


@pytest.mark.parametrize("name", FORMATS)
def test_noise_is_refused(name, tmp_path):
    chance, path = random.Random(0), tmp_path / "a"
    heads = (b"", b"{", b"[", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b'{"frames": [')
    for head in heads:
        for _ in range(4):
            path.write_bytes(head + chance.randbytes(chance.randint(1, 300)))
            assert not survives(read_cameras, path)
            assert not survives(read_cameras, path, format=name)


@pytest.mark.parametrize("text", [True, False])
def test_a_damaged_colmap_model_is_read_or_refused(text, tmp_path):
    chance, model = random.Random(0), tmp_path / "model"
    write_cameras(cameras(xi=1.2), model, "colmap", text=text)
    assert survives(read_cameras, model)
    good = {path: path.read_bytes() for path in sorted(model.iterdir())}
    for _ in range(30):
        path = chance.choice(list(good))
        path.write_bytes(damaged(good[path], chance))
        survives(read_cameras, model)
        path.write_bytes(good[path])


@pytest.mark.parametrize("content", [LENS, UNIK3D])
def test_a_damaged_lens_is_read_or_refused(content, tmp_path):
    chance, path = random.Random(0), tmp_path / "a.yaml"
    path.write_bytes(content)
    assert survives(read_lens, path, max_angle=80.0)
    for _ in range(30):
        path.write_bytes(damaged(content, chance))
        survives(read_lens, path, max_angle=80.0)


@pytest.mark.parametrize("part", ["sensor.yaml", "intrinsics.npy"])
def test_a_damaged_file_of_the_lens_beside_is_read_or_refused(part, tmp_path):
    chance, name = random.Random(0), {"sensor.yaml": "asl", "intrinsics.npy": "numpy-poses"}[part]
    path, options = tmp_path / "poses.npy", {"sensor": tmp_path / part} if name == "asl" else {}
    path.write_bytes(good_file(name, tmp_path))
    good = (tmp_path / part).read_bytes()
    assert survives(read_cameras, path, format=name, **options)
    for _ in range(40):
        (tmp_path / part).write_bytes(damaged(good, chance))
        survives(read_cameras, path, format=name, **options)
