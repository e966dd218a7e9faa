"""Picture laws: what is drawn is where the geometry says, and what is unknown is grey."""

import math

import numpy as np
import pytest
import torch

from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.media.canvas import PAPER, round_step
from curvedray.media.pictures import END, NOW, SIDE_POINTS, START, PathPlot, contact_sheet, frustum_outlines, lens_grid

PINHOLE = Lens.from_fov(90, 0.0, 64, 48)
CIRCLE = Lens(torch.tensor([30.0, 30]), torch.tensor([32.0, 32]), torch.tensor(2.2), (64, 64))


def straight_path(lens, frames=5):
    poses = torch.eye(4).repeat(frames, 1, 1)
    poses[:, 2, 3] = torch.linspace(0, 1, frames)
    return Cameras(lens, poses, "metric")


def test_a_frustum_goes_through_the_images_corners():
    outline = frustum_outlines(Cameras(PINHOLE, torch.eye(4)[None]))[0]
    corners = outline[::SIDE_POINTS]
    across, down = 1.0, 48 / 64
    expected = np.array([[-across, -down, 1], [across, -down, 1], [across, down, 1], [-across, down, 1]])
    assert np.allclose(corners, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_a_frustum_ends_at_the_image_circle():
    outline = frustum_outlines(Cameras(CIRCLE, torch.eye(4)[None]))[0]
    angle = np.degrees(np.arccos(outline[:, 2]))
    assert np.allclose(angle, math.degrees(math.acos(-1 / 2.2)), atol=0.1)


def test_the_marked_camera_moves_along_the_path():
    plot = PathPlot.of(straight_path(PINHOLE), (160, 120), "dolly in")
    colour = torch.tensor(NOW, dtype=torch.uint8)
    places = []
    for frame in (0, 4):
        image = plot.at(frame)
        assert image.shape == (120, 160, 3)
        marked = (image == colour).all(-1).nonzero().float()
        assert len(marked) > 20
        places.append(marked.mean(0))
    assert places[1][0] < places[0][0]  # ahead is up the page
    assert places[1][1] > places[0][1]  # and to the right
    assert not (plot.at() == colour).all(-1).any()


@pytest.mark.parametrize("frames", [1, 2, 30])
def test_a_still_camera_can_be_plotted_too(frames):
    image = PathPlot.of(Cameras(CIRCLE, torch.eye(4).repeat(frames, 1, 1)), (120, 90)).at(0)
    assert (image != torch.tensor(PAPER, dtype=torch.uint8)).any()


def test_a_lens_grid_is_black_where_there_is_no_ray():
    image = lens_grid(CIRCLE, (104, 104))
    assert (image[13:17, 13:17] == 0).all()
    assert (image[40:60, 40:60].sum(-1) > 0).all()
    assert lens_grid(PINHOLE, (120, 90), "pinhole").shape == (90, 120, 3)


def test_a_contact_sheet_holds_every_frame_in_order():
    frames = torch.arange(5, dtype=torch.uint8)[:, None, None, None].expand(5, 20, 30, 3) * 40 + 50
    sheet = contact_sheet(frames, columns=3, gap=4)
    assert sheet.shape == (2 * 24 + 4, 3 * 34 + 4, 3)
    for index in range(5):
        row, column = divmod(index, 3)
        assert (sheet[4 + row * 24 + 10, 4 + column * 34 + 15] == 50 + 40 * index).all()
    assert contact_sheet(frames, 3, list("abcde"), gap=4).shape == sheet.shape
    assert torch.equal(contact_sheet(frames, 3, [""] * 5, gap=4), sheet)  # no word, no box of it
    with pytest.raises(InputError, match="labels"):
        contact_sheet(frames, 3, ["a"])
    with pytest.raises(InputError, match="at least one"):
        contact_sheet(frames[:0])


def test_a_large_plot_says_which_end_is_which():
    """The two dots of the legend, below, in the path's first and last colour; a small plot has no room for them."""
    for size, shown in (((320, 200), True), ((160, 120), False)):
        below = PathPlot.of(straight_path(PINHOLE), size).at()[-16:, :100]
        for colour in (START, END):
            assert (below == torch.tensor(colour, dtype=torch.uint8)).all(-1).any() == shown


@pytest.mark.parametrize(("least", "step"), [(0.0101, 0.02), (0.2, 0.2), (0.21, 0.5), (7, 10), (1e-7, 1e-7)])
def test_steps_are_round(least, step):
    assert round_step(least) == pytest.approx(step)
