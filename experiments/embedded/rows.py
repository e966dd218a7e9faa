"""The adapters of the embedded model, trained alike: the rows of its table and of the paper's lens comparison.

    python experiments/embedded/rows.py ucpe --runs runs/embedded

Trains one row on one core, or goes on with it; a row of `curvedray paper run lenses -o runs/embedded` is the same run.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from curvedray.paper.experiments.lenses import experiment as lenses
from curvedray.paper.run import train_row, with_folder
from curvedray.training.recipe import Recipe
from curvedray.training.recipes import recipe


def rows() -> dict[str, Recipe]:
    """By name: the lens comparison's, and two of our own."""
    compared = {name: row for name, row in lenses.rows.items() if name != "none"}
    own = {
        "crepe_rotation": recipe("embedded_rotation"),
        "crepe_mix": recipe("embedded_mixforcing_video"),
    }
    return compared | {name: replace(row, name=name) for name, row in own.items()}


def weights_of(name: str, runs: Path) -> Path:
    """Where a row's adapter is once it is trained."""
    return with_folder(rows()[name], runs)[1] / "adapter.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=list(rows()))
    parser.add_argument("--runs", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train_row(*with_folder(rows()[options.row], options.runs))


if __name__ == "__main__":
    main()
