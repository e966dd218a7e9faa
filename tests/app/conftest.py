"""A studio in this process, for tests that need no worker."""

from pathlib import Path

import pytest
from studio_client import Asker

from curvedray.app.studio import Studio


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "studio")


@pytest.fixture
def ask(studio: Studio) -> Asker:
    return Asker(studio)
