"""Tables of trainings themselves: what their logs say of losses and gradients, step by step."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curvedray.evaluate.report import number_text
from curvedray.paper.catalogue import Item
from curvedray.paper.experiment import Experiment
from curvedray.paper.listener import Listener
from curvedray.paper.provenance import Provenance
from curvedray.paper.run import Table
from curvedray.paper.runner import Page, Work
from curvedray.paper.scales import Scale
from curvedray.paper.setting import Setting
from curvedray.paper.train import train_row
from curvedray.tables import markdown_table
from curvedray.training.log import log_records

SPIKE = 10.0  # times the median: a step whose gradient is over it is one
COLUMNS = (
    "median gradient",
    "largest gradient",
    "spikes, % of steps",
    "radial loss, last tenth",
    "flow loss, last tenth",
)


@dataclass(frozen=True)
class LogTable:
    """An experiment whose rows are trained, and whose logs are read."""

    experiment: Experiment

    def needs_at(self, scale: Scale) -> tuple[str, ...]:
        return () if scale.is_world else ("panshot", "labels")

    def work(self, setting: Setting) -> Work:
        counted = Table(self.experiment).work(setting)
        return Work(counted.trainings, counted.done)

    def run(self, entry: Item, setting: Setting, hears: Listener) -> Page:
        rows, numbers = [], {}
        for name, row in self.experiment.rows_at(setting.scale).items():
            for seed in range(setting.seeds):
                weights = train_row(setting, name, row, seed, hears)
                assert weights is not None, "a row that is trained"
                label = name if setting.seeds == 1 else f"{name}, seed {seed}"
                numbers[label] = read_log(weights.parent / "log.jsonl")
                rows.append([label, *(number_text(numbers[label][column]) for column in COLUMNS)])
        made = Provenance.now(entry, setting, self.experiment.says)
        lines = [f"# {entry.title}", "", *made.lines(), "", markdown_table(["row", *COLUMNS], rows), ""]
        lines.append(
            f"A spike is a step whose gradient norm, before clipping, is over {SPIKE:g} times the row's median."
        )
        found = "; ".join(
            f"{label}: largest gradient {number_text(row['largest gradient'])}, median "
            f"{number_text(row['median gradient'])}, spikes in {number_text(row['spikes, % of steps'])} % of the steps"
            for label, row in numbers.items()
        )
        return Page("\n".join(lines) + "\n", {"item": entry.name, **made.to_json(), "rows": numbers, "found": found})


def read_log(path: Path) -> dict[str, float]:
    """What a training's log says of its gradients and losses."""
    records = [record for record in log_records(path) if "gradient" in record]
    gradients = np.array([record["gradient"] for record in records])
    median = float(np.median(gradients))
    last = records[-max(1, len(records) // 10) :]
    values = (
        median,
        float(gradients.max()),
        100 * float((gradients > SPIKE * median).mean()),
        float(np.mean([record["radial"] for record in last])),
        float(np.mean([record["flow"] for record in last])),
    )
    return dict(zip(COLUMNS, values, strict=True))
