"""The encoder's own form of a frame: grey has no chroma, colours come back, and a file is what RGB would have given."""

import pytest
import torch

from curvedray.errors import InputError
from curvedray.media.planes import BLUE, LUMA, RED, planes_from_rgb
from curvedray.media.video import read_video, write_planes, write_video


def test_grey_has_no_chroma_and_luma_of_televisions_range():
    grey = torch.arange(256, dtype=torch.uint8).view(16, 16, 1).expand(16, 16, 3)
    planes = planes_from_rgb(grey)
    assert planes.shape == (24, 16)
    assert (planes[16:] == 128).all()
    assert (planes[:16].float() - (16 + 219 / 255 * grey[..., 0].float())).abs().max() <= 0.501
    assert (sum(BLUE), sum(RED), sum(LUMA)) == (0, 0, round(219 / 255 * 2**15))


@pytest.mark.parametrize("size", [(32, 48), (30, 46)])
def test_a_video_of_planes_is_the_video_of_their_colours(tmp_path, size):
    height, width = size
    y, x = torch.meshgrid(torch.arange(height) / height, torch.arange(width) / width, indexing="ij")
    frame = torch.stack([255 * x, 255 * y, 255 * (1 - x)], -1).to(torch.uint8)
    frames = torch.stack([frame, frame.flip(0), frame.flip(1)])
    write_video(frames, tmp_path / "a.mp4", crf=1)
    write_planes(planes_from_rgb(frames), tmp_path / "b.mp4", crf=1)
    colours, planes = (read_video(tmp_path / name).frames.float() for name in ("a.mp4", "b.mp4"))
    assert planes.shape == frames.shape
    assert (colours - planes).abs().mean() < 1
    lost = [(one - frames.float()).abs().mean() for one in (planes, colours)]
    assert lost[0] < lost[1] + 0.2


def test_an_odd_size_is_refused(tmp_path):
    with pytest.raises(InputError, match="even width"):
        write_planes(torch.zeros(1, 15, 9, dtype=torch.uint8), tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())
