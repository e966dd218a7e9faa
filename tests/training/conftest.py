import pytest
from train_tiny import run


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The run that nobody interrupts."""
    out = tmp_path_factory.mktemp("whole")
    run(out)
    return out
