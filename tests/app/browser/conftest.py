"""A real browser for the studio's page: the system's Chromium, driven by Playwright."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from studio_visit import Visit, find_chromium

STATIC = Path(__file__).parents[3] / "curvedray" / "app" / "static"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    from playwright import sync_api

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


@pytest.fixture(scope="session")
def studio_address(tmp_path_factory) -> Iterator[str]:
    """A studio of its own, as `curvedray app` starts it, or one at STUDIO_ADDRESS; the address holds the token."""
    if "STUDIO_ADDRESS" in os.environ:
        yield os.environ["STUDIO_ADDRESS"]
        return
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
    server.wait(timeout=300)


@pytest.fixture
def visit(chromium, studio_address) -> Iterator[Visit]:
    visited = Visit(chromium, studio_address)
    yield visited
    visited.end()
