"""Every command that writes, small enough to run a hundred times; and what of its files must come out the same."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.child import command_line
from torture.files import good_cameras, good_frames


@dataclass(frozen=True)
class Job:
    """A command that writes below its folder. `again` is how it is resumed, where that is another command."""

    name: str
    run: Callable[[], object]
    again: Callable[[], object] | None = None
    prepare: Callable[[Path], None] = lambda folder: None
    varies: tuple[str, ...] = ()  # endings of files that hold times

    @property
    def resume(self) -> Callable[[], object]:
        return self.again or self.run


def _train(resume: bool) -> Callable[[], object]:
    def work() -> None:
        from train_tiny import run

        from curvedray.errors import InputError

        try:
            run(Path("out"), resume=resume)
        except InputError as error:  # as the command line has it
            print(f"error: {error}")
            sys.exit(2)

    return work


def _cache() -> None:
    """Six clips of the tiny model."""
    from tiny import TinyFootage, TinyModel

    from curvedray.data.cache import build_cache
    from curvedray.data.clips import VideoShape

    build_cache(TinyFootage(6), TinyModel(), VideoShape(9, 32, 48), Path("out"))


def _as_command(work: Callable[[], object]) -> Callable[[], None]:
    """A user's mistake is a sentence and exit code 2, as the command line has it."""

    def run() -> None:
        from curvedray.errors import InputError

        try:
            work()
        except InputError as error:
            print(f"error: {error}")
            sys.exit(2)

    return run


def _clips(folder: Path) -> None:
    from curvedray.formats import write_cameras
    from curvedray.media.video import write_video

    for name in "ab":
        write_video(good_frames(), folder / "videos" / f"{name}.mp4", 8.0)
        write_cameras(good_cameras(), folder / "cameras" / f"{name}.json")


PROMPT = "a red ball in a desert courtyard"
GENERATE = ("generate", PROMPT, "--move", "orbit left", "--model", "random", "--adapter", "none", "--steps", "1")
EVALUATE = ("evaluate", "videos", "--cameras", "cameras", "--estimator", "oracle", "--recovered", "cameras")
TRAIN = Job("train", _train(False), _train(True), varies=("log.jsonl",))
CLIPS = Job("clips of a cache", _as_command(_cache))
CACHE = Job("data cache", command_line("data", "cache", "world", "--clips", "2", "--model", "random", "-o", "out"))
MAKE = Job("generate", command_line(*GENERATE, "--frames", "5", "--zoom", "1", "-o", "out/a.mp4"))
SCORE = Job("evaluate", command_line(*EVALUATE, "-o", "out"), prepare=_clips)
LOOK = ("preview", "--move", "static", "--size", "32x32", "--frames", "2")
PREVIEW = Job("preview", command_line(*LOOK, "-o", "out/a.mp4"))
CAMERAS = Job("cameras make", command_line("cameras", "make", "static", "out/a.json"))
EXAMPLE = Job("data example", command_line("data", "example", "--clips", "2", "-o", "out"))

RESUMABLE = (TRAIN, CLIPS, MAKE, SCORE)  # killed, and run again
STOPPABLE = (CACHE, MAKE, SCORE, PREVIEW, CAMERAS, EXAMPLE)  # stopped by SIGTERM
WRITING = (TRAIN, CLIPS, *STOPPABLE)  # on full and read-only disks, and two at a time
