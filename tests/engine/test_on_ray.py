"""A real Ray cluster on this machine: several workers, some of which are killed in the middle of their work."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import ray
from ray_jobs import open_broken, open_deadly, open_refusing, open_squares, open_warning

from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError

pytestmark = pytest.mark.slow
TWO = Engine("ray", workers=2)


SMALL = {"object_store_memory": 100 * 1024**2, "include_dashboard": False}


@pytest.fixture(scope="module", autouse=True)
def workers_find_these_jobs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def cluster(workers_find_these_jobs):
    """One cluster for the tests of this file; `run_jobs` joins the one that is there."""
    ray.init(address="local", num_cpus=2, log_to_driver=False, **SMALL)
    yield
    ray.shutdown()


def kill_the_holder(folder: Path) -> None:
    """SIGKILL the worker that notes itself in `held`."""
    while not (folder / "held").exists():
        time.sleep(0.02)
    while not (text := (folder / "held").read_text()):
        time.sleep(0.02)
    os.kill(int(text), signal.SIGKILL)


def test_a_killed_worker_loses_nothing_and_nothing_is_done_twice(cluster, tmp_path, capsys):
    killer = threading.Thread(target=kill_the_holder, args=(tmp_path,), daemon=True)
    killer.start()
    heard = []
    results = run_jobs(
        list(range(12)), partial(open_squares, tmp_path, 5), TWO, done=lambda number, result: heard.append(number)
    )
    killer.join()
    assert results == [number**2 for number in range(12)]
    assert sorted(heard) == list(range(12))
    worked = [int(line.split()[0]) for line in (tmp_path / "worked").read_text().splitlines()]
    assert sorted(worked) == sorted([*range(12), 5])  # the job that was interrupted, and no other, again
    opened = {path.name.removeprefix("opened-") for path in tmp_path.glob("opened-*")}
    assert (tmp_path / "held").read_text() in opened
    assert 2 <= len(opened) <= 3  # each worker once; the other may have finished before a third was there
    assert "(raylet)" not in capsys.readouterr().out  # standard output is for results
    run_jobs(list(range(12)), partial(open_squares, tmp_path), TWO)
    assert len((tmp_path / "worked").read_text().splitlines()) == 13  # all was there


def test_results_do_not_depend_on_the_engine_or_the_number_of_workers(cluster, tmp_path):
    found = []
    for name, engine in {"here": HERE, "one": Engine("ray", workers=1), "two": TWO}.items():
        (tmp_path / name).mkdir()
        run_jobs(list(range(5)), partial(open_squares, tmp_path / name), engine)
        found.append({file.name: file.read_bytes() for file in (tmp_path / name).glob("*.txt")})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 5


def test_a_job_that_kills_every_worker_is_lost_and_the_rest_is_done(cluster, tmp_path):
    results = run_jobs(list(range(6)), partial(open_deadly, tmp_path, 2), TWO, lost=lambda job, reason: reason)
    assert "died" in results.pop(2)
    assert results == [0, 1, 3, 4, 5]
    heard = []
    with pytest.raises(InputError, match="number 2") as caught:
        run_jobs(list(range(6)), partial(open_deadly, tmp_path, 2), TWO, done=lambda number, _: heard.append(number))
    assert "kept" in caught.value.fix
    assert sorted(heard) == [0, 1, 3, 4, 5]


def test_a_worker_that_breaks_is_replaced_and_its_job_is_named(cluster):
    results = run_jobs([0, 1, 2], open_broken, TWO, lost=lambda job, reason: reason)
    assert results == [0, "RuntimeError: an illegal memory access", 2]


def test_a_users_mistake_stops_the_run_with_its_sentence(cluster):
    with pytest.raises(InputError, match=r"weights: expected a file, got none\. Name it\."):
        run_jobs([1, 2], open_refusing, TWO)


def test_what_workers_warn_of_is_said_here(cluster, caplog):
    run_jobs([1, 3], open_warning, TWO)
    assert sorted(record.getMessage() for record in caplog.records) == ["number 1 is odd", "number 3 is odd"]


def test_relative_paths_mean_what_they_mean_here(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_jobs([2, 3], partial(open_squares, Path()), TWO)
    assert {file.name for file in tmp_path.glob("*.txt")} == {"2.txt", "3.txt"}


def test_a_node_that_goes_away_loses_nothing(tmp_path):
    """Two nodes, one worker each; the node of the one that holds a job is taken down."""
    from ray.cluster_utils import Cluster

    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=SMALL["object_store_memory"])
        cluster.wait_for_nodes()

        def take_down() -> None:
            while len(list(tmp_path.glob("opened-*"))) < 2:
                time.sleep(0.02)
            cluster.remove_node(second, allow_graceful=False)

        threading.Thread(target=take_down, daemon=True).start()
        engine = Engine("ray", address=cluster.address, workers=2)
        results = run_jobs(list(range(60)), partial(open_squares, tmp_path), engine)
        assert results == [number**2 for number in range(60)]
        worked = [int(line.split()[0]) for line in (tmp_path / "worked").read_text().splitlines()]
        assert set(worked) == set(range(60))
        assert len(worked) <= 61  # at most the job that the lost node had in hand was begun again
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_an_address_where_nobody_is_is_one_sentence():
    ray.shutdown()
    with pytest.raises(InputError, match="a Ray cluster that answers"):
        run_jobs([1], open_broken, Engine("ray", address="127.0.0.1:1"))
