"""A real browser for the studio's page: the system's Chromium, driven by Playwright."""

import os
import shutil
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
