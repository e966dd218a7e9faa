"""What tests of several rooms share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

# Workers side by side have a core each, and so have their commands: with a thread per core in each, threads wait
# for one another, and small models take several times as long. Read when torch is imported, which is later.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Files that run whole commands, trainings, films or campaigns; `make test-fast` leaves them out.
WHOLE = {
    "app/test_whole.py",
    "cli/test_train_cli.py",
    "data/test_cache.py",
    "evaluate/test_embedded_scores.py",
    "evaluate/test_evaluate_estimators.py",
    "evaluate/test_evaluate_run.py",
    "formats/test_formats_fuzz.py",
    "generation/test_filmed.py",
    "generation/test_recipe.py",
    "models/test_embedded_shipped.py",
    "models/test_wan.py",
    "test_bench.py",
    "test_demo.py",
    "test_examples.py",
    "test_extras.py",
    "test_site.py",
    "torture/test_short.py",
    "training/test_run.py",
    "training/test_survives.py",
    "training/test_train.py",
    "world/test_preview.py",
}
PROMPT = "a red ball and a blue box in a desert courtyard"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(Path(__file__).parent).as_posix() in WHOLE:
            item.add_marker(pytest.mark.whole)


@pytest.fixture(scope="session")
def filmed(tmp_path_factory) -> Path:
    """A folder with film.mp4, made by `curvedray generate` with the embedded model, and the files it writes beside it.

    Made once per test run, whichever process asks first, as filming takes seconds. Read it; write elsewhere.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder of its own, in one that they share
        shared = shared.parent
    folder, unfinished = shared / "filmed", shared / "filming"
    with FileLock(shared / "filmed.lock"):
        if not folder.exists():
            unfinished.mkdir()
            words = ["generate", PROMPT, "--move", "orbit left 30deg", "--lens", "fisheye-150", "-o", "film.mp4"]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "curvedray", *words]
            run = subprocess.run(command, cwd=unfinished, env=environment, capture_output=True, text=True, timeout=900)
            assert run.returncode == 0, run.stderr[-3000:]
            unfinished.rename(folder)
    return folder
