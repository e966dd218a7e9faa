"""Train adapters that differ in one thing, with several seeds, and score each: what obeys a camera, what obeys a map.

    python experiments/embedded/rows.py --seeds 3 -o experiments/results/rows

Rows differ in what they are called after and in nothing else: the same clips in the same order, the same budget. They
are trained as rows of the paper's items are, into the same folder, so what both need is trained once. Two are trained
side by side, a core each (`--cores`), and each is filmed and scored as soon as it is trained. It may be stopped at any
time: what OUT has of this model, judge, number of clips and steps is not made again, even where weights and films are
gone. Trained and filmed in bfloat16 where the machine multiplies it.
"""

import argparse
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rows_page import rows_page
from score import Judge
from score_tables import row_numbers

from curvedray.bench.harness import hardware
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.report import without_nan
from curvedray.files import whole_file
from curvedray.inputs import read_json
from curvedray.models.embedded.model import WEIGHTS
from curvedray.paper.experiment import Row
from curvedray.paper.rows import CREPE, TURNED_QUERIES, TURNED_VALUES, UCPE, method, mix
from curvedray.paper.scales import EMBEDDED
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_side_by_side
from curvedray.training.precision import quick_precision

log = logging.getLogger(__name__)
FEATURE: dict[str, Any] = {**TURNED_VALUES, "adapter.interval_feature": True}
BESIDE: dict[str, Any] = {**FEATURE, "adapter.rays_beside": True}
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
    "maps: the same, and the interval a feature": mix(changes=FEATURE),
    "maps: the same, and map guidance 2": mix(changes=FEATURE, filming={"map_guidance": 2.0}),
    "maps: queries and values turned too, all blocks curved": mix(changes=TURNED_VALUES, curved="all"),
    "maps: with the feature, all blocks curved, relative rays beside": mix(changes=BESIDE, curved="all"),
    "maps: depth_concat": mix("depth_concat"),
    "maps: copy_concat, all blocks": mix("copy_concat", curved="all"),
}


@dataclass(frozen=True, eq=False)
class Record:
    """What is known of rows, by seed: a file that grows row by row, and its page."""

    out: Path
    made_by: Mapping[str, Any]
    rows: dict[str, dict[str, Any]]

    @classmethod
    def begun(cls, out: Path, made_by: Mapping[str, Any]) -> "Record":
        """What is there, if it was made alike; else nothing."""
        file = out / "rows.json"
        there = read_json(file) if file.is_file() else {}
        return cls(out, made_by, there["rows"] if there.get("made_by") == made_by else {})

    def has(self, name: str, seed: int, key: str) -> bool:
        """Whether a row's numbers are there, of the training that this key stands for."""
        return self.rows.get(name, {}).get(str(seed), {}).get("training") == key

    def add(self, name: str, seed: int, key: str, numbers: Mapping[str, Any]) -> None:
        made = {
            "training": key,
            "date": date.today().isoformat(),
            "hardware": hardware(),
            "filmed in": quick_precision(),
        }
        self.rows.setdefault(name, {})[str(seed)] = made | without_nan(numbers)
        self.write()

    def write(self) -> None:
        record = {"made_by": self.made_by, "rows": self.rows}
        for file, text in (
            ("rows.json", json.dumps(record, indent=1) + "\n"),
            ("table.md", rows_page(self.made_by, {row: self.rows[row] for row in ROWS if row in self.rows})),
        ):
            with whole_file(self.out / file) as temporary:
                temporary.write_text(text)


def score_trained(
    setting: Setting, judge: Judge, record: Record, wanted: list[tuple[str, Row, int]], filming: dict[str, Any]
) -> None:
    """Film, read and count every row that is trained and not counted yet."""
    for name, row, seed in wanted:
        file, key = setting.trained_file(row, seed), setting.training_key(row, seed)
        if record.has(name, seed, key) or not file.is_file():
            continue
        log.info("%s: filming and scoring, seed %d", name, seed)
        free, *mapped = judge.filmed(name, file, filming | dict(row.filming)).values()
        real, others = judge.real_clips
        found = row_numbers(judge.truth, judge.asked, real, others, free, mapped[0] if mapped else None)
        record.add(name, seed, key, {part: {of: vars(one) for of, one in all_.items()} for part, all_ in found.items()})


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/paper"), help="as `curvedray paper run -o`")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--cores", type=int, default=2, help="trainings side by side; films are made beside them")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)  # films are made beside trainings
    setting = Setting(EMBEDDED, options.runs / EMBEDDED.name)
    judge = Judge.open(
        WEIGHTS, ESTIMATOR, "test", options.clips, options.runs / "kept", quick=quick_precision() == "bf16"
    )
    made_by = {
        "model": setting.model_key[:12],
        "judge": judge.estimator.version,
        "floor": judge.estimator.floor,
        "clips": options.clips,
        "steps": EMBEDDED.steps["full"],
        "batch": setting.base.batch,
        "filming": EMBEDDED.filming,
    }
    record = Record.begun(options.out, made_by)
    wanted = [(name, ROWS[name], seed) for seed in range(options.seeds) for name in options.rows]
    wanted = [one for one in wanted if not record.has(one[0], one[2], setting.training_key(one[1], one[2]))]

    def score() -> None:
        score_trained(setting, judge, record, wanted, EMBEDDED.filming)

    train_side_by_side(setting, wanted, options.cores, score)
    score()
    record.write()  # the page, also where there was nothing left to make


if __name__ == "__main__":
    main()
