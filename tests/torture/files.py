"""What is attacked through files: every reader, handed files that were good once.

A target is made once in a worker's folder, where it writes its good files; `attack` then makes one bad input from a
`random.Random` and hands it to the reader. Returning is fine, so is an InputError; anything else is a finding.
"""

import json
import os
from pathlib import Path
from random import Random
from typing import Any, Protocol

import numpy as np
import torch

from torture import mutate

FRAMES, WIDTH, HEIGHT = 5, 48, 32


class Target(Protocol):
    """`share` says how many of a campaign's inputs it gets, relative to the others."""

    name: str
    share: int

    def __init__(self, folder: Path) -> None: ...

    def attack(self, chance: Random) -> None: ...


def good_cameras(xi: float = 0.0) -> Any:
    from curvedray.cameras import Cameras, Lens

    poses = torch.eye(4).repeat(FRAMES, 1, 1)
    poses[:, :3, 3] = torch.arange(3.0 * FRAMES).reshape(FRAMES, 3) / 7
    return Cameras(Lens.from_fov(90.0, xi, WIDTH, HEIGHT), poses, "metric", fps=8.0)


def good_frames() -> torch.Tensor:
    across = torch.arange(WIDTH, dtype=torch.uint8) * 5
    frames = across[None, None, :, None].repeat(FRAMES, HEIGHT, 1, 3)
    for index in range(FRAMES):
        frames[index, 4:12, 3 * index : 3 * index + 9] = 255
    return frames


class CameraFiles:
    """Every format that can be written, as its file; some that can only be read, by hand."""

    name, share = "camera files", 10

    def __init__(self, folder: Path) -> None:
        from curvedray.errors import InputError
        from curvedray.formats import FORMATS, write_cameras

        self.folder = folder
        self.good: dict[str, tuple[str, str, bytes]] = {}
        for name, one in FORMATS.items():
            for xi in (0.0, 0.6):
                path = folder / f"good-{len(self.good)}{(one.extensions or ('',))[0]}"
                try:
                    write_cameras(good_cameras(xi), path, name)
                except InputError:  # a format that is only read, or has no such lens
                    continue
                if path.is_file():
                    self.good[f"{name}:{xi}"] = (name, path.suffix, path.read_bytes())
        poses = [row.tolist() for row in good_cameras().world_from_camera]
        shots = [{"file_path": f"{i}.png", "transform_matrix": pose} for i, pose in enumerate(poses)]
        lens = {"camera_model": "OPENCV_FISHEYE", "w": WIDTH, "h": HEIGHT, "fl_x": 30.0, "fl_y": 30.0, "k1": 0.01}
        self._by_hand("nerfstudio", {**lens, "frames": shots})
        np.save(folder / "poses.npy", np.array(poses))
        request = {"pose_path": "poses.npy", "x_fov": 100.0, "xi": 0.5, "caption": "a"}
        self._by_hand("panshot-request", [request])

    def _by_hand(self, name: str, value: Any) -> None:
        self.good[f"{name} by hand"] = (name, ".json", json.dumps(value).encode())

    def attack(self, chance: Random) -> None:
        from curvedray.formats import read_cameras

        name, suffix, content = self.good[chance.choice(sorted(self.good))]
        is_json = suffix == ".json" and chance.random() < 0.6
        bad = mutate.odd_json(json.loads(content), chance) if is_json else mutate.damaged(content, chance)
        path = self.folder / f"bad{suffix if chance.random() < 0.9 else ''}"
        path.write_bytes(bad)
        read_cameras(path, **({"format": name} if chance.random() < 0.5 else {}))


class Calibrations:
    name, share = "lens calibrations", 1
    good = (
        b"model_type: MEI\nimage_width: 1400\nimage_height: 1400\nmirror_parameters:\n   xi: 2.2\n"
        b"distortion_parameters:\n   k1: 0.02\n   k2: 1.6\n   p1: 0.0\n   p2: 0.0\n"
        b"projection_parameters:\n   gamma1: 1336\n   gamma2: 1335\n   u0: 716\n   v0: 705\n"
    )

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lens.yaml"

    def attack(self, chance: Random) -> None:
        from curvedray.formats import read_lens

        self.path.write_bytes(mutate.damaged(self.good, chance))
        read_lens(self.path, max_angle=80.0)


class RadialMaps:
    name, share = "radial maps", 10

    def __init__(self, folder: Path) -> None:
        from curvedray.cameras import TokenGrid

        self.folder, self.grid = folder, TokenGrid(2, 2, 3, (4, 16, 16))
        radius = 1 + 4 * np.random.default_rng(0).random((FRAMES, HEIGHT, WIDTH), dtype=np.float32)
        self.arrays = {"radius": radius, "valid": radius < 4, "near": np.float32(0.7)}

    def attack(self, chance: Random) -> None:
        from curvedray.radial.map import read_radial_map

        alone = chance.random() < 0.3
        path = self.folder / ("map.npy" if alone else "map.npz")
        bad = mutate.odd_npy(self.arrays["radius"], chance) if alone else mutate.odd_npz(self.arrays, chance)
        path.write_bytes(bad)
        near = chance.choice([None, None, None, 0.0, -1.0, float("nan"), float("inf"), 1e-300, 2.0])
        target, known = read_radial_map(path, near).on(self.grid)
        assert torch.isfinite(target.mu).all(), "a target that is not finite"
        assert known.shape == target.mu.shape


class Adapters:
    """Files of a small adapter, loaded for the transformer they were made for."""

    name, share = "adapters", 6

    def __init__(self, folder: Path) -> None:
        from tiny import TinyModel

        from curvedray.adapter.adapter import Adapter
        from curvedray.adapter.config import AdapterConfig
        from curvedray.adapter.file import save_adapter

        self.path, self.transformer = folder / "adapter.safetensors", TinyModel().transformer
        save_adapter(Adapter(self.transformer, AdapterConfig(width=24)), self.path)
        self.good = self.path.read_bytes()

    def attack(self, chance: Random) -> None:
        from curvedray.adapter.file import load_adapter

        self.path.write_bytes(mutate.odd_safetensors(self.good, chance))
        load_adapter(self.path, self.transformer)


class Models:
    name, share = "embedded models", 4

    def __init__(self, folder: Path) -> None:
        from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, save_embedded

        shape = EmbeddedShape(("a", "red", "ball"), channels=8, heads=2, head_dim=24, layers=1, ffn=16, text_width=8)
        self.path = folder / "model.safetensors"
        save_embedded(EmbeddedModel(shape), self.path)
        self.good = self.path.read_bytes()

    def attack(self, chance: Random) -> None:
        from curvedray.models.embedded.model import load_embedded

        self.path.write_bytes(mutate.odd_safetensors(self.good, chance))
        load_embedded(self.path)


class Estimators:
    name, share = "estimators", 4

    def __init__(self, folder: Path) -> None:
        from curvedray.evaluate.estimators.clip_reader import ClipReader, ReaderShape
        from curvedray.evaluate.estimators.embedded import save_reader

        shape = ReaderShape(("desert",), ("red",), ("ball",), channels=8, width=24, layers=1, heads=2)
        self.path = folder / "estimator.safetensors"
        save_reader(ClipReader(shape), self.path, "floor")
        self.good = self.path.read_bytes()

    def attack(self, chance: Random) -> None:
        from curvedray.evaluate.estimators.embedded import load_reader

        self.path.write_bytes(mutate.odd_safetensors(self.good, chance))
        load_reader(self.path)


class Recipes:
    """The recipe of a video, as the JSON beside it and inside the video, for `--again`."""

    name, share = "recipes of videos", 8

    def __init__(self, folder: Path) -> None:
        from curvedray.generation.parts import load_parts
        from curvedray.generation.recipe import new_recipe
        from curvedray.media.video import write_video

        recipe = new_recipe(load_parts("random", "none"), "a red ball in a desert courtyard", "orbit left", steps=2)
        self.record, self.folder = recipe.to_json(), folder
        self.write = lambda path, note: write_video(good_frames()[:1], path, metadata={"recipe": note})

    def attack(self, chance: Random) -> None:
        from curvedray.generation.recipe import read_recipe, relocated

        if chance.random() < 0.2:
            path = self.folder / "again.mp4"
            note = mutate.odd_json(self.record, chance).decode("utf-8", "replace").replace("\0", "")
            self.write(path, note)
        else:
            path = self.folder / "again.json"
            beside = {"recipe": self.record, "cost": {}} if chance.random() < 0.9 else self.record
            path.write_bytes(mutate.odd_json(beside, chance))
        relocated(read_recipe(path))


class Tables:
    """Folders of clips: metadata tables, captions, PanShot's requests. The first clip is read, too."""

    name, share = "data tables", 8

    def __init__(self, folder: Path) -> None:
        from curvedray.formats import write_cameras
        from curvedray.media.video import write_video

        self.folder = folder / "data"
        write_video(good_frames(), self.folder / "a.mp4", 8.0)
        write_cameras(good_cameras(), self.folder / "a.json")
        np.save(self.folder / "a.npy", np.array(good_cameras().world_from_camera))
        write_cameras(good_cameras(), self.folder / "b.txt", "realestate10k")
        (self.folder / "b.mp4").write_bytes((self.folder / "a.mp4").read_bytes())
        self.rows = [
            {"video": "a.mp4", "cameras": "a.json", "caption": "a red ball", "id": "a", "near": 1.5, "unit": "metric"},
            {"video": "b.mp4", "cameras": "b.txt", "caption": 'he said "go", and', "hfov": 90, "xi": 0.2},
        ]
        self.request = [{"pose_path": "a.npy", "x_fov": 100.0, "xi": 0.5, "caption": "a"}]

    def attack(self, chance: Random) -> None:
        from curvedray.data.folders import FolderFootage

        kind = chance.choice(["metadata.csv", "metadata.jsonl", "captions.json", "requests.json", "requests.jsonl"])
        bad = self.folder / kind
        bad.write_bytes(self._content(kind, chance))
        try:
            footage = FolderFootage(self.folder)
            index = chance.randrange(len(footage))
            footage.name_of(index), footage.fingerprint(index)
            footage[index]
        finally:
            bad.unlink()

    def _content(self, kind: str, chance: Random) -> bytes:
        if kind == "metadata.csv":
            columns = list(dict.fromkeys(key for row in self.rows for key in row))
            lines = [",".join(columns)] + [",".join(str(row.get(key, "")) for key in columns) for row in self.rows]
            return mutate.damaged("\n".join(lines).encode(), chance)
        value: Any = self.rows if kind == "metadata.jsonl" else self.request
        if kind.endswith(".jsonl"):
            odd = mutate.odd_value(value, chance)
            lines = [json.dumps(row) for row in (odd if isinstance(odd, list) else [odd])]
            data = "\n".join(lines).encode("utf-8", "surrogatepass")
            return mutate.damaged(data, chance) if chance.random() < 0.4 else data
        return mutate.odd_json({"a": "a red ball", "b": ["x", "y"]} if kind == "captions.json" else value, chance)


class Videos:
    """Videos and images, damaged, read as both."""

    name, share = "videos and images", 8

    def __init__(self, folder: Path) -> None:
        from curvedray.media.image import write_png
        from curvedray.media.video import ENDINGS, write_video

        self.folder = folder
        for ending in ENDINGS:
            write_video(good_frames(), folder / f"good{ending}", metadata={"move": "orbit left"})
        write_png(good_frames()[0], folder / "good.png")
        self.good = {path.suffix: path.read_bytes() for path in sorted(folder.glob("good.*"))}

    def attack(self, chance: Random) -> None:
        from curvedray.media.image import read_image
        from curvedray.media.video import read_notes, read_video

        suffix = chance.choice(sorted(self.good))
        path = self.folder / f"bad{suffix}"
        path.write_bytes(mutate.damaged(self.good[suffix], chance))
        chance.choice([read_video, read_video, read_notes, read_image])(path)


class Checkpoints:
    """Every file of a checkpoint, and the state that names them."""

    name, share = "checkpoints", 4

    def __init__(self, folder: Path) -> None:
        from curvedray.training.checkpoints import Checkpoint, save_checkpoint

        tensors = {"a": torch.ones(3), "b": torch.zeros(2, 2)}
        self.path = save_checkpoint(folder / "run", Checkpoint(3, {"name": "x"}, tensors, tensors, tensors), 1)
        self.good = {path: path.read_bytes() for path in sorted(self.path.iterdir())}

    def attack(self, chance: Random) -> None:
        from curvedray.training.checkpoints import load_checkpoint

        path = chance.choice(list(self.good))
        is_json = path.suffix == ".json"
        content = self.good[path]
        bad = mutate.odd_json(json.loads(content), chance) if is_json else mutate.odd_safetensors(content, chance)
        path.write_bytes(bad)
        try:
            load_checkpoint(self.path)
        finally:
            path.write_bytes(content)


class NamesOfFiles:
    """Every reader, handed names that are too long, not text, pipes, devices, folders, or links to nothing."""

    name, share = "names of files", 2

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        (folder / "nowhere").symlink_to(folder / "nothing")
        (folder / "circle").symlink_to(folder / "circle")
        (folder / "empty").touch()
        self.names = [str(folder / name) for name in ("pipe", "nowhere", "circle", "empty", "missing", "empty/x", "")]
        self.names += ["/dev/zero", "/dev/null", "/proc/self/mem", "a\0b", "x" * 5000, "\udcff", "", ".", "..", "/"]
        self.readers = self._readers()

    def _readers(self) -> list[Any]:
        from curvedray.adapter.file import read_adapter
        from curvedray.data.folders import FolderFootage
        from curvedray.evaluate.estimators.embedded import load_reader
        from curvedray.formats import read_cameras, read_lens
        from curvedray.generation.recipe import read_recipe
        from curvedray.media.image import read_image
        from curvedray.media.video import read_notes, read_video
        from curvedray.models.embedded.model import load_embedded
        from curvedray.radial.convert import read_sequence
        from curvedray.radial.map import read_radial_map

        return [
            *(read_adapter, load_reader, read_cameras, read_lens, read_recipe, read_image, read_notes),
            *(read_video, load_embedded, read_radial_map, read_sequence, FolderFootage),
        ]

    def attack(self, chance: Random) -> None:
        chance.choice(self.readers)(Path(chance.choice(self.names) + chance.choice(["", "", ".json", ".mp4", ".npz"])))


FILES: tuple[type[Target], ...] = (
    *(CameraFiles, Calibrations, RadialMaps, Adapters, Models, Estimators),
    *(Recipes, Tables, Videos, Checkpoints, NamesOfFiles),
)
