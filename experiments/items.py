"""Every item of the paper at the embedded size, and its results into experiments/results.

    python experiments/items.py                            all that is not there yet
    python experiments/items.py --items lenses overall     these, again

The rows of all chosen items are trained in the items' order, two side by side, a core each. An item is run, as
`curvedray paper run` does, as soon as all of its rows are there; one that has none, when all trainings have ended. It
may be stopped at any time: what is trained, filmed and read is kept, and an item whose results are there, of this
model, judge, number of clips and steps, is skipped.
"""

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

from curvedray.paper.catalogue import ITEMS, item
from curvedray.paper.experiment import Experiment, Row
from curvedray.paper.outdated import changed_since
from curvedray.paper.run import is_trained
from curvedray.paper.runner import runner_of
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_side_by_side

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger(__name__)
CORES = 2
RECORD = "results.json"
RESULTS = Path(__file__).parent / "results"


def is_done(name: str, setting: Setting) -> bool:
    """Whether an item's results are there, of this model and, where they tell, of these judges, clips and steps."""
    path = RESULTS / name / RECORD
    record = json.loads(path.read_text()) if path.is_file() else {}
    return "weights" in record and not changed_since(item(name), record, setting)


def rows_of(name: str) -> dict[str, Row]:
    """What an item trains at the embedded scale."""
    experiment: Experiment | None = getattr(runner_of(item(name)), "experiment", None)
    rows = {} if experiment is None else experiment.rows_at(EMBEDDED)
    return {f"{name}, {key}": row for key, row in rows.items() if is_trained(row)}


def is_ready(name: str, setting: Setting) -> bool:
    """Whether an item may be run beside trainings: it has rows, and all are trained. One without may train something of
    its own, as `probing` does, and of two that open the cache at once the second is refused."""
    rows = rows_of(name).values()
    return bool(rows) and all(setting.trained_file(row).is_file() for row in rows)


def run_item(name: str, setting: Setting, runs: Path) -> None:
    """One item, all of whose rows are trained, and its files into the results; on one core, beside trainings."""
    log.info("%s ...", name)
    command = ["paper", "run", name, "--scale", EMBEDDED.name, "-o", str(runs)]
    own = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "curvedray", *command], check=True, stdout=subprocess.DEVNULL, env=own)
    made = sorted(setting.folder(name).iterdir(), key=lambda path: path.name == RECORD)
    (RESULTS / name).mkdir(parents=True, exist_ok=True)
    for path in made:  # the record last: where it is, all is
        shutil.copyfile(path, RESULTS / name / path.name)
    log.info("%s: done", name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/paper"), help="as `curvedray paper run -o`")
    parser.add_argument("--items", nargs="+", choices=[one.name for one in ITEMS])
    options = parser.parse_args()
    setting = Setting(EMBEDDED, options.runs / EMBEDDED.name)
    left = options.items or [one.name for one in ITEMS if not is_done(one.name, setting)]
    rows = {key: row for name in left for key, row in rows_of(name).items()}

    def run_ready() -> None:
        run([name for name in left if is_ready(name, setting)])

    def run(names: list[str]) -> None:
        for name in names:
            run_item(name, setting, options.runs)
            left.remove(name)

    train_side_by_side(setting, [(name, row, 0) for name, row in rows.items()], CORES, run_ready)
    run(list(left))


if __name__ == "__main__":
    main()
