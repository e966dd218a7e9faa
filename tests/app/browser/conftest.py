"""A real browser for the studio's page: the system's Chromium, driven by Playwright."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

STATIC = Path(__file__).parents[3] / "curvedray" / "app" / "static"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install 'curvedray[dev]'")
    if find_chromium() is None:
        pytest.skip("no browser: apt-get install chromium, or CHROMIUM=/path/of/one")
    with sync_api.sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright) -> Iterator[Any]:
    browser = playwright.chromium.launch(executable_path=find_chromium())
    yield browser
    browser.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="session")
def static_files() -> Iterator[str]:
    """The address of the page's own files, without the studio's server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=STATIC))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


TOKEN = "for-the-tests"
READY = """() => {
  const { studio } = window;
  if (!studio?.shot.ready || document.getElementById('main').hasAttribute('aria-busy')) return false;
  const { derived, finder } = studio;
  return !derived.paths.busy && !derived.scenes.busy && finder.painter.finished;
}"""


@pytest.fixture(scope="session")
def studio_address(tmp_path_factory) -> Iterator[str]:
    """A studio of its own, as `curvedray app` starts it; the address holds the token."""
    folder = tmp_path_factory.mktemp("studio")
    words = ["app", "--no-browser", "--port", "0", "--folder", str(folder), "--token", TOKEN]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "curvedray", *words]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:"), server.communicate(timeout=10)
    yield address
    server.terminate()
    server.wait(timeout=30)


class Visit:
    """A page of the studio that fails the test on any error in its console and any request to elsewhere."""

    def __init__(self, browser: Any, address: str, **context: Any):
        self.wrong: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        origin = address.split("/?")[0]
        self.page.on(
            "console", lambda said: self.wrong.append(f"console: {said.text}") if said.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", lambda request: self._check(request.url, origin))
        self.page.goto(address)
        self.settle()

    def _check(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "blob:", "data:")):
            self.wrong.append(f"foreign request: {url}")

    def settle(self) -> None:
        """Until nothing is asked of the server and the fine picture is drawn."""
        self.page.wait_for_timeout(150)
        self.page.wait_for_function(READY, timeout=60_000)

    def tell(self, expression: str) -> Any:
        """What the page's own state says: an expression of `studio`."""
        return self.page.evaluate(f"() => {{ const {{ studio }} = window; return {expression}; }}")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def picture(self, name: str) -> None:
        """A screenshot for the documentation, where STUDIO_PICTURES names its folder."""
        folder = os.environ.get("STUDIO_PICTURES")
        if folder:
            self.page.wait_for_timeout(800)  # the film strip
            self.settle()
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def end(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def visit(chromium, studio_address) -> Iterator[Visit]:
    visited = Visit(chromium, studio_address)
    yield visited
    visited.end()
