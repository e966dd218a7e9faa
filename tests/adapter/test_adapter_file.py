"""Adapters on disk: round trips, refusals with the remedy, UCPE's checkpoints, and how large each method is."""

import copy
import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_wan import attached, path, seen, tiny_folder, tiny_transformer
from torch import Tensor
from typer.testing import CliRunner

from curvedray.adapter.adapter import Adapter
from curvedray.adapter.branches import GeometricAttention
from curvedray.adapter.config import METHODS, RAY, AdapterConfig
from curvedray.adapter.cost import parameter_table
from curvedray.adapter.file import load_adapter, save_adapter
from curvedray.adapter.ucpe import ucpe_heads
from curvedray.adapter.view import View, camera_map
from curvedray.cameras import Cameras, Lens, TokenGrid
from curvedray.cli import app
from curvedray.encoding.relative import relative_encoding
from curvedray.errors import InputError
from curvedray.models.wan import SHAPES, Wan, wan_transformer

DATA = Path(__file__).parents[1] / "goldens"


@pytest.mark.parametrize("method", METHODS)
def test_save_and_load_round_trip(method: str, tmp_path: Path) -> None:
    transformer = tiny_transformer()
    adapter = attached(method, transformer, woken=True)
    adapter.accepts_radial_maps, adapter.notes = True, {"steps": 3}
    with torch.no_grad():
        saved = seen(adapter, transformer, path())
    adapter.detach()
    file = save_adapter(adapter, tmp_path / "adapter.safetensors")
    again = load_adapter(file, tiny_transformer())
    assert (again.config, again.notes, again.accepts_radial_maps) == (adapter.config, adapter.notes, True)
    with torch.no_grad():
        again.attach(transformer)
        torch.testing.assert_close(seen(again, transformer, path()), saved, rtol=0, atol=1e-5)
    assert file.read_bytes() == save_adapter(again, tmp_path / "b.safetensors").read_bytes()


def test_what_does_not_fit_is_refused_with_the_remedy(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    file = save_adapter(Adapter(transformer), tmp_path / "adapter.safetensors")
    with pytest.raises(InputError, match=r"blocks.*trained on"):
        load_adapter(file, tiny_transformer(layers=4))
    other = tiny_transformer(seed=1)
    with pytest.raises(InputError, match="any_weights"):
        load_adapter(file, other)
    load_adapter(file, other, any_weights=True).attach(other, any_weights=True)
    load_adapter(file, tiny_transformer().to(torch.bfloat16))

    weights, header = load_file(file), {"curvedray": _header(file)}
    missing = {k: v for k, v in weights.items() if k != "blocks.0.q_proj.bias"}
    for name, tensors, note, complaint in (
        ("missing", missing, header, r"no blocks\.0\.q_proj\.bias"),
        ("extra", weights | {"more": torch.zeros(1)}, header, "an extra more"),
        ("shape", weights | {"blocks.0.q_proj.bias": torch.zeros(3)}, header, r"shape \(24,\)"),
        ("foreign", weights, None, "header"),
        ("typo", weights, {"curvedray": _header(file).replace('"heads"', '"haeds"')}, "haeds"),
        ("list", weights, {"curvedray": "[1]"}, "header"),
        ("hollow", weights, {"curvedray": '{"format": 1, "base": null}'}, "field required"),
        ("future", weights, {"curvedray": _header(file).replace('"format": 1', '"format": 2')}, "format 1"),
    ):
        save_file(tensors, tmp_path / f"{name}.safetensors", metadata=note)
        with pytest.raises(InputError, match=complaint):
            load_adapter(tmp_path / f"{name}.safetensors", transformer)
    (tmp_path / "cut.safetensors").write_bytes(file.read_bytes()[:-100])
    for name in ("cut.safetensors", "absent.safetensors"):
        with pytest.raises(InputError, match=name):
            load_adapter(tmp_path / name, transformer)


def _header(file: Path) -> str:
    size = int.from_bytes(file.read_bytes()[:8], "little")
    return str(json.loads(file.read_bytes()[8 : 8 + size])["__metadata__"]["curvedray"])


def test_config_round_trips_and_refuses_what_it_does_not_know() -> None:
    config = AdapterConfig(
        "endpoint",
        curved_blocks=(1, 2),
        width=48,
        heads=2,
        query_rotation=True,
        value_rotation=True,
        interval_feature=True,
        rays_beside=True,
    )
    assert AdapterConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    # A file from before values could be turned does not say whether they are.
    older = {name: value for name, value in config.to_json().items() if name != "value_rotation"}
    assert AdapterConfig.from_json(older) == dataclasses.replace(config, value_rotation=False)
    assert config.path_points == 2
    for record, complaint in (
        ({"methd": "crepe"}, "methd"),
        ({"method": "crepe2"}, "one of none, crepe"),
        ({"heads": "two"}, "heads"),
        ({"periods": [[8, 1]]}, "periods"),
        ({"orientation": 1}, "orientation"),
        ({"heads": True}, "heads"),
        ({"heads": 0}, "heads: expected 1 to"),
        ({"heads": 10**40}, "heads"),
        ({"breakpoints": 10**9}, "breakpoints"),
        ({"width": 2.5}, "width"),
        ({"log_radius": [float("nan"), 3.0]}, "finite"),
        ({"log_radius": [0.0, 1e9]}, "log_radius"),
        ({"periods": [[8, 0], [8, 1], [80, 2], [8, 1]]}, "periods"),
        ({"curved_blocks": [1]}, "curved_blocks"),
        ({"curved_blocks": [-1, 2]}, "curved_blocks"),
    ):
        with pytest.raises(InputError, match=complaint):
            AdapterConfig.from_json(record)
    assert AdapterConfig().curved(30) == range(10, 20)
    assert AdapterConfig().curved(8) == range(2, 6)
    assert AdapterConfig(supervise="middle").supervised(30) == (15,)
    assert len(AdapterConfig(supervise="all").supervised(30)) == 10


@pytest.mark.parametrize(
    "wrong", [{"heads": float("nan")}, {"heads": "2"}, {"log_radius": 3.0}, {"width": float("inf")}]
)
def test_a_config_made_in_python_is_held_to_the_same_laws(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    config = AdapterConfig()
    object.__setattr__(config, name, value)  # past the test run's own type checks, as a user's call is
    with pytest.raises(InputError, match=rf"AdapterConfig\.{name}"):
        config.__post_init__()


def test_a_branch_wider_than_its_backbone_is_refused_before_it_is_made() -> None:
    """A hundred heads of 24 channels on 48 would be fifty times the backbone's attention."""
    with pytest.raises(InputError, match=r"no wider than its backbone's 48 channels.*fewer heads"):
        Adapter(tiny_transformer(), AdapterConfig(heads=100))


# -- UCPE


def golden(name: str) -> dict[str, np.ndarray]:
    return dict(np.load(DATA / f"{name}.npz"))


def test_ucpe_branch_reproduces_the_public_codes_forward() -> None:
    data = {k: torch.from_numpy(np.asarray(v)) for k, v in golden("ucpe_adapter_relray_absmap").items()}
    grid = TokenGrid(int(data["frames"]), int(data["patches_y"]), int(data["patches_x"]))
    config = AdapterConfig("ucpe", width=32, heads=2, ucpe_conventions=True)
    branch = GeometricAttention(config, RAY, 48)
    named = {name: data["w_" + name.replace(".", "_")] for name in branch.state_dict()}
    branch.load_state_dict(named)
    ray_from_world = data["viewmats"]
    encoding = relative_encoding(ray_from_world, torch.linalg.inv(ray_from_world), grid, 16)
    for maps, expected in ((data["cam_emb"], data["out"]), (None, data["out_without_cam_emb"])):
        view = View(grid, (), maps, {RAY: encoding}, None)
        with torch.no_grad():
            torch.testing.assert_close(branch(data["x"], view)[0], expected, rtol=1e-4, atol=2e-5)


def test_ucpe_maps_of_its_own_making_are_the_ones_its_weights_get() -> None:
    data = golden("ucpe_raymats_uplat")
    grid = TokenGrid(3, int(data["height"]), int(data["width"]))
    for index in range(2):
        lens = Lens.from_fov(float(data["x_fov_deg"][index]), float(data["xi"][index]), grid.cols, grid.rows)
        cameras = Cameras(lens, torch.from_numpy(data["c2w"][index]))
        maps = camera_map(AdapterConfig("ucpe", ucpe_conventions=True), cameras, grid)
        assert maps is not None
        expected = np.concatenate([data["up_map"][index], data["lat_map"][index]], -1).reshape(-1, 3)
        np.testing.assert_allclose(maps.numpy(), expected, atol=2e-4)


def ucpe_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our names as UCPE's checkpoints have them, beside a tensor that is not the camera's."""
    parts = [(name.split(".", 2), tensor) for name, tensor in weights.items()]
    stored = {f"pipe.dit.blocks.{index}.cam_self_attn.{rest}": tensor for (_, index, rest), tensor in parts}
    return stored | {"pipe.dit.blocks.0.self_attn.q.weight": torch.zeros(2)}


def test_ucpe_checkpoints_are_adapters_known_by_their_keys(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    source = attached("ucpe", transformer, woken=True, ucpe_conventions=True)
    with torch.no_grad():
        expected = seen(source, transformer, path())
    source.detach()
    stored = ucpe_names(source.state_dict())
    save_file(stored, tmp_path / "ucpe.safetensors")
    adapter = load_adapter(tmp_path / "ucpe.safetensors", transformer)
    with torch.no_grad():
        adapter.attach(transformer)
        torch.testing.assert_close(seen(adapter, transformer, path()), expected)
    adapter.detach()
    del stored["pipe.dit.blocks.2.cam_self_attn.q_proj.bias"]
    save_file(stored, tmp_path / "short.safetensors")
    with pytest.raises(InputError, match=r"no blocks\.2\.q_proj\.bias"):
        load_adapter(tmp_path / "short.safetensors", transformer)


def test_ucpes_weights_work_from_the_command_line(tmp_path: Path) -> None:
    tiny_folder(tmp_path / "wan")
    transformer = Wan.load(tmp_path / "wan").transformer
    weights = attached("ucpe", transformer, woken=True, ucpe_conventions=True).state_dict()
    save_file(ucpe_names(weights), tmp_path / "ucpe.safetensors")
    options = [
        "--frames",
        "5",
        "--size",
        "48x32",
        "--steps",
        "1",
        "--move",
        "orbit left 40deg",
        "--lens",
        "fisheye-160",
    ]
    model = ["--model", str(tmp_path / "wan"), "--adapter", str(tmp_path / "ucpe.safetensors")]
    result = CliRunner().invoke(app, ["generate", "a cat", *model, *options, "-o", str(tmp_path / "cat.mp4")])
    assert result.exception is None, result.output
    assert (tmp_path / "cat.mp4").stat().st_size > 0


@pytest.mark.parametrize("ending", ["pt", "ckpt", "pth"])
def test_pickled_weights_are_refused_unopened_with_the_lines_that_convert_them(tmp_path: Path, ending: str) -> None:
    torch.save({"state_dict": {"a": torch.zeros(2)}}, tmp_path / f"ucpe.{ending}")
    with pytest.raises(InputError, match=r"run code.*torch\.load.*weights_only=True.*save_file.*ucpe\.safetensors"):
        load_adapter(tmp_path / f"ucpe.{ending}", tiny_transformer())


@pytest.mark.parametrize(("shape", "width", "heads"), [("wan2.1-1.3b", 192, 1), ("wan2.1-14b", 640, 5)])
def test_ucpes_heads_are_worked_out_from_its_backbone(shape: str, width: int, heads: int) -> None:
    transformer = wan_transformer("meta", **(SHAPES[shape] | {"num_layers": 1}))
    assert ucpe_heads(transformer, width, "checkpoint") == heads
    with pytest.raises(InputError, match="divide the backbone's"):
        ucpe_heads(transformer, width - 8, "checkpoint")


# -- files that nobody here wrote


def broken_files(file: Path, count: int) -> Iterator[bytes]:
    """An adapter's bytes after one or two accidents: in the safetensors header, in ours, in dtypes, in length."""
    whole = file.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    outer, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    draw = random.Random(0)
    odd: list[Any] = [None, True, -1, 0, 1e308, 2**70, "", "x", [], {}, [[]], {"a": [1]}, "\ud800", "9" * 5000, [0, 8]]
    for _ in range(count):
        header = copy.deepcopy(outer)
        inner = json.loads(header["__metadata__"]["curvedray"])
        text = None
        accident = draw.choice(
            ("value", "value", "value", "drop", "dtype", "tensor", "text", "metadata", "bytes", "cut")
        )
        if accident in ("value", "drop"):
            place = draw.choice([inner, inner, inner["config"], inner["config"], inner["base"]])
            key = draw.choice(list(place))
            if accident == "value":
                place[key] = draw.choice(odd)
            else:
                del place[key]
        elif accident in ("dtype", "tensor"):
            entry = header[draw.choice([key for key in header if key != "__metadata__"])]
            if accident == "dtype":
                entry["dtype"] = draw.choice(["F64", "I32", "U8", "BOOL", "F8_E4M3", "BF16", "F16", "I64", "C64", "X"])
            else:
                entry[draw.choice(list(entry))] = draw.choice(odd)
        elif accident == "text":
            text = json.dumps(inner)
            at = draw.randrange(len(text))
            text = text[:at] + draw.choice(['"', "{", "NaN", "", "[" * 3000, "\x00", "\x1b[31m"]) + text[at + 1 :]
        elif accident == "metadata":
            header["__metadata__"] = draw.choice([{}, {"curvedray": "1"}, {"curvedray": "null"}, {"x": "y"}, 3])
        if accident != "metadata":
            header["__metadata__"]["curvedray"] = json.dumps(inner) if text is None else text
        packed = json.dumps(header).encode()
        result = bytearray(len(packed).to_bytes(8, "little") + packed + data)
        if accident == "bytes":
            for _ in range(draw.randint(1, 8)):
                result[draw.randrange(min(len(result), 3000))] = draw.randrange(256)
        yield bytes(result[: draw.randrange(len(result))] if accident == "cut" else result)


def test_no_damaged_adapter_is_a_traceback(tmp_path: Path) -> None:
    """Some accidents leave an adapter that can still be read; every other one is named."""
    transformer = tiny_transformer()
    file = save_adapter(Adapter(transformer), tmp_path / "adapter.safetensors")
    refused = 0
    for content in broken_files(file, 150):
        (tmp_path / "broken.safetensors").write_bytes(content)
        try:
            load_adapter(tmp_path / "broken.safetensors", transformer)
        except InputError:
            refused += 1
    assert refused > 75


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    transformer = tiny_transformer()
    adapter = Adapter(transformer)
    with torch.no_grad():
        adapter.blocks[0].q_proj.bias[3] = float("nan")
    with pytest.raises(InputError, match=r"blocks\.0\.q_proj\.bias.*NaN"):
        load_adapter(save_adapter(adapter, tmp_path / "nan.safetensors"), transformer)


# -- sizes


def test_parameter_counts_at_wan_1_3b() -> None:
    counts = {row.method: row.parameters for row in parameter_table("wan2.1-1.3b")}
    assert list(counts) == list(METHODS)
    assert counts["none"] == 0
    assert counts["ucpe"] == 30 * (3 * (1536 * 192 + 192) + (192 * 1536 + 1536) + (3 * 1536 + 1536)) == 35_637_120
    assert counts["crepe"] - counts["ucpe"] == 2 * 1536 + (1536 * 384 + 384) + (384 * 2 + 2)
    assert counts["crepe"] == counts["endpoint"] == counts["point"]
    assert 5.5e6 < counts["depth_concat"] - counts["crepe"] < 6.5e6
