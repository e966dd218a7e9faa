"""Train everything that is embedded in the package, from nothing, and measure it.

    make embedded            or: python experiments/embedded/make.py --runs runs/embedded
    python experiments/embedded/make.py --world world-2 --runs runs/second

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

    def trained(name: str, start: Path, leaves: Path) -> Stage:
        shared = [f"model={start}", f"data.cache={runs / 'cache'}", "--resume", "latest", "-o", str(leaves.parent)]
        return Stage(leaves.parent.name, leaves, [*python, *ranks, name, *shared])

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


def second_stages(runs: Path) -> list[list[Stage]]:
    """The second world's model: beginnings of clips first, a decoder that paints, a reader with a slot per colour."""
    python, world = [sys.executable], ["--world", "world-2"]
    base, model, estimator = runs / "base.safetensors", runs / "embedded.safetensors", runs / "estimator"
    begun, trained = (runs / name / "embedded.safetensors" for name in ("beginnings", "backbone"))
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(CORES), "-m", "curvedray", "train"]

    def train(name: str, start: Path, leaves: Path) -> Stage:
        shared = [f"model={start}", f"data.cache={runs / 'cache'}", "--resume", "latest", "-o", str(leaves.parent)]
        return Stage(name, leaves, [*python, *ranks, name, *shared])

    def script(name: str, leaves: Path, *options: str | Path) -> Stage:
        return Stage(name, leaves, [*python, str(HERE / f"{name}.py"), *map(str, options)])

    return [
        [script("codec", base, *world, "-o", base)],
        [train("second_beginnings", base, begun)],
        [train("second_backbone", begun, trained)],
        [script("decoder", model, *world, "--model", trained, "--painted", "16", "-o", model)],
        [script("estimator", estimator / "estimator.safetensors", *world, "--model", model, "-o", estimator)],
    ]


WORLDS = {"world": stages, "world-2": second_stages}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--world", choices=list(WORLDS), default="world", help="world-2: not shipped yet")
    options = parser.parse_args()
    runs = options.runs
    for together in WORLDS[options.world](runs):
        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(Stage.run, together))
    log.info("all of it is in %s; %s has the scores", WEIGHTS.parent, runs / "scores")


if __name__ == "__main__":
    main()
