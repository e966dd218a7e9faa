"""Every example runs: the first cut short, the third on random weights, a notebook by its cells; docs run the rest."""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.file import save_adapter
from curvedray.media.video import read_video
from curvedray.models.embedded.model import EmbeddedModel, EmbeddedShape, load_embedded, save_embedded

EXAMPLES = Path(__file__).parents[1] / "examples"
IMAGES = Path(__file__).parents[1] / "docs" / "images"


def run(name: str, *arguments: str, folder: Path | None = None) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_the_drop_in_prints_a_row_for_every_encoding():
    rows = [line.split() for line in run("01_drop_in.py", "--steps", "2").splitlines()]
    assert [row[0] for row in rows] == ["encoding", "none", "relative-ray", "endpoint", "curved"]
    assert all(0 < float(row[1]) < 3 for row in rows[1:])


def test_five_lines_from_import_to_video(tmp_path):
    shape = EmbeddedShape(("a", "red", "ball"), channels=4, heads=2, head_dim=24, layers=3, ffn=32, text_width=8)
    model = EmbeddedModel(shape)
    save_embedded(model, tmp_path / "model.safetensors")
    adapter = Adapter(load_embedded(tmp_path / "model.safetensors").transformer)
    save_adapter(adapter, tmp_path / "adapter.safetensors")
    run("03_generate.py", "model.safetensors", "adapter.safetensors", folder=tmp_path)
    assert len(read_video(tmp_path / "orbit.mp4").frames) == shape.frames


def test_the_readmes_picture_is_this_example(tmp_path):
    run("04_three_lenses.py", "lenses.gif", folder=tmp_path)
    with Image.open(tmp_path / "lenses.gif") as made, Image.open(IMAGES / "three_lenses.gif") as shown:
        assert (made.size, made.n_frames) == (shown.size, shown.n_frames)


def test_the_docs_pictures_of_maps_are_this_example(tmp_path):
    run("06_distance_maps.py", str(tmp_path))
    for name in ("radial_block.png", "radial_edit.png", "radial_label.png", "radial_transfer.png"):
        with Image.open(tmp_path / name) as made, Image.open(IMAGES / name) as shown:
            assert made.size == shown.size


def test_the_notebooks_cells_run_in_order(tmp_path):
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), "strip its outputs"
    shown = [cell for cell in cells if "needs-jupyter" not in cell["metadata"].get("tags", [])]
    assert len(shown) >= 3
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in shown))
    run(str(script), folder=tmp_path)
    assert len(read_video(tmp_path / "orbit.mp4").frames) == 17
