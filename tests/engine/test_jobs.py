"""Jobs in this process: in order, a worker opened once and only for work, refusals that name what to say."""

from functools import partial

import pytest
from ray_jobs import open_refusing, open_squares

from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError


def test_jobs_run_in_order_with_a_worker_that_is_opened_once(tmp_path):
    heard = []
    results = run_jobs(
        [3, 1, 2], partial(open_squares, tmp_path), HERE, done=lambda number, result: heard.append((number, result))
    )
    assert results == [9, 1, 4]
    assert heard == [(0, 9), (1, 1), (2, 4)]
    assert len(list(tmp_path.glob("opened-*"))) == 1


def test_no_jobs_open_no_worker():
    assert run_jobs([], open_refusing) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "slurm"}, "here or ray"),
        ({"kind": "here", "address": "auto"}, "--engine ray"),
        ({"kind": "here", "workers": 3}, "--engine ray"),
        ({"kind": "ray", "workers": -1}, "workers"),
        ({"kind": "ray", "retries": -1}, "retries"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        Engine(**wrong)
