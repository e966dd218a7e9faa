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
PATIENCE = 600.0  # seconds; the worker is nice, and a busy machine may hardly let it work
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
        self.client = httpx.Client(base_url=self.base, follow_redirects=True, timeout=PATIENCE)
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
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


@pytest.fixture
def running(tmp_path) -> Iterator[Process]:
    process = Process(tmp_path / "studio")
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
    run = subprocess.run(command, cwd=elsewhere, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return (elsewhere / "film.mp4").read_bytes()


def test_a_film_is_made_and_judged_and_ctrl_c_ends_server_and_worker_quietly(running, tmp_path):
    """While a page listens, and while another film is being made, which goes on when the studio is opened again."""
    take = running.take("/api/takes", {"prompt": PROMPT, "path": path(), "seed": 3} | QUICK)
    assert set(take["files"]) == {"video", "thumbnail", "recipe", "cameras", "still", "sheet", "path", "radii", "exact"}
    assert take["verdict"]["asked_turn"] == pytest.approx(30, abs=0.1)
    assert "of 30 degrees" in take["verdict"]["words"]
    assert np.array(take["verdict"]["recovered"]).shape == (17, 16)
    assert running.file(take, "video")[4:8] == b"ftyp"
    worker = running.worker
    assert worker.nice() > psutil.Process(running.process.pid).nice()
    with running.client.stream("GET", "/api/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        film = running.client.post("/api/takes", json={"prompt": PROMPT, "path": path(), "steps": 200}).json()
        running.wait(film["take"], "working")
        code, _, err = running.interrupt()
    assert code == 0
    assert err.strip() == "the studio is closed"
    worker.wait(PATIENCE)
    record = json.loads((tmp_path / "studio" / "takes" / film["take"] / "take.json").read_text())
    assert record["state"] == "working"
    assert not list((tmp_path / "studio").glob(".lock"))


@pytest.mark.slow
def test_blocks_keyframes_cuts_and_uploaded_maps_are_made_again_to_the_byte(running, tmp_path):
    folder = tmp_path / "studio"
    scene = {
        "text": "box 1x1x2m at left 2m ahead 4m; ball 0.5m at right 1m ahead 3m moving left 1m; wall 9x4m at ahead 7m"
    }
    keys = [
        {"position": [0, 0, 0], "pitch": -5},
        {"position": [0.4, -0.2, 0.3], "yaw": -20, "seconds": 2, "lens": {"hfov": 100, "xi": 0.4, "pan": [0.05, 0]}},
        {"position": [0.5, 0, 1], "yaw": -30, "roll": 4},
    ]
    keyed = {"keys": keys, "lens": {"hfov": 120, "xi": 0.6}, "smoothness": 0.7}
    exact = running.client.post("/api/map", json={"scene": scene, "path": path()}).json()
    films = [
        {"path": path(), "seed": 3},
        {"path": keyed, "scene": scene, "cuts": [{"box": [0.5, 0, 1, 1], "frames": [2, 9]}]},
        {"path": path(moves="dolly in 0.8m, then pan left 20deg for 0.5s"), "map": exact["map"]},
        {"path": path(moves="dolly in 0.8m and handheld 1deg", near=2.0, fps=12.0), "adapter": "none", "guidance": 2.0},
        {"path": keyed, "seed": 2**40},
    ]
    for index, film in enumerate(films):
        take = running.take("/api/takes", {"prompt": PROMPT, **film} | QUICK)
        assert same_again(take, folder, tmp_path / f"again{index}") == running.file(take, "video"), take["command"]
        if index in (1, 2):
            assert {"map", "map_video"} <= set(take["files"])


@pytest.mark.slow
def test_a_video_is_scored_and_its_motion_filmed_again(running, tmp_path):
    film = running.take("/api/takes", {"prompt": PROMPT, "path": path()} | QUICK)
    upload = running.upload("video", "film.mp4", running.file(film, "video"))
    score = running.take("/api/score", {"upload": upload})
    assert {"RotErr", "Rotation"} <= {row["metric"] for row in score["scores"]}
    assert score["verdict"]["degrees"] == pytest.approx(film["verdict"]["degrees"], abs=0.2)
    asked_otherwise = running.take("/api/score", {"upload": upload, "path": path(moves="pan right 90deg")})
    assert asked_otherwise["verdict"]["obeyed"] is False
    body = {"upload": upload, "prompt": "a green pillar in a snowy courtyard", "estimate": "embedded"}
    made = running.take("/api/transfer", body | {"lens": {"name": "fisheye-150"}})
    assert {"video", "beside", "thumbnail"} <= set(made["files"])
    assert running.file(made, "beside")[4:8] == b"ftyp"
    nothing = running.upload("video", "nothing.mp4", b"no video at all")
    failed = running.take("/api/score", {"upload": nothing}, until="failed")
    assert "video that can be decoded" in failed["failure"]


@pytest.mark.slow
def test_a_kill_of_worker_or_server_loses_no_take(running, tmp_path):
    long = {"prompt": PROMPT, "path": path(), "steps": 60}
    first = running.client.post("/api/takes", json=long).json()["take"]
    running.wait(first, "working")
    running.worker.kill()
    assert any("made again" in note for note in running.wait(first, "finished")["notes"])
    second = running.client.post("/api/takes", json=long).json()["take"]
    third = running.client.post("/api/takes", json={"prompt": PROMPT, "path": path()} | QUICK).json()["take"]
    running.wait(second, "working")
    worker = running.worker
    running.process.kill()
    worker.wait(PATIENCE)  # it ends by itself: its line is broken
    again = Process(tmp_path / "studio")
    try:
        for take in (second, third):
            again.wait(take, "finished")
        assert [row["take"] for row in again.client.get("/api/takes").json()["takes"]] == [third, second, first]
        assert again.interrupt()[0] == 0
    finally:
        again.process.kill()


@pytest.mark.slow
def test_fifty_pages_and_two_hundred_clicks_at_once_stay_bounded(running):
    """Every take that was accepted ends; every one that was not is told so; nothing grows."""
    import concurrent.futures

    body = {"prompt": PROMPT, "path": path(), "steps": 1}
    cookies = dict(running.client.cookies)
    running.take("/api/takes", body)  # all that is loaded once is loaded
    server = psutil.Process(running.process.pid)
    before, open_before = server.memory_info().rss, server.num_fds()

    def page(number: int) -> list[tuple[int, str]]:
        answers = []
        client = httpx.Client(base_url=running.base, cookies=cookies, timeout=PATIENCE)
        with client, client.stream("GET", "/api/events") as events:
            next(events.iter_lines())
            for _ in range(4):
                answer = client.post("/api/takes", json=body | {"seed": number})
                answers.append((answer.status_code, answer.json().get("take", "")))
        return answers

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = [one for answers in pool.map(page, range(50)) for one in answers]
    accepted = [take for code, take in answers if code == 202]
    assert len(answers) == 200
    assert {code for code, _ in answers} <= {202, 429, 503}
    assert len(accepted) == len(set(accepted)) >= 20
    for take in accepted:
        running.wait(take, "finished")
    end = time.monotonic() + PATIENCE
    while server.num_fds() > open_before + 10 and time.monotonic() < end:  # it hears by and by of pages that have left
        time.sleep(0.1)
    assert server.num_fds() <= open_before + 10
    assert server.memory_info().rss - before < 150e6
