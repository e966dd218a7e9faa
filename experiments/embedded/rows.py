"""Train every adapter that the embedded model's table compares, with several seeds, and score them all.

    python experiments/embedded/rows.py --runs runs/embedded --seeds 3

Rows differ in what they are called after and in nothing else: the same clips in the same order, the same budget. Two
are trained side by side, a core each. What is trained is skipped, what was stopped goes on.
"""

import argparse
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.models.embedded.model import WEIGHTS
from curvedray.training.precision import quick_precision

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
CORES = 2
# By name: the recipe. First those that obey a camera alone, then those that take a map, one change at a time.
ROWS = {
    "ucpe": "embedded_ucpe",
    "crepe (the paper's)": "embedded",
    "crepe, queries turned": "embedded_rotation",
    "crepe, queries and values turned": "embedded_rotation_value",
    "endpoint": "embedded_endpoint",
    "maps: the paper's": "embedded_mixforcing_video",
    "maps: queries turned": "embedded_maps_query",
    "maps: queries and values turned": "embedded_maps_value",
    "maps: the same, the interval a feature": "embedded_maps_feature",
    "maps: queries and values turned, all blocks curved": "embedded_maps_everywhere",
    "maps: depth_concat": "embedded_maps_concat",
}


def folder_of(recipe: str, seed: int, runs: Path) -> Path:
    return runs / "rows" / f"{recipe}-{seed}"


def train(recipe: str, seed: int, runs: Path) -> Path:
    """One row's adapter, trained now or before."""
    out = folder_of(recipe, seed, runs)
    if not (out / "adapter.safetensors").is_file():
        log.info("%s, seed %d ...", recipe, seed)
        own = [f"seed={seed}", f"data.cache={runs / 'cache'}", f"precision={quick_precision()}"]
        command = [sys.executable, "-m", "curvedray", "train", recipe, *own, "--resume", "latest", "-o", str(out)]
        with (runs / "rows" / f"{recipe}-{seed}.log").open("a") as said:
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            subprocess.run(command, check=True, env=environment, stdout=said, stderr=said)
    return out / "adapter.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--rows", nargs="+", choices=list(ROWS.values()), default=list(ROWS.values()))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path, help="score them into this folder when all are trained")
    options = parser.parse_args()
    (options.runs / "rows").mkdir(parents=True, exist_ok=True)
    wanted = [(recipe, seed) for seed in range(options.seeds) for recipe in options.rows]
    with ThreadPoolExecutor(CORES) as pool:
        trained = list(pool.map(lambda one: train(one[0], one[1], options.runs), wanted))
    if options.out is None:
        return
    names = {recipe: name for name, recipe in ROWS.items()}
    pairs = [f"--adapter={names[recipe]}={file}" for (recipe, _), file in zip(wanted, trained, strict=True)]
    files = ["--model", str(WEIGHTS), "--estimator", str(ESTIMATOR), "--kept", str(options.runs / "kept")]
    score = Path(__file__).with_name("score.py")
    subprocess.run([sys.executable, str(score), *files, *pairs, "-o", str(options.out)], check=True)


if __name__ == "__main__":
    main()
