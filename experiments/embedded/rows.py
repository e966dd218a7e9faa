"""Train every adapter that the embedded model's table compares, with several seeds, and score them all.

    python experiments/embedded/rows.py --runs runs/paper --seeds 3 -o experiments/results/embedded

Rows differ in what they are called after and in nothing else: the same clips in the same order, the same budget. They
are trained as rows of the paper's items are, into the same folder, so what both need is trained once. Two are trained
side by side, a core each. What is trained is skipped, what was stopped goes on.
"""

import argparse
import logging
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from curvedray.paper.experiment import Row
from curvedray.paper.listener import Listener
from curvedray.paper.rows import CREPE, TURNED_QUERIES, TURNED_VALUES, UCPE, method, mix
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_row

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger(__name__)
CORES = 2
# First those that obey a camera alone, then those that take a map, one change at a time.
ROWS: dict[str, Row] = {
    "ucpe": UCPE,
    "crepe (the paper's)": CREPE,
    "crepe, queries turned": Row(TURNED_QUERIES),
    "crepe, queries and values turned": Row(TURNED_VALUES),
    "endpoint": method("endpoint"),
    "maps: the paper's": mix(),
    "maps: queries turned": mix(changes=TURNED_QUERIES),
    "maps: queries and values turned": mix(changes=TURNED_VALUES),
    "maps: the same, the interval a feature": mix(changes=TURNED_VALUES | {"adapter.interval_feature": True}),
    "maps: queries and values turned, all blocks curved": mix(changes=TURNED_VALUES, curved="all"),
    "maps: depth_concat": mix("depth_concat"),
}


def train(name: str, seed: int, runs: Path) -> Path:
    """One row's adapter, trained now or before, on one core."""
    torch.set_num_threads(1)
    made = train_row(Setting(EMBEDDED, runs / EMBEDDED.name), name, ROWS[name], seed, Listener(log.info))
    assert made is not None, f"{name} trains nothing"
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/paper"), help="as `curvedray paper run -o`")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path, help="score them into this folder when all are trained")
    options = parser.parse_args()
    wanted = [(name, seed) for seed in range(options.seeds) for name in options.rows]
    with ProcessPoolExecutor(CORES, get_context("spawn")) as pool:
        waiting = [pool.submit(train, name, seed, options.runs) for name, seed in wanted]
        trained = [one.result() for one in waiting]
    if options.out is None:
        return
    pairs = [f"--adapter={name}={file}" for (name, _), file in zip(wanted, trained, strict=True)]
    score = [sys.executable, str(Path(__file__).with_name("score.py")), "--kept", str(options.runs / "kept")]
    subprocess.run([*score, *pairs, "-o", str(options.out)], check=True)


if __name__ == "__main__":
    main()
