"""At Wan's scale an item runs up to the first missing piece: shown whole with tiny random Wan weights and a PanShot of
three clips, in the layouts of the real ones."""

import json

import numpy as np
import pytest
import torch
from tiny import footage
from typer.testing import CliRunner

from curvedray.adapter.cost import backbone_operations
from curvedray.cameras import TokenGrid
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.formats import write_cameras
from curvedray.media.video import write_video
from curvedray.paper.plan import wan_operations
from curvedray.radial.map import write_radial_map

pytestmark = [pytest.mark.slow, pytest.mark.whole]
SHAPE = ["data.frames=9", "data.height=32", "data.width=48"]
SMALL = [*SHAPE, "steps=1", "batch=1", "warmup=0", "precision=no", "film.steps=1", "film.guidance=1"]


def panshot(folder):
    """Two clips to train on and one to test, each with poses, a request, a near distance, a video and a label."""
    labels = folder / "labels"
    data = folder / "PanShot"
    data.mkdir()
    for index, split in enumerate(("train", "train", "test")):
        one = footage(index)
        name = f"film-{index}"
        write_video(one.video, data / f"{name}.mp4", fps=8)
        write_cameras(one.cameras, data / f"{name}.npy", "panshot")
        request = {"pose_path": f"{name}.npy", "x_fov": 100.0, "xi": 0.2 * index, "caption": f"street {index}"}
        with (data / f"requests-{split}.jsonl").open("a") as file:
            file.write(json.dumps(request) + "\n")
        with (data / f"near_plane_depth-{split}.jsonl").open("a") as file:
            file.write(json.dumps({"video_id": "film", "clip_id": index, "near_depth": 0.5}) + "\n")
        write_radial_map(one.radial, labels / f"{name}.npz")
    return data, labels


def vipe(folder):
    """A program that answers as ViPE does: poses of a slow truck, for nine frames."""
    poses = np.tile(np.eye(4), (9, 1, 1))
    poses[:, 0, 3] = np.linspace(0, 1, 9)
    np.savez(folder / "answer.npz", data=poses, inds=np.arange(9))
    program = folder / "vipe"
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "vipe, version 9.9"; exit 0; fi\n'
        f'mkdir -p "$4/pose" && cp {folder}/answer.npz "$4/pose/clip.npz"\n'
    )
    program.chmod(0o755)
    return program


def test_a_table_at_wans_scale_from_training_to_its_page(tmp_path):
    from tiny_wan import tiny_folder

    torch.set_num_threads(1)
    model = tiny_folder(tmp_path / "wan")
    data, labels = panshot(tmp_path)
    use = [f"wan={model}", f"panshot={data}", f"labels={labels}"]

    def run(item, *more, places=()):
        options = [word for place in (*use, *places) for word in ("--use", place)]
        words = ["paper", "run", item, *SMALL, "--scale", "wan", "--clips", "1", "-o", str(tmp_path / "runs"), *options]
        return CliRunner().invoke(app, [*words, *more])

    plan = json.loads(run("injection", "--dry-run", "--json").stdout)
    assert [line["key"] for line in plan["needs"] if line["missing"]] == ["vipe", "geocalib"]
    stopped = run("injection").exception
    assert isinstance(stopped, InputError)
    assert "nvidia-vipe" in str(stopped)
    store = tmp_path / "runs" / "wan"
    assert len(list((store / "trained").glob("*/adapter.safetensors"))) == 3
    assert len(list((store / "videos").glob("*/film-2.mp4"))) == 3
    done = run("injection", places=[f"vipe={vipe(tmp_path)}"])
    assert done.exception is None, done.exception
    page = (store / "injection" / "table.md").read_text()
    assert "; paper 18.15)" in page
    assert "GeoCalib" in page.split("Not measured, for want of:")[1]
    record = json.loads((store / "injection" / "results.json").read_text())
    assert set(record["cells"]) == {"ucpe", "depth_concat", "crepe"}
    assert "RotErr" in record["cells"]["crepe"]
    drawn = run("layer-maps")
    assert drawn.exception is None, drawn.exception
    assert (store / "layer-maps" / "film-2.png").is_file()
    probed = run("probing")
    assert probed.exception is None, probed.exception
    assert "block 2" in (store / "probing" / "table.md").read_text()


def test_the_count_of_a_dry_run_is_that_of_the_real_layers():
    from curvedray.models.wan import SHAPES, TEXT_TOKENS, wan_transformer

    grid = TokenGrid(21, 30, 52)
    counted = backbone_operations(wan_transformer("meta", **SHAPES["wan2.1-1.3b"]), grid, TEXT_TOKENS)
    assert wan_operations(grid) == pytest.approx(counted, rel=0.05)
