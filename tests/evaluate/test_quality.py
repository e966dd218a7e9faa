"""Quality scores: our arithmetic beside public code's, features kept and used again, and what is missing said."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from curvedray.cli import app
from curvedray.data.fingerprint import file_fingerprint, fingerprint
from curvedray.errors import InputError
from curvedray.evaluate.metrics.distribution import frechet_distance, inception_score
from curvedray.evaluate.quality import EXTRACTORS, METRIC_NAMES, Request, measure_quality
from curvedray.evaluate.quality.captions import noted_captions, read_captions
from curvedray.evaluate.quality.extractors import chosen_metrics, weights_of
from curvedray.evaluate.quality.process import WORKER, ClipFailure, working
from curvedray.media.video import write_video

GOLDEN = np.load(Path(__file__).parents[1] / "goldens" / "quality.npz")


def probabilities(logits: np.ndarray) -> np.ndarray:
    return torch.from_numpy(logits).double().softmax(1).numpy()


def test_distances_are_those_of_public_code():
    """FVD as cd-fvd computes it, FID and IS as torchmetrics does, on features of their own networks."""
    assert frechet_distance(GOLDEN["i3d_ours"], GOLDEN["i3d_theirs"]) == pytest.approx(float(GOLDEN["fvd"]), rel=1e-5)
    ours = frechet_distance(GOLDEN["inception_ours"], GOLDEN["inception_theirs"])
    assert ours == pytest.approx(float(GOLDEN["fid"]), rel=1e-4)
    score = inception_score(probabilities(GOLDEN["class_logits"]), splits=1)[0]
    assert score == pytest.approx(float(GOLDEN["inception_score"]), rel=1e-5)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Twelve clips and their references, and folders in which weights would be."""
    for side, shift in (("ours", 0), ("real", 5)):
        (tmp_path / side).mkdir()
        for index in range(12):
            frames = torch.full((2, 16, 16, 3), 10 * index + shift, dtype=torch.uint8)
            write_video(frames, tmp_path / side / f"{index:02}.mp4")
    (tmp_path / "weights").mkdir()
    for name in ("i3d.safetensors", "inception.safetensors"):
        (tmp_path / "weights" / name).write_bytes(name.encode())
    return tmp_path


def request_for(folder: Path, **others: object) -> Request:
    sides = [{path.stem: path for path in sorted((folder / side).iterdir())} for side in ("ours", "real")]
    return Request(sides[0], folder / "out", folder / "weights", sides[1], **others)


def keep(folder: Path, extractor: str, side: str, rows: list[dict[str, np.ndarray]]) -> None:
    """Put features where a run would have kept them."""
    weights = file_fingerprint(folder / "weights" / EXTRACTORS[extractor].weights)
    place = folder / "out" / "features" / f"{extractor}-{weights[:12]}"
    place.mkdir(parents=True, exist_ok=True)
    for path, arrays in zip(sorted((folder / side).iterdir()), rows, strict=True):
        np.savez(place / f"{fingerprint([file_fingerprint(path), None, None])[:24]}.npz", **arrays)


def test_features_that_were_kept_are_scored_without_any_network(folder):
    for side, name in (("ours", "ours"), ("real", "theirs")):
        logits, frames = GOLDEN[f"i3d_{name}"], GOLDEN[f"inception_{name}"].reshape(12, 3, 64)
        classes = probabilities(GOLDEN["class_logits"]).reshape(12, 3, -1)
        keep(folder, "i3d", side, [{"stretched": row, "cropped": 2 * row} for row in logits])
        keep(
            folder,
            "inception",
            side,
            [{"features": f, "probabilities": p} for f, p in zip(frames, classes, strict=True)],
        )
    found = measure_quality(request_for(folder, python="no-such-python"), chosen_metrics("fvd,fvd-c,fid,is"))
    assert found.absent == {}
    values = {cell.metric: cell.interval.mean for cell in found.cells}
    assert list(values) == ["FVD", "FVD-C", "FID", "IS", "IS Std."]
    assert values["FVD"] == pytest.approx(float(GOLDEN["fvd"]), rel=1e-5)
    assert values["FVD-C"] == pytest.approx(4 * float(GOLDEN["fvd"]), rel=1e-5)
    assert values["FID"] == pytest.approx(float(GOLDEN["fid"]), rel=1e-4)
    assert all(cell.clips == 12 for cell in found.cells)


def test_a_changed_video_or_other_weights_are_not_served_from_what_was_kept(folder):
    rows = [{"stretched": row, "cropped": row} for row in GOLDEN["i3d_ours"]]
    for side in ("ours", "real"):
        keep(folder, "i3d", side, rows)
    request = request_for(folder, python="no-such-python")
    assert measure_quality(request, chosen_metrics("fvd")).cells
    write_video(torch.full((2, 16, 16, 3), 250, dtype=torch.uint8), folder / "ours" / "03.mp4")
    assert "no-such-python" in measure_quality(request, chosen_metrics("fvd")).absent["FVD"]
    write_video(torch.full((2, 16, 16, 3), 30, dtype=torch.uint8), folder / "ours" / "03.mp4")
    assert measure_quality(request, chosen_metrics("fvd")).cells  # as it was
    (folder / "weights" / "i3d.safetensors").write_bytes(b"others")
    assert "FVD" in measure_quality(request, chosen_metrics("fvd")).absent


VBENCH_STAND_IN = """
import json, pathlib, sys
import numpy as np
for line in sys.stdin:
    asked = json.loads(line)
    if "load" in asked:
        network = pathlib.Path(asked["weights"]) / "flicker" / "network.pth"
        answer = {"version": "vbench 0.1.5"}
    else:
        network.parent.mkdir(exist_ok=True)
        if not network.exists():
            network.write_text("as fetched")
        values = {name: np.full(len(asked["files"]), 0.5) for name in asked["dimensions"]}
        np.savez(asked["out"], **values)
        answer = {}
    print(json.dumps(answer), flush=True)
"""


def test_vbenchs_answers_are_kept_by_its_weights_and_with_its_version(folder):
    """They were kept by the videos alone: other weights were served the old answers, and the version was not said."""
    (folder / "weights" / "vbench").mkdir()
    (folder / "vbench.py").write_text(VBENCH_STAND_IN)
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {folder / 'vbench.py'}\n")
    python.chmod(0o755)
    asked = chosen_metrics("flicker")
    first = measure_quality(request_for(folder, vbench_python=str(python)), asked)
    assert [cell.interval.mean for cell in first.cells] == [0.5]
    again = measure_quality(request_for(folder, vbench_python="no-such-python"), asked)  # what it fetched is counted
    assert again.cells == first.cells
    assert again.versions == first.versions
    assert first.versions["vbench"].startswith("vbench 0.1.5, weights ")
    (folder / "weights" / "vbench" / "flicker" / "network.pth").write_text("another")
    other = measure_quality(request_for(folder, vbench_python="no-such-python"), asked)
    assert "no-such-python" in other.absent["Flicker"]


def test_what_is_missing_is_one_sentence_and_stops_nothing_else(folder):
    found = measure_quality(Request({"a": folder / "ours" / "00.mp4"}, folder / "out"), METRIC_NAMES)
    assert found.cells == []
    assert found.absent.keys() == {kind.metric.name for kind in METRIC_NAMES.values()}
    assert "--reference" in found.absent["FVD"]
    assert "--captions" in found.absent["CS-T"]
    assert "huggingface.co/openai" in found.absent["CS-I"]
    assert "--weights" in found.absent["IS"]
    with pytest.raises(InputError, match=r"docs/quality\.md"):
        weights_of("i3d", folder)
    with pytest.raises(InputError, match="cs-t"):
        chosen_metrics("fvd,nonsense")
    assert list(chosen_metrics("vbench")) == ["aesthetic", "background", "imaging", "overall", "subject", "style"]


@pytest.mark.skipif(importlib.util.find_spec("vbench") is not None, reason="vbench is installed here")
def test_an_absent_package_is_one_sentence(folder):
    with pytest.raises(InputError, match="pip install vbench"), working("vbench", folder):
        raise AssertionError("nothing to talk to")
    run = CliRunner().invoke(app, ["quality", str(folder / "ours"), "--metrics", "cs-i", "-o", str(folder / "q")])
    assert run.exit_code == 1
    assert "CS-I: not measured." in run.output
    assert "clip-vit-large-patch14" in json.loads((folder / "q" / "quality.json").read_text())["absent"]["CS-I"]


def test_a_worker_that_dies_is_a_sentence(tmp_path):
    quiet = tmp_path / "python"
    quiet.write_text("#!/bin/sh\necho out of memory >&2\nexit 3\n")
    quiet.chmod(0o755)
    with pytest.raises(InputError, match="out of memory"), working("i3d", tmp_path, str(quiet)):
        raise AssertionError("nothing to talk to")


def test_the_worker_knows_nothing_of_ours():
    text = WORKER.read_text()
    assert "import curvedray" not in text
    assert "from curvedray" not in text


def test_captions_come_from_tables_objects_and_the_videos_themselves(tmp_path, filmed):
    (tmp_path / "a.json").write_text('{"x": "a hill"}')
    (tmp_path / "a.csv").write_text("video,caption\nsome/x.mp4,a hill\n")
    (tmp_path / "a.jsonl").write_text('{"id": "x", "caption": "a hill"}\n')
    for ending in ("json", "csv", "jsonl"):
        assert read_captions(tmp_path / f"a.{ending}") == {"x": "a hill"}
    (tmp_path / "a.json").write_text('{"x": 3}')
    with pytest.raises(InputError, match="both text"):
        read_captions(tmp_path / "a.json")
    write_video(torch.zeros(2, 16, 16, 3, dtype=torch.uint8), tmp_path / "none.mp4")
    noted = noted_captions({"film": filmed / "film.mp4", "none": tmp_path / "none.mp4"})
    assert list(noted) == ["film"]


# -- with real networks


@pytest.mark.slow
def test_clip_scores_with_a_small_random_clip(tmp_path):
    """The whole command: a real CLIP of random weights, in a process of its own, beside transformers' own processor."""
    from transformers import CLIPConfig, CLIPModel, CLIPTokenizer
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = CLIPConfig(
        text_config=small | {"vocab_size": 60, "bos_token_id": 0, "eos_token_id": 1, "max_position_embeddings": 20},
        vision_config=small | {"image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    model = CLIPModel(config).eval()
    words = [
        "<|startoftext|>",
        "<|endoftext|>",
        *"abcdefghijklmnopqrstuvwxyz",
        *(f"{c}</w>" for c in "abcdefghijklmnopqrstuvwxyz"),
    ]
    (tmp_path / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(words)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    for name in ("clip", "longclip"):
        model.save_pretrained(tmp_path / "weights" / name)
        tokenizer.save_pretrained(tmp_path / "weights" / name)
    frames = torch.randint(0, 256, (3, 40, 60, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    write_video(frames, tmp_path / "videos" / "x.mp4", crf=0)
    (tmp_path / "captions.json").write_text('{"x": "a red ball"}')
    command = ["quality", str(tmp_path / "videos"), "--weights", str(tmp_path / "weights"), "--metrics", "cs-t,cs-i"]
    command += ["--captions", str(tmp_path / "captions.json"), "-o", str(tmp_path / "out"), "--json"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    table = {cell["metric"]: cell["interval"]["mean"] for cell in json.loads(run.stdout)["table"]}

    from curvedray.media.video import read_video

    seen = read_video(tmp_path / "videos" / "x.mp4").frames.numpy()
    processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=32)
    pixels = torch.from_numpy(np.stack(processor(list(seen))["pixel_values"]))
    with torch.inference_mode():
        pictures = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)
        text = model.text_model(**tokenizer("a red ball", return_tensors="pt")).pooler_output
        caption = model.text_projection(text)
    cosine = torch.nn.functional.cosine_similarity
    assert table["CS-T"] == pytest.approx(100 * cosine(pictures, caption).clamp_min(0).mean().item(), abs=1e-2)
    assert table["CS-I"] == pytest.approx(
        100 * cosine(pictures[:-1], pictures[1:]).clamp_min(0).mean().item(), abs=1e-2
    )


ELSEWHERE = os.environ.get("CURVEDRAY_QUALITY_PYTHON", sys.executable)
VBENCH = os.environ.get("CURVEDRAY_VBENCH_PYTHON")  # of its own environment, whose pins clash with the others'


@pytest.mark.slow
@pytest.mark.skipif(
    "CURVEDRAY_QUALITY_PYTHON" not in os.environ,
    reason="CURVEDRAY_QUALITY_PYTHON names no Python with cd-fvd, torchmetrics, torch-fidelity and lpips",
)
def test_real_networks_of_random_weights_answer(tmp_path):
    """I3D, Inception, LPIPS and, where it is installed, VBench's one dimension without weights, by the command."""
    import subprocess

    make = f"""
import torch, torchvision, torch_fidelity.feature_extractor_inceptionv3 as inception
from cdfvd.third_party.i3d.pytorch_i3d import InceptionI3d
from safetensors.torch import save_file
class Seeded(inception.FeatureExtractorInceptionV3):
    def load_state_dict(self, *args, **kwargs): pass
inception.load_state_dict_from_url = lambda *args, **kwargs: {{}}
torch.manual_seed(0)
models = {{"i3d": InceptionI3d(400), "inception": Seeded("s", ["2048"]), "alexnet": torchvision.models.alexnet()}}
for name, model in models.items():
    save_file({{k: v.contiguous() for k, v in model.state_dict().items()}}, f"{tmp_path}/weights/{{name}}.safetensors")
"""
    (tmp_path / "weights" / "vbench").mkdir(parents=True)
    subprocess.run([ELSEWHERE, "-c", make], check=True, capture_output=True)
    for side in ("ours", "real"):
        for index in range(2):
            seed = torch.Generator().manual_seed(index + 10 * (side == "real"))
            frames = torch.randint(0, 256, (10, 32, 48, 3), dtype=torch.uint8, generator=seed)
            write_video(frames, tmp_path / side / f"{index}.mp4")
    command = ["quality", str(tmp_path / "ours"), "--reference", str(tmp_path / "real"), "--python", ELSEWHERE]
    command += ["--weights", str(tmp_path / "weights"), "--metrics", "fvd,fvd-c,fid,is,lpips"]
    if VBENCH:
        command[-1] += ",flicker"
        command += ["--vbench-python", VBENCH]
    run = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out"), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    values = {cell["metric"]: cell["interval"]["mean"] for cell in found["table"]}
    assert values.keys() - {"Flicker"} == {"FVD", "FVD-C", "FID", "IS", "IS Std.", "LPIPS"}
    assert values["FVD"] > 0
    assert values["FVD-C"] != values["FVD"]
    assert values["FID"] > 0
    assert values["IS"] >= 1
    assert values["LPIPS"] > 0
    assert not VBENCH or 0 < values["Flicker"] < 1
    same = [
        *command[:3],
        str(tmp_path / "ours"),
        *command[4:8],
        "--metrics",
        "fvd,fid,lpips",
        "-o",
        str(tmp_path / "same"),
    ]
    zero = json.loads(CliRunner().invoke(app, [*same, "--json"]).stdout)["table"]
    assert all(cell["interval"]["mean"] == pytest.approx(0, abs=1e-6) for cell in zero)
    np.save(tmp_path / "short.npy", np.zeros((4, 32, 32, 3), np.uint8))
    with working("i3d", tmp_path / "weights" / "i3d.safetensors", ELSEWHERE) as worker:  # noqa: SIM117
        with pytest.raises(ClipFailure, match="9 frames"):
            worker.ask(video=str(tmp_path / "short.npy"), out=str(tmp_path / "none.npz"))
