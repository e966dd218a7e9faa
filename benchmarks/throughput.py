"""How fast clips are labelled, encoded, shot and trained on, per core, and how that grows with workers.

`python benchmarks/throughput.py > benchmarks/results/throughput_MACHINE_DATE.md`, on a machine that does nothing else:
about ten minutes on two cores. What is being measured is said on standard error.

Jobs run on a Ray cluster of this machine's own, by the functions that the commands use; training runs under torch's
launcher. A clip's seconds are of the processor: they hardly change with what else the machine does. Clips per second
are by the clock, from when every worker has answered to the last result, and do change with it; so does how they grow.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from curvedray.bench.harness import hardware
from curvedray.data.cache import open_encoder
from curvedray.data.clips import VideoShape
from curvedray.data.panoramas import Panorama
from curvedray.data.shoot import Shot, in_passes, open_camera
from curvedray.data.shot_jobs import plan_shots
from curvedray.data.sources import open_footage
from curvedray.engine import Engine, run_jobs
from curvedray.evaluate.label import make_teacher, open_labeller
from curvedray.evaluate.matching import Job
from curvedray.formats import write_cameras
from curvedray.media.image import write_png
from curvedray.media.video import write_video
from curvedray.models.open import load_on_gpu_if_any
from curvedray.tables import markdown_table
from curvedray.world.panorama import panorama_frames
from curvedray.world.world import scene, world_clip

SHAPE, LARGE = VideoShape(17, 64, 96), VideoShape(81, 480, 832)  # the embedded model's, and Wan's
STEPS = 20
TRAIN = f"train (quick recipe, {STEPS} steps)"


Open = Callable[[], Callable[[Any], Any]]
Why = Callable[[Any], str]  # of a result: why it is none, or nothing


def timed_worker(open_worker: Open, why: Why) -> Callable[[Any], float]:
    """A worker that answers with the processor seconds of each job, in place of its result, which must be one."""
    torch.set_num_threads(1)
    work = open_worker()

    def timed(job: Any) -> float:
        began = time.process_time()
        failure = why(work(job))
        assert not failure, failure
        return time.process_time() - began

    return timed


def rate(jobs: Sequence[Any], open_worker: Open, why: Why, workers: int) -> tuple[float, float]:
    """Processor seconds per job (the median), and jobs per second by the clock, once every worker is at work."""
    moments: list[float] = []
    opener, engine = partial(timed_worker, open_worker, why), Engine("ray", workers=workers)
    seconds = run_jobs(jobs, opener, engine, done=lambda *_: moments.append(time.perf_counter()))
    return median(seconds), (len(moments) - workers) / (moments[-1] - moments[workers - 1])


def label_jobs(folder: Path, clips: int) -> list[Job]:
    """Clips of the world as videos with their cameras."""
    folder.mkdir()
    jobs = []
    for number in range(clips):
        clip = world_clip(number)
        video = write_video(clip.video, folder / f"{number}.mp4", 8)
        cameras = folder / f"{number}-cameras.json"
        write_cameras(clip.cameras, cameras)
        jobs.append(Job(str(number), video, cameras))
    return jobs


def still_panorama(folder: Path) -> Panorama:
    """A court at 4096 x 2048."""
    picture, _ = next(panorama_frames(scene(3).scene, torch.eye(4)[None], 2048, samples=1))
    write_png(torch.from_numpy(picture), folder / "still.png")
    return Panorama(folder / "still.png", id="still")


def training_seconds(folder: Path, processes: int) -> tuple[float, float]:
    """Seconds by the clock per step and clips per second, of the quick recipe on random weights."""
    words = [
        "train",
        "quick",
        "model=random",
        f"steps={STEPS}",
        "data.clips=8",
        "every.validate=0",
        "every.checkpoint=0",
    ]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *(launcher if processes > 1 else []), "-m", "curvedray", *words, "-o", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    seconds = median(record["seconds"] - record["waited"] for record in records if "seconds" in record)
    batch = json.loads((folder / "recipe.json").read_text())["batch"]
    return seconds, batch / seconds


def failures_of(shots: Sequence[Shot]) -> str:
    return "".join(shot.failure for shot in shots)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """A Ray cluster of this machine's own for all measurements: starting one takes longer than some of them."""
    import ray

    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    said = parser.parse_args()
    if said.clips < 2 * (max(said.workers) + 1):
        parser.error(
            f"--clips: at least {2 * (max(said.workers) + 1)}, for every worker has clips before time is taken"
        )
    load = os.getloadavg()[0]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}  # what, workers -> seconds and clips per second
    with tempfile.TemporaryDirectory() as name, cluster(max(said.workers)):
        folder = Path(name)
        say("clips to label and a panorama to shoot are drawn")
        videos, still = label_jobs(folder / "videos", said.clips), still_panorama(folder)
        source = open_footage("world", SHAPE, said.clips)
        # Numbers of workers in turn, round after round: what disturbs the machine for a while disturbs them alike.
        for number, workers in [(i, j) for i in range(said.rounds) for j in said.workers]:
            own = folder / f"{number}-{workers}"  # what is there is not done again: each measurement does its own
            shots = plan_shots([still], said.clips // 2, own / "shots", LARGE, lenses=["fisheye-150"])
            teacher, model = partial(make_teacher, "embedded"), partial(load_on_gpu_if_any, "embedded")
            label = partial(open_labeller, teacher, own / "labels", None)
            encode = partial(open_encoder, model, source, SHAPE, own / "cache", "float32")
            parts: list[tuple[str, Sequence[Any], Open, Why]] = [
                ("label (embedded teacher, 17 x 64 x 96)", videos, label, lambda made: made[0].failure),
                ("draw and encode (embedded model, 17 x 64 x 96)", range(said.clips), encode, lambda made: made.reason),
                ("shoot (81 x 480 x 832 from a still panorama)", in_passes(shots), open_camera, failures_of),
            ]
            for what, jobs, opener, why in parts:
                say(f"{what}, workers: {workers}, round {number + 1}")
                found.setdefault((what, workers), []).append(rate(list(jobs), opener, why, workers))
            say(f"{TRAIN}, processes: {workers}, round {number + 1}")
            found.setdefault((TRAIN, workers), []).append(training_seconds(own / "run", workers))
    measured = [
        (what, workers, *(median(column) for column in zip(*rounds, strict=True)))
        for (what, workers), rounds in found.items()
    ]
    print("# Throughput: label, encode, shoot, train\n")
    words = f"--clips {said.clips} --rounds {said.rounds}"
    print(f"`python benchmarks/throughput.py {words}`, medians of the rounds, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n")
    print(
        f"{hardware()}; one thread per worker. {load:.1f} processes wanted to run when it began, "
        f"{os.getloadavg()[0]:.1f} when it ended\n"
    )
    head = ["what", "workers", "seconds per clip (processor; training: by the clock)", "clips per second (clock)"]
    fewest = min(said.workers)
    alone = {what: clips for what, workers, _, clips in measured if workers == fewest}
    rows = [
        [
            what,
            str(workers),
            f"{seconds:.3g}{' per step' * (what == TRAIN)}",
            f"{clips:.3g}",
            f"{clips / alone[what]:.2f}",
        ]
        for what, workers, seconds, clips in sorted(measured)
    ]
    print(markdown_table([*head, f"times that of {fewest}"], rows))
    if max(load, os.getloadavg()[0]) > max(said.workers) + 0.5:
        print("\nOther work ran on this machine meanwhile: what is by the clock, and how it grows, says little.")


if __name__ == "__main__":
    main()
