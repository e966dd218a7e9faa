"""A lock goes with its holder, whenever that is stopped."""

import os
from pathlib import Path

import pytest

from curvedray.errors import InputError
from curvedray.locks import LOCK, lock_folder


class Stopped(BaseException):
    """What a signal's handler raises."""


@pytest.mark.parametrize("moment", ["taken", "removed"])
def test_a_signal_while_a_lock_is_taken_or_removed_leaves_none(moment, tmp_path, monkeypatch):
    folder, signals = tmp_path / "out", [Stopped()]
    owner, name = (os, "ftruncate") if moment == "taken" else (Path, "unlink")
    real = getattr(owner, name)

    def interrupted(*arguments, **options):
        if signals:
            raise signals.pop()
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(Stopped), lock_folder(folder, "run", "Wait."):
        assert moment == "removed"
    assert not folder.exists()


def test_a_second_writer_is_refused_by_the_firsts_name(tmp_path):
    with lock_folder(tmp_path, "run", "Wait."):
        with pytest.raises(InputError, match=f"process {os.getpid()}"), lock_folder(tmp_path, "run", "Wait."):
            pass
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()
