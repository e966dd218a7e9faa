"""Disks that are full or may not be written to, and two writers at once: a sentence, and nothing half-written.

Root mounts a small tmpfs; others limit the size of files, and take away their own leave to write.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from pathlib import Path

from torture.child import Ended, contents, hidden_in, in_child
from torture.jobs import Job
from torture.kills import fresh_folder

ROOM = (4, 64, 200)  # KB of disk: no job fits the smallest, some fit the largest


def on_a_full_disk(job: Job) -> list[str]:
    """What goes wrong when a job runs out of disk, sooner and later."""
    problems = []
    for room in ROOM:
        with small_disk(room) as disk, fresh_folder(job) as folder:
            if disk is not None:
                (folder / "out").symlink_to(disk)
            # Without a disk of its own no file may be larger than this, which the smallest videos are.
            ended = in_child(job.run, folder, largest_file=None if disk else room * 10)
            problems += _refused(f"{job.name} on a disk of {room} KB", ended, disk or folder)
            if room == min(ROOM) and ended.code != 2:
                problems.append(f"{job.name} on a disk of {room} KB: exit code {ended.code}, not 2")
    return problems


def on_a_read_only_disk(job: Job) -> list[str]:
    """What goes wrong where nothing may be written."""
    with small_disk(1000) as disk, fresh_folder(job) as folder:
        if disk is not None:
            shutil.copytree(folder, disk, dirs_exist_ok=True)
            folder = disk
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True, check=True)
        else:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o555 if path.is_dir() else 0o444)
        before = sorted(folder.rglob("*"))
        ended = in_child(job.run, folder)
        problems = _refused(f"{job.name} on a read-only disk", ended, folder)
        if ended.code != 2 or sorted(folder.rglob("*")) != before:
            problems.append(f"{job.name} on a read-only disk: exit code {ended.code}, not 2: {ended.said[-200:]}")
        if disk is None:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755)
    return problems


def _refused(where: str, ended: Ended, folder: Path) -> list[str]:
    problems = [f"{where}: {ended.problem}"] if ended.problem else []
    return problems + [f"{where}: left {name}" for name in hidden_in(folder)]


def two_at_once(job: Job) -> list[str]:
    """Two of one job into one folder: each ends well or refuses, and the files are those of one of them, whole."""
    with fresh_folder(job) as folder:
        in_child(job.run, folder)
        whole = contents(folder / "out", but=job.varies)
    with fresh_folder(job) as folder, ThreadPool(2) as pool:
        both = pool.map(lambda _: in_child(job.run, folder), range(2))
        problems = [f"{job.name}, two at once: {ended.problem}" for ended in both if ended.problem]
        if not any(ended.code == 0 for ended in both):
            problems.append(f"{job.name}, two at once: neither ended well: {both[0].said[-200:]}")
        got = contents(folder / "out", but=job.varies)
        names = sorted(name for name in set(whole) | set(got) if whole.get(name) != got.get(name))
        problems += [f"{job.name}, two at once: {name} is not as one writer's" for name in names]
        return problems + [f"{job.name}, two at once: left {name}" for name in hidden_in(folder)]


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path | None]:
    """A tmpfs of that size; None where none may be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="torture-disk-"))
    options = ["-t", "tmpfs", "-o", f"size={kilobytes}k,mode=777", "torture", str(folder)]
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    mounted = mounted and subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
