"""The campaign in short: some inputs of every target, some kills of every command; `make torture` goes on for longer.

A failure names a target and a number: `python -m tests.torture --only TARGET --number N` makes it again.
"""

import pytest
import torch

from curvedray.errors import InputError
from torture.campaign import TARGETS, inputs_table, warm_up
from torture.disks import on_a_full_disk, on_a_read_only_disk, two_at_once
from torture.fuzz import Hang, Outcome, attack_all, attacked
from torture.jobs import CAMERAS, CLIPS, MAKE, TRAIN
from torture.kills import kill_and_resume, stop_by_sigterm


@pytest.fixture(scope="module", autouse=True)
def warm():
    warm_up()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_damaged_inputs_are_read_or_refused(target):
    outcome = attack_all([target], 2 if target.share == 1 else 6)
    assert not outcome.findings, inputs_table(outcome)
    assert target.share == 1 or outcome.counts[target.name, "refused"]  # the wounds are felt


class Multiplying:
    """What torch would share out among threads."""

    name, share = "multiplying", 1

    def __init__(self, folder):
        pass

    def attack(self, chance):
        torch.rand(400, 400).exp().matmul(torch.rand(400, 400))


def test_a_worker_does_not_wait_for_threads_that_its_parent_had():
    """Whatever ran before in this process: it hung where an earlier test had used two threads of torch."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.rand(400, 400).exp().matmul(torch.rand(400, 400))
        assert not attack_all([Multiplying], 2).findings
    finally:
        torch.set_num_threads(before)


class Crashing:
    """What an attack may do, by its number."""

    name, share = "crashing", 1

    def __init__(self, folder):
        pass

    def attack(self, chance):
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [(InputError("a", "b", "c"), "refused"), (KeyError("a"), "found"), (Hang("slow"), "found")],
    ids=["a sentence", "a traceback", "a hang"],
)
def test_the_campaign_tells_a_sentence_from_a_traceback(fault, outcome):
    target = Crashing(None)
    target.fault = fault
    assert attacked(target, 0)["outcome"] == outcome


class Dying(Crashing):
    """Half of its inputs end the process."""

    def attack(self, chance):
        if chance.random() < 0.5:
            import os

            os._exit(7)


def test_the_campaign_survives_an_input_that_ends_the_process():
    outcome = attack_all([Dying], 8)
    assert isinstance(outcome, Outcome)
    assert outcome.inputs == 8
    assert 0 < len(outcome.findings) < 8
    assert all("code 7" in finding.what for finding in outcome.findings)


@pytest.mark.parametrize("job", [TRAIN, CLIPS], ids=lambda job: job.name)
def test_killed_at_a_file_operation_it_ends_the_same(job):
    series = kill_and_resume(job, 1)
    assert series.kills == 1
    assert series.operations > 5
    assert not series.problems


@pytest.mark.parametrize("job", [MAKE], ids=lambda job: job.name)
def test_stopped_by_sigterm_it_leaves_nothing_hidden(job):
    assert not stop_by_sigterm(job, 1).problems


@pytest.mark.parametrize("job", [CAMERAS, CLIPS], ids=lambda job: job.name)
def test_full_and_read_only_disks_are_a_sentence(job):
    assert not on_a_full_disk(job) + on_a_read_only_disk(job)


@pytest.mark.parametrize("job", [CLIPS], ids=lambda job: job.name)
def test_two_writers_leave_whole_files(job):
    assert not two_at_once(job)
