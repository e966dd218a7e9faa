"""How long a click on Film takes to show something: `python benchmarks/studio.py --takes 5`.

Starts the studio as a user does, waits for its worker, and films as the page does: the time from the request to the
first picture and to the video, and what small requests take meanwhile. `--page` opens the page in the system's Chromium
too (pip install 'curvedray[dev]'): how long a change of the pose, and a block more, take to reach the picture.
Everything is on this machine.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import httpx

from curvedray.bench.harness import hardware

PROMPT = "a red ball and a blue box in a desert courtyard"
PATH = {"moves": "orbit left 30deg", "lens": {"name": "fisheye-150"}}
BLOCKS = {"text": "box 1x1x2m at left 2m ahead 4m; ball 0.5m at right 1m ahead 3m; wall 9x4m at ahead 7m"}
POSE, BLOCK = "page: a change of pose is drawn", "page: a block more is drawn"
# Seconds after the click, on an idle machine with a loaded model; a pose on two cores without a graphics card.
TARGETS = {"first picture": 2.0, "video": 15.0, POSE: 0.1}
DRAWN = """async (kind) => {
  const { finder, blocks, derived, shot } = studio;
  const rest = () => new Promise((resolve) => setTimeout(resolve, 300));
  const count = derived.scene.things.length + 1;
  const began = performance.now();
  if (kind) {
    blocks.add(kind);
    while (derived.scene.things.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
  } else shot.frame = (shot.frame + 1) % shot.frames;
  finder.draw();
  finder.painter.caster.finish();
  const took = performance.now() - began;
  await rest();
  return took / 1000;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--takes", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="measure the page in Chromium, too")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "curvedray", "app", "--no-browser", "--port", "0", "--folder", folder],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            client = httpx.Client(base_url=address.split("/?")[0], follow_redirects=True, timeout=60)
            client.get(address)
            times = {"page": [time.monotonic() - started]}
            while client.get("/api/start").json()["worker"]["state"] != "ready":
                time.sleep(0.05)
            times["model loaded"] = [time.monotonic() - started]
            times |= small_requests(client)
            if asked.page:
                times |= page_times(address)
            times |= takes(client, asked.takes)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    show(times, asked.json)


def small_requests(client: httpx.Client, repeats: int = 20) -> dict[str, list[float]]:
    """What dragging asks for, over and over."""
    keys = [{"position": [0.1 * i, 0, 0.2 * i], "yaw": 5 * i} for i in range(8)]
    asked = {
        "path of a move": ("/api/path", PATH),
        "path of 8 keys": ("/api/path", {"keys": keys}),
        "blocked-out scene": ("/api/scene", {"scene": BLOCKS}),
        "picture, 240 x 160": ("/api/picture", {"scene": BLOCKS, "path": PATH, "width": 240, "height": 160}),
        "description": ("/api/describe", PATH),
    }
    times: dict[str, list[float]] = {}
    for name, (path, body) in asked.items():
        client.post(path, json=body).raise_for_status()  # the first loads what it needs
        for _ in range(repeats):
            began = time.monotonic()
            client.post(path, json=body)
            times.setdefault(name, []).append(time.monotonic() - began)
    return times


def page_times(address: str, repeats: int = 20) -> dict[str, list[float]]:
    """How long the page takes to draw the coarse picture of another pose, and a block from the click on."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_function("() => window.studio?.shot.ready && studio.finder.painter.finished")
        poses = [page.evaluate(DRAWN, None) for _ in range(repeats)]
        page.evaluate("() => studio.panels.scene.choose('blocks')")
        page.wait_for_function("() => studio.derived.scene.kind === 'blocks'")
        added = [page.evaluate(DRAWN, kind) for kind in ("ball", "pillar", "wall", "box")]
        browser.close()
    return {POSE: poses, BLOCK: added}


def takes(client: httpx.Client, count: int) -> dict[str, list[float]]:
    """Films one after another; times from the click."""
    times: dict[str, list[float]] = {"first picture": [], "video": [], "everything": []}
    for seed in range(count):
        began = time.monotonic()
        take = client.post("/api/takes", json={"prompt": PROMPT, "path": PATH, "seed": seed}).json()["take"]
        seen: set[str] = set()
        while "everything" not in seen:
            record = client.get(f"/api/takes/{take}").json()
            there = {"first picture": record["step"] > 0, "video": "video" in record["files"]}
            there["everything"] = record["state"] == "finished"
            for name in [name for name, is_there in there.items() if is_there and name not in seen]:
                times[name].append(time.monotonic() - began)
                seen.add(name)
            assert record["state"] != "failed", record["failure"]
            time.sleep(0.02)
    return times


def show(times: dict[str, list[float]], as_json: bool) -> None:
    medians = {name: statistics.median(values) for name, values in times.items()}
    if as_json:
        print(json.dumps({"median": medians, "all": times}))
        return
    load = os.getloadavg()[0]
    print(f"{hardware()}; load {load:.1f}")
    print("| what | median s | slowest s | target s |\n|---|---|---|---|")
    for name, values in times.items():
        print(f"| {name} | {medians[name]:.3f} | {max(values):.3f} | {TARGETS.get(name, '')} |")


if __name__ == "__main__":
    main()
