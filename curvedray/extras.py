"""Packages that only some of the work takes, and the extra that brings each: `pip install 'curvedray[generate]'`.

The encoding alone takes torch, numpy, einops and jaxtyping. A room that takes more says so with `needed`, so that a
missing package is one sentence with the command that installs it.
"""

from importlib.util import find_spec

from curvedray.errors import InputError

# extra -> what it is for, and the packages it brings by the names that pip knows
EXTRAS = {
    "generate": (
        "the commands, camera files, videos and generation",
        ("av", "jinja2", "pillow", "pydantic", "rich", "safetensors", "scipy", "typer"),
    ),
    "wan": ("Wan", ("accelerate", "diffusers", "ftfy", "sentencepiece", "transformers")),
    "train": ("training", ("accelerate", "fsspec")),
    "sfm": ("COLMAP files, and scoring videos with structure from motion", ("pycolmap",)),
    "ray": ("jobs on many workers and machines", ("ray",)),
    "datasets": ("data sets in Hugging Face's shards", ("datasets",)),
    "exr": ("OpenEXR pictures of distances", ("openexr",)),
    "app": ("the studio", ("starlette", "uvicorn")),
    "plots": ("the plots of examples/ and benchmarks/", ("matplotlib",)),
    "docs": ("building the documentation", ("mkdocs-material", "mkdocstrings")),
    "dev": ("working on curvedray itself", ("beartype", "hypothesis", "mypy", "pytest", "ruff")),
}
IMPORTED_AS = {"pillow": "PIL", "openexr": "OpenEXR"}  # where a package is imported by another name than pip knows


class MissingExtra(InputError):
    """A package that is not installed, and the command that installs it."""

    def __init__(self, package: str):
        extra = next((name for name, (_, packages) in EXTRAS.items() if package in packages), None)
        fix = f"Run: pip install 'curvedray[{extra}]'" if extra else f"Run: pip install {package}"
        purpose = f"the package {package}, for {EXTRAS[extra][0]}" if extra else f"the package {package}"
        super().__init__(package, purpose, "an environment without it", fix)


def needed(*packages: str) -> None:
    """Refuse to go on without these packages, named as in EXTRAS; nothing is imported."""
    for package in packages:
        if find_spec(IMPORTED_AS.get(package, package)) is None:
            raise MissingExtra(package)


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The sentence for an import that failed, if one of the extras brings what it asked for."""
    root = (error.name or "").split(".")[0]
    package = next((name for name, module in IMPORTED_AS.items() if module == root), root)
    return MissingExtra(package) if any(package in packages for _, packages in EXTRAS.values()) else None
