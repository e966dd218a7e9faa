"""Train everything that is embedded in the package, from nothing, and measure it.

    make embedded            or: python experiments/embedded/make.py --runs runs/embedded

Every stage leaves a file and is skipped where it is there, so it can be stopped at any time and started again. What is
finished is put into the package (`git restore curvedray/assets` brings the shipped weights back). Products are taken in
bfloat16 where the machine multiplies it natively.
"""

import argparse
import logging
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.models.embedded.model import ADAPTER, WEIGHTS
from curvedray.training.precision import quick_precision

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
HERE = Path(__file__).parent
CORES = 2
SHIPPED = "embedded_adapter"  # the recipe of the adapter in the package


@dataclass(frozen=True)
class Stage:
    """A command, what it leaves, and where that goes in the package."""

    name: str
    leaves: Path
    command: list[str]
    into: Path | None = None

    def run(self) -> None:
        if not self.leaves.is_file():
            log.info("%s ...", self.name)
            began = time.monotonic()
            subprocess.run(self.command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
            log.info("%s: %.0f minutes", self.name, (time.monotonic() - began) / 60)
        if self.into is not None:
            shutil.copyfile(self.leaves, self.into)


def stages(runs: Path) -> list[list[Stage]]:
    """In order; those of one list run side by side."""
    base, model = runs / "base.safetensors", runs / "embedded.safetensors"
    begun, whole = (runs / name / "embedded.safetensors" for name in ("beginnings", "backbone"))
    estimator, adapter = runs / "estimator" / "estimator.safetensors", runs / "adapter" / "adapter.safetensors"
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(CORES)]

    def train(recipe: str, start: Path, leaves: Path, *python: str, into: Path | None = None) -> Stage:
        own = [f"model={start}", f"data.cache={runs / 'cache'}", f"precision={quick_precision()}"]
        options = [*own, "--resume", "latest", "-o", str(leaves.parent)]
        return Stage(recipe, leaves, [sys.executable, *python, "-m", "curvedray", "train", recipe, *options], into)

    def script(name: str, leaves: Path, *options: str | Path, into: Path | None = None) -> Stage:
        return Stage(name, leaves, [sys.executable, str(HERE / f"{name}.py"), *map(str, options)], into)

    judged = ("--model", model, "--estimator", estimator, "--adapter", f"crepe, maps={adapter}")
    return [
        [script("codec", base, "-o", base)],
        [train("embedded_beginnings", base, begun, *ranks)],
        [train("embedded_backbone", begun, whole, *ranks)],
        [script("decoder", model, "--model", whole, "-o", model, into=WEIGHTS)],
        [
            script("estimator", estimator, "--model", model, "-o", estimator.parent, into=ESTIMATOR),
            train(SHIPPED, model, adapter, into=ADAPTER),
        ],
        [script("score", runs / "scores" / "table.md", *judged, "--kept", runs / "kept", "-o", runs / "scores")],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    runs = parser.parse_args().runs
    for together in stages(runs):
        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(Stage.run, together))
    log.info("all of it is in %s; %s has the scores", WEIGHTS.parent, runs / "scores")


if __name__ == "__main__":
    main()
