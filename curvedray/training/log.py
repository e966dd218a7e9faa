"""What a run says while it runs: a line of JSON per step, a bar with the time left, and the recipe beside them."""

import json
import time
from collections import deque
from io import FileIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from curvedray.data.clips import Skipped
from curvedray.files import whole_file, writing
from curvedray.training.recipes import Recipe

RESUME = "Make room and go on with --resume latest."


class RunLog:
    """`log.jsonl` and `recipe.json` in the run's folder, and the bar. Only the first process writes and shows."""

    def __init__(self, out: Path, recipe: Recipe, first: int, shown: bool):
        self.out, self.recipe, self.first, self.shown = out, recipe, first, shown
        self.losses: deque[float] = deque(maxlen=max(1, recipe.steps // 10))
        self._busy, self._began, self._reported = 0.0, time.perf_counter(), 0
        self._file: FileIO | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not shown,
        )

    def __enter__(self) -> "RunLog":
        self._began = time.perf_counter()
        if self.shown:
            with writing(str(self.out), RESUME):
                with whole_file(self.out / "recipe.json") as temporary:
                    temporary.write_text(json.dumps(self.recipe.to_json(), indent=1))
                forget_from(self.out / "log.jsonl", self.first)
                # Unbuffered: a line that finds no room must not be tried again when the file is closed.
                self._file = (self.out / "log.jsonl").open("ab", buffering=0)
        self._bar.start()
        self._task = self._bar.add_task("loss      ", total=self.recipe.steps, completed=self.first)
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._file is not None:
            self._file.close()

    @property
    def recent_loss(self) -> float:
        """The mean of the last tenth of the steps."""
        return sum(self.losses) / len(self.losses) if self.losses else float("nan")

    def step(
        self,
        step: int,
        loss: float,
        flow: float,
        radial: float,
        norm: float,
        rate: float,
        seconds: float,
        waited: float,
        skipped: Skipped,
    ) -> None:
        self.losses.append(loss)
        self._busy += seconds - waited
        self._bar.update(self._task, completed=step + 1, description=f"loss {self.recent_loss:.4f}")
        every = self.recipe.every.log
        if every and ((step + 1) % every == 0 or step + 1 == self.recipe.steps):
            record = {"step": step, "loss": loss, "flow": flow, "radial": radial, "gradient": norm, "lr": rate}
            self._write(record | {"seconds": round(seconds, 4), "waited": round(waited, 4)})
        for number, reason in list(skipped)[self._reported :]:
            self._reported += 1
            self._write({"step": step, "skipped": number, "reason": reason})
            self.note(f"a clip was skipped ({self._reported} so far): {reason}")

    def validated(self, step: int, numbers: dict[str, Any]) -> None:
        self._write({"step": step, **numbers})
        self.note(f"step {step}: validation loss {numbers['validation']:.4f}, videos in {numbers['videos']}")

    def note(self, text: str) -> None:
        if self.shown:
            self._bar.console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)

    def timing(self) -> tuple[float, float]:
        """Seconds since the loop began, and the share of them spent in forward, backward and optimiser."""
        wall = time.perf_counter() - self._began
        return wall, self._busy / wall if wall > 0 else 0.0

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is None:
            return
        with writing(str(self.out / "log.jsonl"), RESUME):
            self._file.write((json.dumps(record) + "\n").encode())


def forget_from(path: Path, step: int) -> None:
    """Drop the lines of steps that will be made again, and a last line that was cut short."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        # A validation bears the number of steps before it, a step its own, from 0.
        if record["step"] < step or ("validation" in record and record["step"] == step > 0):
            kept.append(line)
    with whole_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in kept))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The steps of a run, one record each."""
    return [record for line in path.read_text().splitlines() if "loss" in (record := json.loads(line))]
