"""A real Ray cluster on this machine: several workers, some of which are killed in the middle of their work."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import pytest
import ray
from ray_jobs import open_broken, open_deadly, open_refusing, open_squares, open_warning
from tiny import TinyFootage

from curvedray.data.folders import write_folder
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


@pytest.fixture
def guarded():
    """`ray start --head` with a token, on loopback: its address, and the environment of those it lets in."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # a socket's path is short
    outside = {key: value for key, value in os.environ.items() if not key.startswith("RAY_AUTH")}
    outside |= {"HOME": folder, "RAY_USAGE_STATS_ENABLED": "0"}  # where no token lies
    inside = outside | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex}
    words = ["--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=1"]
    words += [f"--object-store-memory={SMALL['object_store_memory']}", "--include-dashboard=false"]
    words += [f"--temp-dir={folder}/ray"]
    start = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", *words]
    with open(f"{folder}/said", "w") as said:
        head = subprocess.Popen(start, env=inside, stdout=said, stderr=said)
    try:
        while "Ray runtime started" not in Path(folder, "said").read_text():
            assert head.poll() is None, Path(folder, "said").read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}", outside, inside
    finally:
        head.terminate()
        head.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_cluster_with_a_token_lets_in_who_has_it_and_the_others_are_told(guarded, tmp_path):
    """Regression: without the token, `Start it with ray start --head` was said of a cluster that ran."""
    address, outside, inside = guarded
    write_folder(TinyFootage(2), tmp_path / "clips")
    words = ["data", "shard", "clips", "-o", "shards", "--engine", "ray", "--address", address]

    def curvedray(environment):
        command = [sys.executable, "-m", "curvedray", *words]
        return subprocess.run(command, env=environment, cwd=tmp_path, text=True, capture_output=True, timeout=200)

    refused = curvedray(outside)
    assert refused.returncode == 2
    assert "If it has a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN" in " ".join(refused.stderr.split())
    done = curvedray(inside)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shards" / "index.json").is_file()
