"""The documentation builds as a site, whole and without a network, with every page in its menu."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"  # broken links, pages that are not in mkdocs.yml's nav
    return folder


def test_nothing_is_fetched_when_a_page_is_read(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        fetched = re.findall(r"<(?:script|img|iframe|source)[^>]+src=\"?(?:https?:)?//[^\" >]*", text)
        fetched += re.findall(r"<link[^>]+stylesheet[^>]+href=\"?(?:https?:)?//[^\" >]*", text)
        assert fetched == [], page.name


def test_the_reference_has_every_public_name_and_room(site):
    import curvedray

    public = (site / "reference" / "index.html").read_text()
    assert [name for name in curvedray.__all__ if f'.{name}"' not in public] == []
    rooms = {path.parent.name for path in (ROOT / "curvedray").glob("*/__init__.py")} - {"cli"}
    assert rooms <= {page.stem for page in (site / "reference").glob("*.html")}
