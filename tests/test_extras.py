"""The encoding takes four packages; whatever else is missing is one sentence with the command that installs it."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    names = {re.split(r"[^\w.-]", wanted)[0].lower() for wanted in requirements}
    return names - {"curvedray"}


def with_all_they_take(packages: set[str]) -> set[str]:
    """These packages and every one they need in turn, as installed here."""
    whole, waiting = set(), set(packages)
    while waiting:
        name = waiting.pop()
        whole.add(name)
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        waiting |= declared([i for i in requirements if "extra ==" not in i]) - whole
    return whole


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python as if curvedray had been installed without extras."""
    there = {re.sub("[-_.]+", "-", name) for name in with_all_they_take(declared(PROJECT["dependencies"]))}
    owners = importlib.metadata.packages_distributions()
    absent = {
        module
        for module, names in owners.items()
        if not {re.sub("[-_.]+", "-", name).lower() for name in names} & (there | {"curvedray"})
    }
    assert {"diffusers", "scipy", "typer", "PIL", "safetensors"} <= absent
    script = BARE.format(absent=absent) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)


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


@pytest.mark.parametrize("name", ["read_cameras", "trajectory", "evaluate"])
def test_a_public_name_without_its_packages_says_what_to_install(name):
    run = bare(f"import curvedray\ntry:\n    curvedray.{name}\nexcept curvedray.InputError as error:\n    print(error)")
    assert "pip install 'curvedray[generate]'" in run.stdout or (name == "read_cameras" and not run.stderr), run.stderr


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
