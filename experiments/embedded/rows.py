"""Train every adapter that the embedded model's table compares, with several seeds, and score them all.

    python experiments/embedded/rows.py --runs runs/paper --seeds 3 -o experiments/results/embedded

Rows differ in what they are called after and in nothing else: the same clips in the same order, the same budget. They
are trained as rows of the paper's items are, into the same folder, so what both need is trained once. Two are trained
side by side, a core each. What is trained is skipped, what was stopped goes on.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from curvedray.paper.experiment import Row
from curvedray.paper.rows import CREPE, TURNED_QUERIES, TURNED_VALUES, UCPE, method, mix
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_side_by_side

CORES = 2
# First those that obey a camera alone, then those that take a map, one change at a time.
ROWS: dict[str, Row] = {
    "ucpe": UCPE,
    "crepe: keys turned (the paper's form)": CREPE,
    "crepe: queries turned too": Row(TURNED_QUERIES),
    "crepe: queries and values turned too": Row(TURNED_VALUES),
    "endpoint": method("endpoint"),
    "maps: keys turned (the paper's form)": mix(),
    "maps: queries turned too": mix(changes=TURNED_QUERIES),
    "maps: queries and values turned too": mix(changes=TURNED_VALUES),
    "maps: the same, and the interval a feature": mix(changes=TURNED_VALUES | {"adapter.interval_feature": True}),
    "maps: queries and values turned too, all blocks curved": mix(changes=TURNED_VALUES, curved="all"),
    "maps: depth_concat": mix("depth_concat"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/paper"), help="as `curvedray paper run -o`")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path, help="score them into this folder when all are trained")
    options = parser.parse_args()
    setting = Setting(EMBEDDED, options.runs / EMBEDDED.name)
    wanted = [(name, ROWS[name], seed) for seed in range(options.seeds) for name in options.rows]
    trained = train_side_by_side(setting, wanted, CORES)
    if options.out is None:
        return
    pairs = [f"--adapter={name}={file}" for (name, _), file in trained.items()]
    score = [sys.executable, str(Path(__file__).with_name("score.py")), "--kept", str(options.runs / "kept")]
    subprocess.run([*score, *pairs, "-o", str(options.out)], check=True)


if __name__ == "__main__":
    main()
