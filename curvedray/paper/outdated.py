"""Is a stored result today's? What made it, beside what would make it now."""

from collections.abc import Mapping
from typing import Any

from curvedray.paper.catalogue import Item
from curvedray.paper.experiment import Experiment
from curvedray.paper.judging import open_judges
from curvedray.paper.run import is_trained
from curvedray.paper.runner import runner_of
from curvedray.paper.setting import Setting


def changed_since(entry: Item, record: Mapping[str, Any], setting: Setting) -> list[str]:
    """What is no longer as it was when an item's record was written, of what the record tells."""
    experiment: Experiment | None = getattr(runner_of(entry), "experiment", None)
    then: dict[str, Any] = {"model": record.get("weights")}
    now: dict[str, Any] = {"model": setting.model_key[:12]}
    if experiment is not None:  # what is drawn or computed alone has no clips, judges or steps
        then["number of clips"], now["number of clips"] = record.get("clips"), setting.clips or setting.scale.clips
        if judges := record.get("judges"):
            present = open_judges(setting, experiment.judges_at(setting.scale)).present
            then["judge"] = {name: judge["version"] for name, judge in judges.items()}
            now["judge"] = {judge.name: judge.version for judge in present if judge.name in judges}
        if recipes := record.get("recipes"):
            rows = experiment.rows_at(setting.scale).items()
            then["number of steps"] = {name: recipe["steps"] for name, recipe in recipes.items()}
            now["number of steps"] = {name: setting.steps(row) for name, row in rows if is_trained(row)}
    return [what for what, value in then.items() if value is not None and value != now[what]]
