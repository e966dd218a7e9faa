"""The campaign: damaged inputs, kills, disks, two writers, the kernel; as long as one likes, with counts in a file.

python -m tests.torture --seconds 60                      each part for about a minute
python -m tests.torture --inputs 100000 --kills 200       by number
python -m tests.torture --only "radial maps" --number 17  one input again, with its traceback
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from pathlib import Path
from random import Random

from curvedray.bench.harness import hardware
from torture import kernel_sanitizers
from torture.commands import ATTACKED_COMMANDS
from torture.disks import on_a_full_disk, on_a_read_only_disk, two_at_once
from torture.files import FILES, Target
from torture.fuzz import MEMORY, SECONDS, Outcome, attack_all
from torture.jobs import RESUMABLE, STOPPABLE, WRITING
from torture.kills import Series, kill_and_resume, stop_by_sigterm

TARGETS: tuple[type[Target], ...] = (*FILES, *ATTACKED_COMMANDS)
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
PARTS = ("inputs", "kills", "sigterm", "disks", "writers", "kernel")


def main() -> None:
    asked = _arguments()
    if asked.number is not None:
        _one_input(asked.only, asked.number)
        return
    warm_up()
    sections, findings = [], 0
    for part in asked.parts:
        started = time.monotonic()
        text, found = _PARTS[part](asked)
        print(f"{part}: {found} findings, {time.monotonic() - started:.0f} s", flush=True)
        sections.append(f"## {part}\n\n{text}\n")
        findings += found
        report = _report(sections, asked.hardware)  # after each part: a campaign that is cut short keeps what it has
    print(f"{findings} findings in all: {report}")
    sys.exit(1 if findings else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="how long each part may take, about")
    parser.add_argument("--inputs", type=int, help="damaged inputs in all (100000)")
    parser.add_argument("--kills", type=int, help="kills in all (200)")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first input")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--only", help=f"one target: {', '.join(target.name for target in TARGETS)}")
    parser.add_argument("--number", type=int, help="one input of that target, again")
    parser.add_argument("--hardware", default=f"{os.cpu_count()}-cores", help="for the name of the results")
    return parser.parse_args()


def warm_up() -> None:
    """Import what the jobs use, once, before anything is forked."""
    import train_tiny  # noqa: F401

    import curvedray.cli
    import curvedray.data.cache
    import curvedray.evaluate.html_page
    import curvedray.evaluate.run
    import curvedray.generation.write
    import curvedray.world.preview  # noqa: F401


def _one_input(only: str | None, number: int) -> None:
    target = next(target for target in TARGETS if target.name == only)
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    os.chdir(folder)
    print(f"{only}, number {number}, in {folder}")
    target(folder).attack(Random(f"{target.name} {number}"))


def _inputs(asked: argparse.Namespace) -> tuple[str, int]:
    targets = [target for target in TARGETS if asked.only in (None, target.name)]
    inputs = asked.inputs or (100_000 if asked.seconds is None else 10**7)
    outcome = attack_all(targets, inputs, seed=asked.seed, seconds=None if asked.inputs else asked.seconds)
    return inputs_table(outcome), len(outcome.findings)


def inputs_table(outcome: Outcome) -> str:
    """Counts by target, and every kind of finding with its first number."""
    rows = ["| target | inputs | read | refused | found | slowest |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in outcome.counts):
        read, refused, found = (outcome.counts[name, kind] for kind in ("read", "refused", "found"))
        total, slowest = read + refused + found, outcome.slowest[name]
        rows.append(f"| {name} | {total} | {read} | {refused} | {found} | {slowest:.2f} s |")
    limits = f"each within {SECONDS:.0f} s of the processor and {MEMORY / 1e9:.0f} GB"
    lines = [f"{outcome.inputs} inputs, {limits}; {len(outcome.findings)} findings.", "", *rows]
    kinds = Counter((finding.target, finding.kind) for finding in outcome.findings)
    first = {(finding.target, finding.kind): finding for finding in reversed(outcome.findings)}
    for kind, count in kinds.most_common():
        lines.append(f"\n{count} x {kind[0]}, first number {first[kind].number}: `{first[kind].what}`")
    return "\n".join(lines)


def _kills(asked: argparse.Namespace) -> tuple[str, int]:
    share = asked.seconds / len(RESUMABLE) if asked.seconds else None
    count = (asked.kills or (200 if share is None else 10**6)) // len(RESUMABLE)
    return _series_table([kill_and_resume(job, count, seconds=share) for job in RESUMABLE])


def _sigterm(asked: argparse.Namespace) -> tuple[str, int]:
    share = asked.seconds / len(STOPPABLE) if asked.seconds else None
    count = (asked.kills or (60 if share is None else 10**6)) // len(STOPPABLE)
    return _series_table([stop_by_sigterm(job, count, seconds=share) for job in STOPPABLE])


def _series_table(series: list[Series]) -> tuple[str, int]:
    rows = ["| command | file operations | stopped | problems |", "|---|---|---|---|"]
    rows += [f"| {one.job} | {one.operations} | {one.kills} | {len(one.problems)} |" for one in series]
    problems = [f"\n{one.job}: {problem}" for one in series for problem in one.problems]
    return "\n".join([*rows, *problems]), len(problems)


def _disks(asked: argparse.Namespace) -> tuple[str, int]:
    return _problems([f for job in WRITING for attack in (on_a_full_disk, on_a_read_only_disk) for f in attack(job)])


def _writers(asked: argparse.Namespace) -> tuple[str, int]:
    return _problems([problem for job in WRITING for problem in two_at_once(job)])


def _problems(problems: list[str]) -> tuple[str, int]:
    names = ", ".join(job.name for job in WRITING)
    return "\n\n".join([f"Commands: {names}. {len(problems)} problems.", *problems]), len(problems)


def _kernel(asked: argparse.Namespace) -> tuple[str, int]:
    """The compiled kernel under address and undefined-behaviour sanitizers."""
    try:
        return f"{kernel_sanitizers.run()} cases, nothing found.", 0
    except RuntimeError as error:
        return str(error), 1


_PARTS = {
    "inputs": _inputs,
    "kills": _kills,
    "sigterm": _sigterm,
    "disks": _disks,
    "writers": _writers,
    "kernel": _kernel,
}


def _report(sections: list[str], machine: str) -> Path:
    command = " ".join(["python -m tests.torture", *sys.argv[1:]])
    head = f"# The torture campaign\n\n`{command}`, {date.today().isoformat()}\n\n{hardware()}\n\n"
    path = RESULTS / f"torture_{machine}_{date.today().isoformat()}.md"
    path.write_text(head + "\n".join(sections))
    return path
