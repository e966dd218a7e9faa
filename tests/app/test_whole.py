"""The studio as a process of its own: it films, judges, survives kills, and ends quietly on Ctrl-C."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from studio_client import TOKEN

PROMPT = "a red ball and a blue box in a desert courtyard"
QUICK = {"steps": 4}
PATIENCE = 180.0
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


class Process:
    """`curvedray app` on a free port."""

    def __init__(self, folder: Path):
        words = ["app", "--no-browser", "--port", "0", "--folder", str(folder), "--token", TOKEN]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "curvedray", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), self.process.communicate(timeout=10)
        self.base = address.split("/?")[0]
        self.client = httpx.Client(base_url=self.base, follow_redirects=True, timeout=60)
        assert self.client.get(address).status_code == 200  # the token became a cookie

    def take(self, path: str, body: dict[str, Any], *, until: str = "finished") -> dict[str, Any]:
        answer = self.client.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return self.wait(answer.json()["take"], until)

    def wait(self, take: str, until: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            record = self.client.get(f"/api/takes/{take}").json()
            if record["state"] in ("finished", "failed", "cancelled", until):
                assert record["state"] == until, record
                return record
            time.sleep(0.05)
        raise AssertionError(record)

    def upload(self, kind: str, name: str, content: bytes) -> str:
        headers = {"content-type": "application/octet-stream"}
        return self.client.put(f"/api/uploads/{kind}?name={name}", content=content, headers=headers).json()["upload"]

    def file(self, take: dict[str, Any], name: str) -> bytes:
        answer = self.client.get(f"/api/takes/{take['take']}/files/{take['files'][name]}")
        assert answer.status_code == 200
        return answer.content

    @property
    def worker(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return next(child for child in children if "spawn_main" in " ".join(child.cmdline()))

    def interrupt(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("whole") / "studio"


@pytest.fixture(scope="module")
def running(folder) -> Iterator[Process]:
    process = Process(folder)
    yield process
    if process.process.poll() is None:
        process.process.kill()


def path(**more: Any) -> dict[str, Any]:
    return {"moves": "orbit left 30deg", "lens": {"name": "fisheye-150"}} | more


def same_again(take: dict[str, Any], folder: Path, elsewhere: Path) -> bytes:
    """What the take's own command line makes, in another folder, of the files that it says it needs."""
    elsewhere.mkdir()
    for name in take["command_needs"]:
        (elsewhere / name).write_bytes((folder / "takes" / take["take"] / name).read_bytes())
    words = shlex.split(take["command"])
    command = [sys.executable, "-m", *words]
    run = subprocess.run(command, cwd=elsewhere, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return (elsewhere / "film.mp4").read_bytes()


def test_a_film_is_made_judged_and_made_again_to_the_byte_by_its_command(running, folder, tmp_path):
    take = running.take("/api/takes", {"prompt": PROMPT, "path": path(), "seed": 3} | QUICK)
    assert set(take["files"]) == {"video", "thumbnail", "recipe", "cameras", "still", "sheet", "path", "radii", "exact"}
    verdict = take["verdict"]
    assert verdict["asked_turn"] == pytest.approx(30, abs=0.1)
    assert "of 30 degrees" in verdict["words"]
    assert np.array(verdict["recovered"]).shape == (17, 16)
    assert running.file(take, "video")[4:8] == b"ftyp"
    assert same_again(take, folder, tmp_path / "again") == running.file(take, "video")


def test_ctrl_c_ends_server_and_worker_quietly_even_while_filming_and_listening(running, folder):
    """The last of the quick ones: it ends the process that the others ask."""
    worker = running.worker
    assert worker.nice() > psutil.Process(running.process.pid).nice()
    with running.client.stream("GET", "/api/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        film = running.client.post("/api/takes", json={"prompt": PROMPT, "path": path(), "steps": 200}).json()
        running.wait(film["take"], "working")
        code, _, err = running.interrupt()
    assert code == 0
    assert err.strip() == "the studio is closed"
    worker.wait(10)
    record = json.loads((folder / "takes" / film["take"] / "take.json").read_text())
    assert record["state"] == "working"  # and goes on when the studio is opened again
    assert not list(folder.glob(".lock"))
