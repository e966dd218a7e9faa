"""Imports point one way, only wan.py opens the door to diffusers, and `import curvedray` stays light."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "curvedray"

# From the ground up. A room (a folder, or a file that is one) may import only rooms listed before it.
TABLE = """
errors extras lazy_names inputs files locks configs tables engine
cameras moves
media formats
encoding radial
world models adapter
data generation training
evaluate bench paper
transfer demo doctor app
cli __main__
"""
ROOMS = TABLE.split()
RANK = {name: rank for rank, name in enumerate(ROOMS)}
DOORS = {
    "diffusers": {"models.wan"},
    "transformers": {
        *("models.wan", "evaluate.estimators.captioner", "evaluate.estimators.depth_anything"),
        "evaluate.quality.worker",
    },
    "ray": {"engine.on_ray"},
}
HEAVY = [
    "scipy",
    "diffusers",
    "transformers",
    "matplotlib",
    "av",
    "pydantic",
    "typer",
    "rich",
    "PIL",
    "pycolmap",
    "ray",
]


def imported(path: Path, name: str, modules: dict[str, Path]) -> Iterator[str]:
    """Dotted names that a file imports, also inside functions; `from a import b` gives a.b where b is a module."""
    package = f"curvedray.{name}".split(".") if path.name == "__init__.py" else f"curvedray.{name}".split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [base, node.module]))
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield whole if whole.removeprefix("curvedray.") in modules else base


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """module -> all that it imports. Modules are named below curvedray; the package's own door is not one of them."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: set(imported(path, name, modules)) for name, path in modules.items()}


@pytest.fixture(scope="module")
def graph(imports) -> dict[str, set[str]]:
    """module -> those of our own that it imports."""
    return {
        name: {i.removeprefix("curvedray.") for i in found if i.startswith("curvedray.")}
        for name, found in imports.items()
    }


def test_imports_point_one_way(graph):
    strangers = {name.split(".")[0] for name in graph} | {i.split(".")[0] for found in graph.values() for i in found}
    assert strangers <= RANK.keys(), f"new: add to ROOMS in {Path(__file__).name}, each after all that it imports"
    upwards = [
        f"{name} imports {target}, which stands above it"
        for name, targets in graph.items()
        for target in targets
        if RANK[target.split(".")[0]] > RANK[name.split(".")[0]]
    ]
    assert upwards == []


def test_no_room_is_listed_twice():
    assert len(RANK) == len(ROOMS)


def test_no_module_imports_itself_through_others(graph):
    """Within a folder, too, imports never come back round."""
    done: set[str] = set()
    walking: list[str] = []

    def walk(name):
        assert name not in walking, " -> ".join([*walking[walking.index(name) :], name])
        if name in done or name not in graph:
            return
        walking.append(name)
        for target in sorted(graph[name]):
            walk(target)
        done.add(walking.pop())

    for name in graph:
        walk(name)


@pytest.mark.parametrize("foreign", DOORS)
def test_foreign_models_come_in_by_one_door_each(imports, foreign):
    users = {name for name, found in imports.items() if foreign in {i.split(".")[0] for i in found}}
    assert users <= DOORS[foreign], f"{foreign} comes in through {', '.join(sorted(DOORS[foreign]))} only"


def test_every_public_name_is_there_and_can_be_found_by_looking():
    import curvedray

    assert set(curvedray.__all__) <= set(dir(curvedray))
    assert all(getattr(curvedray, name).__name__ == name for name in curvedray.__all__)


def test_help_does_not_wait_for_torch():
    script = "import sys, curvedray.cli; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.parametrize("words", [["cameras", "list"], ["cameras", "formats"]])
def test_what_there_is_to_choose_from_is_listed_without_torch(words):
    script = f"""
import sys
from typer.testing import CliRunner
from curvedray.cli import app
run = CliRunner().invoke(app, {words})
print(run.exit_code, len(run.output) > 1000, sorted({{"torch", "numpy", "scipy"}} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "0 True []\n"


def test_importing_curvedray_brings_in_nothing_heavy_and_is_quick():
    script = f"""
import json, sys, time
import torch
before, start = set(sys.modules), time.process_time()
from curvedray import Cameras, InputError, Lens, TokenGrid, curved_ray_attention, expected_phasor
took = time.process_time() - start
brought = {{name.split(".")[0] for name in set(sys.modules) - before}}
print(json.dumps([took, sorted(brought & set({HEAVY}))]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    took, brought = json.loads(run.stdout)
    assert brought == []
    assert took < 1.0, f"{took:.2f} s of processor time beyond torch"


def test_the_architecture_page_names_rooms_in_their_order_and_files_that_exist():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    table, walks = page.split("## Four walks")
    named = re.findall(r"`([a-z_]+)(?:/|\.py)`", table)
    rooms = [room for room in named if room in RANK]
    assert rooms == sorted(rooms, key=RANK.__getitem__)
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} <= {*rooms}
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", walks):
        assert (PACKAGE / path).exists(), f"docs/architecture.md names {path}"
