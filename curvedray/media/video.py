"""Video and images in and out. A file is written whole or not at all, and the same frames give the same bytes.

t frame   h row   w column; the last axis is red, green, blue in 0..255
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from curvedray.errors import InputError
from curvedray.files import check_writable, named_file, whole_file
from curvedray.inputs import MB, first_line, input_file, megabytes, parsed_json, reading

LONGEST_SIDE = 16384  # of a frame; a file that claims more is damaged or hostile
LARGEST_DECODED = 2000 * MB  # 320 frames of 1920 x 1080
CRF = 16  # x264's quality: near transparent
ENDINGS = (".mp4", ".mov", ".mkv", ".webm", ".gif")
# FFmpeg's names of the containers and still images that are opened. Playlists, which name other files, are not.
READABLE = (
    "mov,matroska,webm,avi,gif,apng,ogg,flv,asf,ivf,mpeg,mpegts,mpegvideo,m4v,h264,hevc,av1,mjpeg,yuv4mpegpipe,"
    "image2,png_pipe,jpeg_pipe,webp_pipe,bmp_pipe,tiff_pipe,ppm_pipe,gif_pipe"
)


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
    crf: int = CRF,
    preset: str = "medium",
) -> Path:
    """A video of the kind its name ends in: H.264 in .mp4, .mov, .mkv, VP9 in .webm, or an animated .gif.

    One encoder thread, no clock in the file: equal frames give equal bytes. `metadata` travels in the file's comment as
    JSON and comes back from `read_video` and `read_notes`. `crf` is x264's quality: lower is better. `preset` is its
    speed: a faster one makes larger files of the same quality.
    """
    path = video_path(path)
    if path.suffix.lower() == ".gif":
        return write_gif(frames, path, fps, metadata=metadata)
    check_frames(frames)
    return _write(frames, False, path, fps, _comment(metadata), crf, preset)


def write_planes(
    frames: UInt8[Tensor, "t p w"], path: str | Path, fps: float = 16.0, *, crf: int = CRF, preset: str = "medium"
) -> Path:
    """As `write_video`, of frames that are in the encoder's own form (`planes.py`): nothing is converted."""
    return _write(frames, True, video_path(path), fps, "", crf, preset)


def check_size(width: int, height: int) -> None:
    """Refuse a size that H.264 and VP9 cannot have."""
    got = f"{width} x {height}"
    if max(width, height) > LONGEST_SIDE:
        raise InputError("video size", f"at most {LONGEST_SIDE} pixels per side, as H.264 and VP9 have", got)
    if width % 2 or height % 2:
        raise InputError("video size", "an even width and height, as H.264 and VP9 need", got, "Add or drop one pixel.")


def _write(frames: Tensor, planar: bool, path: Path, fps: float, comment: str, crf: int, preset: str) -> Path:
    rate = frame_rate(fps)
    check_size(frames.shape[2], frames.shape[1] * 2 // 3 if planar else frames.shape[1])
    with whole_file(path) as temporary:
        try:
            _encode(frames, planar, temporary, rate, comment, crf, preset)
        except (ValueError, RuntimeError, LookupError) as error:  # FFmpeg's; what the disk refuses is an OSError
            raise InputError(str(path), "a video that FFmpeg can encode", first_line(error)) from error
    return path


def _encode(frames: Tensor, planar: bool, path: Path, rate: Fraction, comment: str, crf: int, preset: str) -> None:
    import av
    from av.video.reformatter import ColorRange, Colorspace

    if path.suffix.lower() == ".webm":
        # VP9 counts quality to 63 where x264 counts to 51: eight more look alike. A rate of 0 lets quality rule alone.
        encoder = "libvpx-vp9"
        options = {"crf": str(min(63, crf + 8)), "b": "0", "deadline": "good", "cpu-used": "4", "row-mt": "0"}
    else:
        # x264's macroblock tree reads memory it has not written, so its bytes depend on what lay there before.
        encoder, options = "libx264", {"crf": str(crf), "preset": preset, "x264-params": "mbtree=0"}
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        if comment:
            container.metadata["comment"] = comment
        stream = container.add_stream(encoder, rate=rate, options=options)
        stream.width, stream.height = frames.shape[2], frames.shape[1] * 2 // 3 if planar else frames.shape[1]
        stream.pix_fmt = "yuv420p"
        codec = stream.codec_context
        codec.thread_count = 1
        codec.colorspace = codec.color_primaries = codec.color_trc = Colorspace.ITU709
        codec.color_range = ColorRange.MPEG
        for index, frame in enumerate(frames.cpu().contiguous()):
            picture = av.VideoFrame.from_ndarray(frame.numpy(), format="yuv420p" if planar else "rgb24")
            if not planar:
                picture = picture.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU709)
            picture.pts, picture.time_base = index, 1 / rate
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


def read_video(path: str | Path, limit: int = LARGEST_DECODED) -> Video:
    """Every frame of a video (or an animated or still image), its rate and its metadata.

    A small file may hold gigabytes of frames: past `limit` decoded bytes it is refused, by what its header claims
    before anything is decoded, and by what was decoded where the header says less.
    """
    frames: list[Tensor] = []
    with opened_video(path) as container:
        stream = container.streams.video[0]
        _check_decoded(path, stream.width, stream.height, stream.frames or 1, limit)
        stream.codec_context.options = {"max_pixels": str(limit // 3)}  # a frame may be larger than its header says
        fps, comment = float(stream.average_rate or stream.guessed_rate or 1), _stored_comment(container)
        for frame in container.decode(stream):
            _check_decoded(path, frame.width, frame.height, len(frames) + 1, limit)
            picture = upright(frame)
            if frames and picture.shape != frames[0].shape:
                raise InputError(str(path), "frames of one size", "frames of several sizes")
            frames.append(picture)
    if not frames:
        raise InputError(str(path), "at least one frame", "none that can be decoded", "Is the file complete?")
    stacked = torch.empty(len(frames), *frames[0].shape, dtype=torch.uint8)
    for index in reversed(range(len(frames))):
        stacked[index] = frames.pop()  # freed as it is copied: never twice in memory
    return Video(stacked, fps, _notes(comment))


def read_notes(path: str | Path) -> dict[str, str]:
    """What `write_video` noted in a file, without decoding a frame."""
    with opened_video(path) as container:
        return _notes(_stored_comment(container))


@contextmanager
def opened_video(path: str | Path) -> Iterator[Any]:
    """FFmpeg's container of a file that has a picture; what it throws at damaged files becomes an InputError."""
    import av

    path = input_file(path, "a video")
    with reading(str(path), "a video that can be decoded", "Is the file complete?"):
        # Playlists name other files, and a name with a colon may be a protocol: neither is followed.
        options = {"format_whitelist": READABLE, "protocol_whitelist": "file"}
        with av.open(str(path.absolute()), metadata_errors="replace", options=options) as container:
            if not container.streams.video:
                raise InputError(str(path), "a video", "a file with no picture in it")
            yield container


def upright(frame: Any) -> UInt8[Tensor, "h w 3"]:
    """A decoded frame as it is to be shown: phones store what they film sideways, and say so beside it."""
    picture = torch.from_numpy(frame.to_ndarray(format="rgb24"))
    turns = quarter_turns(frame)
    return torch.rot90(picture, turns).contiguous() if turns else picture


def quarter_turns(frame: Any) -> int:
    """How often a decoded frame is to be turned left by 90 degrees, 0 to 3."""
    return round(getattr(frame, "rotation", 0) / 90) % 4  # the oldest PyAV that we take does not tell


def _check_decoded(path: str | Path, width: int, height: int, frames: int, limit: int) -> None:
    if max(width, height) > LONGEST_SIDE:
        raise InputError(str(path), f"frames of at most {LONGEST_SIDE} pixels per side", f"{width}x{height}")
    total = 3 * width * height * frames
    if total > limit:
        got = f"{frames} frames of {width}x{height}, {megabytes(total)}"
        fix = "Cut it or make it smaller, for example: ffmpeg -i long.mp4 -t 5 -vf scale=1280:-2 short.mp4"
        raise InputError(str(path), f"a video of at most {megabytes(limit)} when decoded", got, fix)


def write_gif(
    frames: UInt8[Tensor, "t h w 3"],
    path: str | Path,
    fps: float = 16.0,
    *,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """An animation that loops for ever, with one palette for all frames so that still parts do not flicker.

    A frame equal to the one before it is stored as a longer pause, so it does not come back as a frame of its own.
    """
    from PIL import Image

    path = named_file(path, (".gif",))
    check_frames(frames)
    # GIF counts in hundredths of a second, and browsers slow down anything under two of them.
    duration = max(2, round(100 / float(frame_rate(fps)))) * 10
    pictures = [Image.fromarray(frame.numpy()) for frame in frames.cpu().contiguous()]
    # The palette is chosen from a strip of frames spread over the clip.
    chosen = frames[:: math.ceil(len(frames) / 16)].cpu()
    palette = Image.fromarray(chosen.flatten(0, 1).contiguous().numpy()).quantize(256, Image.Quantize.MEDIANCUT)
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    with whole_file(path) as temporary:
        options: Any = {"duration": duration, "loop": 0, "optimize": False, "comment": _comment(metadata).encode()}
        indexed[0].save(temporary, save_all=True, append_images=indexed[1:], **options)
    return path


def video_path(path: str | Path) -> Path:
    """A path that a video can be written to, known before any work is done for it."""
    path = named_file(path, ENDINGS)
    check_writable(path)
    return path


def check_frames(frames: Tensor) -> None:
    if frames.numel() == 0:
        raise InputError("frames", "at least one frame of at least one pixel", tuple(frames.shape))


def frame_rate(fps: float) -> Fraction:
    """A rate that a video can have."""
    if not (math.isfinite(fps) and 0.01 <= fps <= 1000):
        raise InputError("fps", "frames per second, 0.01 to 1000", fps)
    return Fraction(fps).limit_denominator(1001)


def _comment(metadata: Mapping[str, str] | None) -> str:
    return json.dumps(dict(metadata), sort_keys=True) if metadata else ""


def _stored_comment(container: Any) -> str:
    return container.metadata.get("comment", container.metadata.get("COMMENT", ""))


def _notes(comment: str) -> dict[str, str]:
    """What `write_video` noted; another program's comment is kept under its own name."""
    try:
        notes = parsed_json(comment, "comment")
    except InputError:
        notes = None
    if isinstance(notes, dict):
        return {str(key): str(value) for key, value in notes.items()}
    return {"comment": comment} if comment else {}
