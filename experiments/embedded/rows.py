"""The adapters of the embedded model, trained alike: the rows of its table and of the paper's lens comparison.

    python experiments/embedded/rows.py ucpe --runs runs/embedded

Trains one row on one core, or goes on with it.
"""

import argparse
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import torch

from curvedray.paper.listener import Listener
from curvedray.paper.train import train_recipe
from curvedray.training.recipe import Recipe
from curvedray.training.recipes import recipe

MAY_DIFFER = ("name:", "adapter.", "radial_weight:", "mixforcing")  # what a row is; all else must be the same


def rows() -> dict[str, Recipe]:
    """By name: the methods compared, and two of our own."""
    base = recipe("embedded")
    methods = ("recammaster", "ucpe", "crepe")
    compared = {name: replace(base, name=name, adapter=replace(base.adapter, method=name)) for name in methods}
    own = {
        "crepe_rotation": recipe("embedded_rotation"),
        "crepe_mix": recipe("embedded_mixforcing_video"),
    }
    return compared | {name: replace(row, name=name) for name, row in own.items()}


def folder_of(row: Recipe, runs: Path) -> Path:
    """A row's own folder, which another recipe never finds."""
    digest = hashlib.sha256(json.dumps(row.to_json(), sort_keys=True).encode()).hexdigest()[:8]
    return runs / f"{row.name}-{digest}"


def weights_of(name: str, runs: Path) -> Path:
    """Where a row's adapter is once it is trained."""
    return folder_of(rows()[name], runs) / "adapter.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=list(rows()))
    parser.add_argument("--runs", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    row = rows()[options.row]
    if not weights_of(options.row, options.runs).is_file():
        train_recipe(row, folder_of(row, options.runs), options.runs / "cache", "exact", "all", Listener())


if __name__ == "__main__":
    main()
