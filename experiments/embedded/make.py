"""Train everything that is embedded in the package, from nothing, and measure it.

    make embedded            or: python experiments/embedded/make.py --runs runs/embedded

Every stage leaves a file and is skipped where it is there, so it can be stopped at any time and started again. What is
finished is put into the package (`git restore curvedray/assets` brings the shipped weights back).
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

from rows import rows, weights_of

from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.models.embedded.model import ADAPTER, MAP_ADAPTER, WEIGHTS

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
HERE = Path(__file__).parent
CORES = 2
SHIPPED = {"crepe_rotation": ADAPTER, "crepe_mix": MAP_ADAPTER}


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
    python = [sys.executable]
    base, model, estimator = runs / "base.safetensors", runs / "embedded.safetensors", runs / "estimator"
    backbone, longer = (runs / name / "embedded.safetensors" for name in ("backbone", "backbone_longer"))
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(CORES), "-m", "curvedray", "train"]

    def trained(recipe: str, start: Path, leaves: Path) -> Stage:
        shared = [f"model={start}", f"data.cache={runs / 'cache'}", "--resume", "latest", "-o", str(leaves.parent)]
        return Stage(leaves.parent.name, leaves, [*python, *ranks, recipe, *shared])

    adapters = [
        Stage(name, weights_of(name, runs), [*python, str(HERE / "rows.py"), name, "--runs", str(runs)], into)
        for name, into in (dict.fromkeys(rows()) | SHIPPED).items()
    ]
    return [
        [Stage("codec", base, [*python, str(HERE / "codec.py"), "-o", str(base)])],
        [trained("embedded_backbone", base, backbone)],
        [trained("embedded_backbone_longer", backbone, longer)],
        [
            Stage(
                "decoder",
                model,
                [*python, str(HERE / "decoder.py"), "--model", str(longer), "-o", str(model)],
                WEIGHTS,
            ),
        ],
        [
            Stage(
                "estimator",
                estimator / "estimator.safetensors",
                [*python, str(HERE / "estimator.py"), "--model", str(model), "-o", str(estimator)],
                ESTIMATOR,
            ),
            *adapters,
        ],
        [
            Stage(
                "scores",
                runs / "scores" / "table.md",
                [*python, str(HERE / "score.py"), "--runs", str(runs), "-o", str(runs / "scores")],
            )
        ],
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
