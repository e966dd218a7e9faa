"""A long video read in part: what its header says, and some of its frames, one at a time."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.media.video import LONGEST_SIDE, opened_video, quarter_turns, upright

QUICKLY_DECODED = 4096 * 2304  # pixels of a frame that is decoded to be looked at; opening its file takes as long


@dataclass(frozen=True)
class VideoHeader:
    """What a video's file says of itself, with the width and height that its frames are read with."""

    frames: int
    width: int
    height: int
    fps: float


def video_header(path: str | Path) -> VideoHeader:
    with opened_video(path) as container:
        stream = container.streams.video[0]
        rate = _rate(stream)
        if max(stream.width, stream.height) > LONGEST_SIDE:
            got = f"{stream.width} x {stream.height}"
            raise InputError(str(path), f"frames of at most {LONGEST_SIDE} pixels per side", got)
        seconds = Fraction(container.duration or 0, 1_000_000)
        if stream.duration is not None and stream.time_base is not None:
            seconds = stream.duration * stream.time_base
        frames = stream.frames or max(1, round(seconds * rate))
        return VideoHeader(frames, *_upright_size(container, stream), float(rate))


def _upright_size(container: Any, stream: Any) -> tuple[int, int]:
    """Width and height after turning. That a film lies on its side is told by its frames alone, so one is decoded.

    A frame that cannot be is left to who reads it, and a very large one, of a panorama, is taken to lie as it should.
    """
    from av.error import FFmpegError

    width, height = stream.width, stream.height
    if width == height or width * height > QUICKLY_DECODED:
        return width, height
    stream.codec_context.options = {"max_pixels": str(QUICKLY_DECODED)}  # it may be larger than the header says
    with suppress(FFmpegError):
        if any(quarter_turns(frame) % 2 for frame in islice(container.decode(stream), 1)):
            return height, width
    return width, height


def video_frames(path: str | Path, first: int = 0, count: int | None = None) -> Iterator[UInt8[Tensor, "h w 3"]]:
    """Frames from number `first` on, `count` of them or all. A file that ends before is an InputError."""
    given = 0
    with opened_video(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        rate, start = _rate(stream), stream.start_time or 0
        if first and stream.time_base is not None:
            # To the key frame at or before it: decoders start there.
            container.seek(start + int(first / rate / stream.time_base), stream=stream, backward=True)
        number = None
        for frame in container.decode(stream):
            number = _number(frame, start, stream.time_base, rate) if number is None else number + 1
            if number < first:
                continue
            yield upright(frame)
            given += 1
            if given == count:
                return
    if given == 0 or count is not None:
        expected = f"{count} frames from number {first} on" if count is not None else "at least one frame"
        raise InputError(str(path), expected, f"{given} that can be decoded", "Is the file complete?")


def _rate(stream: Any) -> Fraction:
    return Fraction(stream.average_rate or stream.guessed_rate or 1)


def _number(frame: Any, start: int, time_base: Fraction | None, rate: Fraction) -> int:
    return 0 if frame.pts is None or time_base is None else round((frame.pts - start) * time_base * rate)
