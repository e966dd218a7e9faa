"""How many threads a command takes: small models work alone."""

import pytest
import torch

from curvedray.cli.threads import set_threads
from curvedray.errors import InputError


@pytest.mark.parametrize(
    ("said", "environment", "small", "taken"),
    [
        (None, None, True, 1),  # regression: two threads waited for each other, 81 s where one takes 9
        (None, None, False, 3),
        (None, "3", True, 3),
        (2, "3", True, 2),
        (2, None, False, 2),
    ],
)
def test_who_decides(monkeypatch, said, environment, small, taken):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if environment is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", environment)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        set_threads(said, small=small)
        assert torch.get_num_threads() == taken
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [0, -1, 10**6])
def test_no_machine_has_so_many(threads):
    with pytest.raises(InputError, match="--threads"):
        set_threads(threads, small=True)
