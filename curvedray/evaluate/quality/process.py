"""A conversation with worker.py, which runs in the Python of whichever environment has the networks."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from curvedray.errors import InputError
from curvedray.evaluate.quality.extractors import EXTRACTORS
from curvedray.inputs import first_line

WORKER = Path(__file__).with_name("worker.py")


class ClipFailure(InputError):
    """What a network could not make of one clip; the others may still be measured."""


class Worker:
    """One network, loaded in a process of its own. Every answer that is no answer is an InputError."""

    def __init__(self, name: str, weights: Path, python: str = sys.executable, device: str = "cpu"):
        self.name, self.python = name, python
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
            )
        except OSError as error:
            self._log.close()
            raise InputError("--python", "a Python that can be started", f"{python}: {first_line(error)}") from error
        try:
            self.version = str(self.ask(load=name, weights=str(weights.absolute()), device=device)["version"])
        except BaseException:
            self.close(at_once=True)
            raise

    def ask(self, **request: Any) -> dict[str, Any]:
        """What the worker answers; it writes features to the file that `out` names."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise InputError(self.name, "an answer", f"its process ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        extractor = EXTRACTORS[self.name]
        if "missing" in answer:
            option = "--vbench-python" if extractor.alone else "--python"
            fix = f"Run: {extractor.install(self.python)}; {option} names the Python of an environment that has it."
            raise InputError(self.name, f"the package {answer['missing']}", f"{self.python} without it", fix)
        if "error" in answer:
            kind = InputError if "load" in request else ClipFailure
            raise kind(self.name, f"what {' and '.join(extractor.packages)} can read", answer["error"])
        return answer

    def close(self, at_once: bool = False) -> None:
        """End the process: when it has read to the end of its input, or, if it is not to finish its work, at once."""
        if at_once:
            self._process.terminate()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = self._log.read()[-2000:].strip().splitlines()
        return lines[-1] if lines else f"code {self._process.returncode}"


@contextmanager
def working(name: str, weights: Path, python: str = sys.executable, device: str = "cpu") -> Iterator[Worker]:
    """A worker that ends with the block."""
    worker = Worker(name, weights, python, device)
    try:
        yield worker
    except BaseException:
        worker.close(at_once=True)
        raise
    worker.close()
