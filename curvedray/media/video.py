"""Video and images in and out. A file is written whole or not at all, and the same frames give the same bytes.

t frame   h row   w column; the last axis is red, green, blue in 0..255
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.files import check_writable, named_file, whole_file
from curvedray.inputs import first_line, input_file

LONGEST_SIDE = 16384  # of a frame; a file that claims more is damaged or hostile


@dataclass(frozen=True, eq=False)
class Video:
    """Frames as they were read, their rate, and what the writer noted about them."""

    frames: UInt8[Tensor, "t h w 3"]
    fps: float
    metadata: dict[str, str] = field(default_factory=dict)


def write_video(
    frames: UInt8[Tensor, "t h w 3"],
    path: str | Path,
    fps: float = 16.0,
    *,
    metadata: Mapping[str, str] | None = None,
    crf: int = 16,
) -> Path:
    """An H.264 mp4 that plays everywhere. One encoder thread, no clock in the file: equal frames give equal bytes.

    `metadata` travels in the file's comment tag as JSON and comes back from `read_video`. `crf` is x264's quality:
    lower is better, 16 is near transparent.
    """
    import av
    from av.video.reformatter import ColorRange, Colorspace

    path = video_path(path)
    check_frames(frames)
    rate = _rate(fps)
    got = f"{frames.shape[2]} x {frames.shape[1]}"
    if max(frames.shape[1:3]) > LONGEST_SIDE:
        raise InputError("video size", f"at most {LONGEST_SIDE} pixels per side, as H.264 has", got)
    if frames.shape[1] % 2 or frames.shape[2] % 2:
        raise InputError("video size", "an even width and height, as H.264 needs", got, "Add or drop one pixel.")
    with whole_file(path) as temporary, av.open(str(temporary), "w", options={"fflags": "+bitexact"}) as container:
        if metadata:
            container.metadata["comment"] = json.dumps(dict(metadata), sort_keys=True)
        # x264's macroblock tree reads memory it has not written, so its bytes depend on what lay there before.
        options = {"crf": str(crf), "preset": "medium", "x264-params": "mbtree=0"}
        stream = container.add_stream("libx264", rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = frames.shape[2], frames.shape[1], "yuv420p"
        codec = stream.codec_context
        codec.thread_count = 1
        codec.colorspace = codec.color_primaries = codec.color_trc = Colorspace.ITU709
        codec.color_range = ColorRange.MPEG
        for index, frame in enumerate(frames.cpu().contiguous()):
            picture = av.VideoFrame.from_ndarray(frame.numpy(), format="rgb24")
            picture = picture.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU709)
            picture.pts, picture.time_base = index, 1 / rate
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


def read_video(path: str | Path) -> Video:
    """Every frame of a video (or an animated or still image), its rate and its metadata."""
    import av

    path = input_file(path)
    try:
        with av.open(str(path), metadata_errors="replace") as container:
            if not container.streams.video:
                raise InputError(str(path), "a video", "a file with no picture in it")
            stream = container.streams.video[0]
            if max(stream.width, stream.height) > LONGEST_SIDE:
                raise InputError(
                    str(path), f"frames of at most {LONGEST_SIDE} pixels", f"{stream.width}x{stream.height}"
                )
            fps = float(stream.average_rate or stream.guessed_rate or 1)
            comment = container.metadata.get("comment", container.metadata.get("COMMENT", ""))
            frames = [torch.from_numpy(frame.to_ndarray(format="rgb24")) for frame in container.decode(stream)]
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        fix = "Is the file complete?"
        raise InputError(str(path), "a video that can be decoded", first_line(error), fix) from error
    if not frames:
        raise InputError(str(path), "at least one frame", "none that can be decoded", "Is the file complete?")
    if any(frame.shape != frames[0].shape for frame in frames):
        raise InputError(str(path), "frames of one size", "frames of several sizes")
    return Video(torch.stack(frames), fps, _notes(comment))


def write_gif(frames: UInt8[Tensor, "t h w 3"], path: str | Path, fps: float = 16.0) -> Path:
    """An animation that loops for ever, with one palette for all frames so that still parts do not flicker."""
    from PIL import Image

    path = named_file(path, (".gif",))
    check_frames(frames)
    pictures = [Image.fromarray(frame.numpy()) for frame in frames.cpu().contiguous()]
    # The palette is chosen from a strip of frames spread over the clip.
    chosen = frames[:: math.ceil(len(frames) / 16)].cpu()
    palette = Image.fromarray(chosen.flatten(0, 1).contiguous().numpy()).quantize(256, Image.Quantize.MEDIANCUT)
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    with whole_file(path) as temporary:
        # GIF counts in hundredths of a second, and browsers slow down anything under two of them.
        duration = max(2, round(100 / float(_rate(fps)))) * 10
        indexed[0].save(temporary, save_all=True, append_images=indexed[1:], duration=duration, loop=0, optimize=False)
    return path


def video_path(path: str | Path) -> Path:
    """A path that a video can be written to, known before any work is done for it."""
    path = named_file(path, (".mp4", ".mov", ".mkv"))
    check_writable(path)
    return path


def check_frames(frames: Tensor) -> None:
    if frames.numel() == 0:
        raise InputError("frames", "at least one frame of at least one pixel", tuple(frames.shape))


def _rate(fps: float) -> Fraction:
    if not (math.isfinite(fps) and 0.01 <= fps <= 1000):
        raise InputError("fps", "frames per second, 0.01 to 1000", fps)
    return Fraction(fps).limit_denominator(1001)


def _notes(comment: str) -> dict[str, str]:
    """What `write_video` noted; another program's comment is kept under its own name."""
    try:
        notes = json.loads(comment)
    except json.JSONDecodeError:
        notes = None
    if isinstance(notes, dict):
        return {str(key): str(value) for key, value in notes.items()}
    return {"comment": comment} if comment else {}
