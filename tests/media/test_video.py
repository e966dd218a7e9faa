"""Media laws: what is written comes back, equal frames give equal bytes, and nothing is half-written."""

import os
import struct
import zlib

import pytest
import torch

from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.media.image import read_image, write_png
from curvedray.media.stream import VideoHeader, video_frames, video_header
from curvedray.media.video import ENDINGS, read_notes, read_video, write_gif, write_video


def moving_squares(frames=6, height=48, width=64):
    video = torch.zeros(frames, height, width, 3, dtype=torch.uint8)
    video[..., 0] = torch.arange(width, dtype=torch.uint8) * 3
    for index in range(frames):
        video[index, 8:24, 4 * index : 4 * index + 16] = torch.tensor([30, 90, 220], dtype=torch.uint8)
    return video


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_video_comes_back_with_its_rate_and_notes(tmp_path, ending):
    frames, notes = moving_squares(), {"move": "orbit left", "recipe": "caf\u00e9 " * 400}
    path = write_video(frames, tmp_path / f"a{ending}", 12.5, metadata=notes)
    video = read_video(path)
    assert video.frames.shape == frames.shape
    assert video.fps == pytest.approx(12.5)
    assert video.metadata == read_notes(path) == notes
    assert (video.frames.float() - frames.float()).abs().mean() < 3  # chroma is stored at half resolution


def test_flat_colours_survive_the_trip_through_yuv(tmp_path):
    for colour in ([200, 40, 30], [20, 160, 60], [250, 250, 250], [0, 0, 0]):
        frames = torch.tensor(colour, dtype=torch.uint8).expand(2, 32, 32, 3)
        back = read_video(write_video(frames, tmp_path / "c.mp4", 10)).frames
        assert (back.float() - frames.float()).abs().max() <= 4


def test_equal_frames_give_equal_bytes(tmp_path):
    frames = moving_squares()
    for ending in ENDINGS:
        first, second = (write_video(frames, tmp_path / f"{i}{ending}", 16.0).read_bytes() for i in "ab")
        assert first == second


def test_bytes_do_not_depend_on_what_lay_in_memory_before(tmp_path):
    """A soft picture of a size that x264's lookahead pads; it once gave eleven files out of forty."""
    coarse = torch.rand(3, 3, 20, 20, generator=torch.Generator().manual_seed(0))
    soft = torch.nn.functional.interpolate(coarse, (320, 320), mode="bilinear")
    frames = (soft * 255).byte().movedim(1, -1).contiguous()
    seen = set()
    for turn in range(12):
        rubbish = [torch.randint(0, 255, (size + turn,), dtype=torch.uint8) for size in (50_000, 154_000, 307_200) * 4]
        del rubbish[::2]
        seen.add(write_video(frames, tmp_path / "a.mp4", 10).read_bytes())
    assert len(seen) == 1


def test_png_is_lossless_and_gif_keeps_its_frames(tmp_path):
    frames = moving_squares()
    assert torch.equal(read_image(write_png(frames[2], tmp_path / "a.png")), frames[2])
    back = read_video(write_gif(frames, tmp_path / "a.gif", 10))
    assert back.frames.shape == frames.shape
    assert back.fps == pytest.approx(10)


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("before")

    def interrupted():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_made_for_a_file_that_failed_goes_with_it(tmp_path):
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "new" / "deeper" / "a.txt"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [None, b"", b"not a video at all" * 20, bytes(range(256)) * 8])
def test_what_is_not_a_video_is_refused(tmp_path, content):
    path = tmp_path / "bad.mp4"
    if content is not None:
        path.write_bytes(content)
    for read in (read_video, read_image):
        with pytest.raises(InputError, match=r"bad\.mp4"):
            read(path)


def test_a_truncated_video_is_refused(tmp_path):
    path = write_video(moving_squares(), tmp_path / "a.mp4", 16)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(InputError):
        read_video(path)


def test_a_small_file_of_many_frames_is_refused_before_it_is_decoded(tmp_path):
    """Black frames pack so well that tens of kilobytes become gigabytes; the header tells."""
    path = write_video(torch.zeros(40, 64, 64, 3, dtype=torch.uint8), tmp_path / "bomb.mp4")
    with pytest.raises(InputError, match=r"at most 100 KB when decoded, got 40 frames of 64x64, 492 KB\. Cut it"):
        read_video(path, limit=100_000)
    assert len(read_video(path, limit=491_520).frames) == 40


@pytest.mark.parametrize("ending", [".webm", ".gif"])
def test_decoding_stops_where_the_header_does_not_tell(tmp_path, ending):
    frames = moving_squares(frames=20)
    path = write_video(frames, tmp_path / f"bomb{ending}")
    with pytest.raises(InputError, match=r"at most 50 KB when decoded"):
        read_video(path, limit=50_000)


def test_an_image_of_too_many_pixels_is_refused_by_its_header(tmp_path):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(content)
    with pytest.raises(InputError, match=r"at most 89 million pixels, got .*900000000 pixels"):
        read_image(tmp_path / "bomb.png")


def test_a_playlist_does_not_open_other_files(tmp_path):
    write_video(moving_squares(), tmp_path / "secret.mp4")
    hls = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsecret.mp4\n#EXT-X-ENDLIST\n"
    for content in (hls, "ffconcat version 1.0\nfile secret.mp4\n"):
        (tmp_path / "list.mp4").write_text(content)
        with pytest.raises(InputError, match="can be decoded"):
            read_video(tmp_path / "list.mp4")


def test_a_folder_or_a_pipe_where_a_picture_goes_is_a_sentence(tmp_path):
    (tmp_path / "a.mp4").mkdir()
    (tmp_path / "a.png").mkdir()
    os.mkfifo(tmp_path / "pipe.mp4")
    frames = moving_squares()
    for write in (
        lambda: write_video(frames, tmp_path / "a.mp4"),
        lambda: write_png(frames[0], tmp_path / "a.png"),
        lambda: read_video(tmp_path / "a.mp4"),
        lambda: read_image(tmp_path / "a.png"),
    ):
        with pytest.raises(InputError, match="got a folder"):
            write()
    for use in (read_video, read_notes, lambda path: write_video(frames, path)):
        with pytest.raises(InputError, match="a pipe or a device"):
            use(tmp_path / "pipe.mp4")


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    frames = moving_squares()
    with pytest.raises(InputError, match="even"):
        write_video(frames[:, :47], tmp_path / "odd.mp4", 16)
    with pytest.raises(InputError, match="at most 16384 pixels"):
        write_video(frames[:1, :2, :1].repeat(1, 1, 16386, 1), tmp_path / "wide.mp4", 16)
    with pytest.raises(InputError, match="fps"):
        write_video(frames, tmp_path / "rate.mp4", 0)
    with pytest.raises(InputError, match="ends in"):
        write_video(frames, tmp_path / "name.txt", 16)
    with pytest.raises(InputError, match="at least one"):
        write_gif(frames[:0], tmp_path / "none.gif", 16)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder to write in"):
        write_png(frames[0], tmp_path / "file" / "a.png")


def filmed_with_a_turned_phone(path, frames, quarter_turns):
    """An .mp4 whose track header says to show it turned right so often, as phones write it."""
    data = bytearray(write_video(frames, path, 10).read_bytes())
    matrix = data.find(b"tkhd") + 44  # version and flags, 20 bytes of times and numbers, 16 of layers and volume
    assert struct.unpack(">9i", data[matrix : matrix + 36]) == (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    cos, sin = [(1, 0), (0, 1), (-1, 0), (0, -1)][quarter_turns]
    turned = (cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    data[matrix : matrix + 36] = struct.pack(">9i", *turned)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("turns", range(4))
def test_a_phone_s_video_stands_upright(tmp_path, turns):
    """Frames came sideways, as the sensor had them, and the header's width and height were those of its side."""
    stored = moving_squares()
    path = filmed_with_a_turned_phone(tmp_path / "phone.mp4", stored, turns)
    shown = torch.rot90(stored, -turns, (1, 2))
    for frames in (read_video(path).frames, torch.stack(list(video_frames(path)))):
        assert frames.shape == shown.shape
        assert (frames.float() - shown.float()).abs().mean() < 3
    assert video_header(path) == VideoHeader(len(shown), shown.shape[2], shown.shape[1], 10.0)
