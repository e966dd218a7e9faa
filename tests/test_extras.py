"""The encoding takes four packages; whatever else is missing is one sentence with the command that installs it."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from curvedray import extras
from curvedray.errors import InputError

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

# As if only these packages, and what they take themselves, had been installed.
BARE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in {absent} else found(name, package)
"""


def declared(requirements: list[str]) -> set[str]:
    """The packages that requirements name, those of our own extras apart."""
    return {str(canonicalize_name(Requirement(wanted).name)) for wanted in requirements} - {"curvedray"}


def with_all_they_take(requirements: list[str]) -> set[str]:
    """These packages and every one they need in turn, as installed here."""
    seen, waiting = set(), [Requirement(wanted) for wanted in requirements]
    while waiting:
        wanted = waiting.pop()
        if (known := (wanted.name, *sorted(wanted.extras))) in seen:
            continue
        seen.add(known)
        try:
            theirs = map(Requirement, importlib.metadata.requires(wanted.name) or [])
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        extras = wanted.extras or {""}
        waiting += [i for i in theirs if i.marker is None or any(i.marker.evaluate({"extra": e}) for e in extras)]
    return {str(canonicalize_name(name)) for name, *_ in seen}


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python as if curvedray had been installed without extras."""
    there = with_all_they_take(PROJECT["dependencies"]) | {"curvedray"}
    owners = importlib.metadata.packages_distributions()
    absent = {module for module, names in owners.items() if not {canonicalize_name(name) for name in names} & there}
    assert {"diffusers", "scipy", "typer", "PIL", "safetensors"} <= absent
    script = BARE.format(absent=absent) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=400)


def test_the_encoding_takes_torch_numpy_einops_and_jaxtyping():
    assert declared(PROJECT["dependencies"]) == {"torch", "numpy", "einops", "jaxtyping"}
    run = bare("""
import torch
from curvedray import Cameras, InputError, Lens, TokenGrid, curved_ray_attention, expected_phasor
grid = TokenGrid(2, 2, 3)
cameras = Cameras(Lens.from_fov(150, 1.0, 96, 64), torch.eye(4).repeat(2, 1, 1))
q, k, v = torch.randn(3, 1, 1, grid.tokens, 24)
mu, sigma = torch.zeros(1, grid.tokens), torch.ones(1, grid.tokens)
print(tuple(curved_ray_attention(q, k, v, cameras, grid, mu, sigma).shape))
""")
    assert run.stdout == "(1, 1, 12, 24)\n", run.stderr[-2000:]


def test_the_command_without_its_packages_says_what_to_install():
    run = bare("import runpy; runpy.run_module('curvedray', run_name='__main__')")
    assert run.returncode == 2
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith("error: typer: expected")
    assert line.endswith("Run: pip install 'curvedray[generate]'")


@pytest.mark.parametrize("name", ["Adapter", "generate", "load_model", "train", "trajectory", "write_video"])
def test_a_public_name_without_its_packages_says_what_to_install(name):
    run = bare(f"import curvedray\ntry:\n    curvedray.{name}\nexcept curvedray.InputError as error:\n    print(error)")
    assert run.stdout.endswith("Run: pip install 'curvedray[generate]'\n"), run.stderr


def test_the_table_is_what_pyproject_declares():
    extra = PROJECT["optional-dependencies"]
    assert extra.keys() - extras.EXTRAS.keys() == {"all"}
    for name, (_, packages) in extras.EXTRAS.items():
        assert set(packages) <= declared(extra[name]), name
        assert name == "dev" or set(packages) == declared(extra[name]), name


def test_needed_names_the_extra(monkeypatch):
    extras.needed("scipy", "pillow")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError) as error:
        extras.needed("scipy", "av")
    assert error.value.fix == "Run: pip install 'curvedray[generate]'"


def test_an_import_that_fails_for_another_reason_is_not_blamed_on_an_extra():
    assert extras.missing_extra(ModuleNotFoundError("No module named 'moon'", name="moon")) is None
    found = extras.missing_extra(ModuleNotFoundError("No module named 'PIL.Image'", name="PIL.Image"))
    assert found is not None
    assert found.name == "pillow"


def test_what_is_pinned_is_what_the_extras_bring():
    lines = (Path(__file__).parents[1] / "constraints.txt").read_text().splitlines()
    pinned = declared([line for line in lines if not line.startswith("#")])
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    wanted = [i for group in groups for i in group if not i.startswith("curvedray[")]
    assert declared(wanted) <= pinned
    assert pinned <= with_all_they_take(wanted)


def test_cameras_files_and_metrics_take_no_extra_until_one_is_needed(tmp_path):
    """Reading cameras and scoring poses work without; a call that needs more says so."""
    code = f"""
import torch, curvedray
file = {str(tmp_path / "mine.json")!r}
lens = curvedray.Lens.from_fov(90.0, 0.0, 96, 64)
curvedray.write_cameras(curvedray.Cameras(lens, torch.eye(4).repeat(3, 1, 1)), file)
print(curvedray.read_cameras(file).frames, curvedray.evaluate.pose_errors.__name__)
try:
    curvedray.evaluate.average_rank({{"ours": {{"error": 1.0}}}}, {{"error": "lower"}})
except curvedray.InputError as error:
    print(error.fix)
"""
    run = bare(code)
    assert run.stdout == "3 pose_errors\nRun: pip install 'curvedray[generate]'\n", run.stderr[-2000:]
