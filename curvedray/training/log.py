"""What a run says while it runs: a line of JSON per step, the recipe beside it, and callbacks for whoever watches."""

import json
import time
from collections import deque
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

from curvedray.data.clips import Skipped
from curvedray.errors import InputError
from curvedray.files import whole_file, writing
from curvedray.inputs import parsed_json, read_text
from curvedray.training.recipe import Recipe

RESUME = "Make room and go on with --resume latest."
Tick = Callable[[int, int, str], None]  # tick(done, total, words)
Say = Callable[[str], None]


def no_tick(done: int, total: int, words: str) -> None:
    """Nobody watches."""


def no_say(text: str) -> None:
    """Nobody listens."""


class RunLog:
    """`log.jsonl` and `recipe.json` in the run's folder. Of several processes only the first `writes`."""

    def __init__(self, out: Path, recipe: Recipe, first: int, writes: bool, tick: Tick = no_tick, say: Say = no_say):
        self.out, self.recipe, self.first, self.writes = out, recipe, first, writes
        self.tick, self.say = (tick, say) if writes else (no_tick, no_say)
        self.losses: deque[float] = deque(maxlen=max(1, recipe.steps // 10))
        self.validated: set[int] = set()  # steps whose validation is in the log
        self._busy, self._began, self._reported = 0.0, time.perf_counter(), 0
        self._file: FileIO | None = None

    def __enter__(self) -> "RunLog":
        self._began = time.perf_counter()
        if self.writes:
            with writing(str(self.out), RESUME):
                with whole_file(self.out / "recipe.json") as temporary:
                    temporary.write_text(json.dumps(self.recipe.to_json(), indent=1))
                forget_from(self.out / "log.jsonl", self.first)
                # Unbuffered: a line that finds no room must not be tried again when the file is closed.
                self._file = (self.out / "log.jsonl").open("ab", buffering=0)
        earlier = log_records(self.out / "log.jsonl") if self.first else []
        last_tenth = self.recipe.steps - (self.losses.maxlen or 1)
        self.losses.extend(i["loss"] for i in earlier if "loss" in i and i["step"] >= last_tenth)
        self.validated = {i["step"] for i in earlier if "validation" in i}
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def recent_loss(self) -> float | None:
        """The mean of the last tenth of the steps, as far as they were taken or logged; None where none was."""
        return sum(self.losses) / len(self.losses) if self.losses else None

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
        self.tick(step + 1, self.recipe.steps, f"loss {self.recent_loss:.4f}")
        every = self.recipe.every.log
        if every and ((step + 1) % every == 0 or step + 1 == self.recipe.steps):
            record = {"step": step, "loss": loss, "flow": flow, "radial": radial, "gradient": norm, "lr": rate}
            self._write(record | {"seconds": round(seconds, 4), "waited": round(waited, 4)})
        for number, reason in list(skipped)[self._reported :]:
            self._reported += 1
            self._write({"step": step, "skipped": number, "reason": reason})
            self.say(f"a clip was skipped ({self._reported} so far): {reason}")

    def validation(self, step: int, numbers: dict[str, Any]) -> None:
        self._write({"step": step, **numbers})
        self.validated.add(step)
        self.say(f"step {step}: validation loss {numbers['validation']:.4f}, videos in {numbers['videos']}")

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
    # A validation's number counts the steps before it; a step's own number starts at 0.
    kept = [i for i in log_records(path) if i["step"] < step or ("validation" in i and i["step"] == step > 0)]
    with whole_file(path) as temporary:
        temporary.write_text("".join(f"{json.dumps(record)}\n" for record in kept))


def log_records(path: Path) -> list[dict[str, Any]]:
    """The lines of a log that are whole: steps, validations, clips that were skipped."""
    if not path.exists() or not path.stat().st_size:
        return []
    records = []
    for line in read_text(path, "a run's log").splitlines():
        try:
            record = parsed_json(line, str(path))
        except InputError:
            continue  # cut short by a kill
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            records.append(record)
    return records
