"""Spheres on images: rays and pixels are inverses, and cubes lie as FFmpeg lays them."""

import av
import numpy as np
import pytest
import torch

from curvedray.cameras.sphere import (
    CUBES,
    NAMES,
    cube_pixels,
    equirectangular_from_cube,
    equirectangular_pixels,
    equirectangular_rays,
    face_rays,
    places_of,
    projection_of,
)
from curvedray.errors import InputError


def colours(rays: torch.Tensor) -> torch.Tensor:
    """A colour per direction, smooth all round the sphere."""
    return (rays / rays.norm(dim=-1, keepdim=True) * 0.45 + 0.5) * 255


def by_ffmpeg(image: np.ndarray, settings: str) -> np.ndarray:
    """FFmpeg's own conversion between projections."""
    graph, (height, width) = av.filter.Graph(), image.shape[:2]
    source = graph.add("buffer", f"video_size={width}x{height}:pix_fmt=gbrp:time_base=1/1:pixel_aspect=1/1")
    turned, sink = graph.add("v360", settings), graph.add("buffersink")
    source.link_to(turned)
    turned.link_to(sink)
    graph.configure()
    frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="gbrp")
    frame.pts = 0
    source.push(frame)
    source.push(None)
    return sink.pull().reformat(format="rgb24").to_ndarray()


def test_rays_and_pixels_are_inverses():
    rays = equirectangular_rays(64, 32)
    pixels = equirectangular_pixels(rays, 64, 32)
    x, y = torch.meshgrid(torch.arange(64) + 0.5, torch.arange(32) + 0.5, indexing="xy")
    torch.testing.assert_close(pixels, torch.stack([x, y], -1).double())
    torch.testing.assert_close(rays.norm(dim=-1), torch.ones(32, 64).double())


def test_the_middle_looks_ahead_the_top_up_and_a_quarter_to_the_right_is_right():
    ahead, up, right = torch.eye(3)[[2, 1, 0]] * torch.tensor([1.0, -1.0, 1.0])[:, None]
    assert equirectangular_pixels(ahead, 400, 200).tolist() == pytest.approx([200, 100])
    assert equirectangular_pixels(up, 400, 200)[1].item() == pytest.approx(0, abs=1e-4)
    assert equirectangular_pixels(right, 400, 200).tolist() == pytest.approx([300, 100])


def test_every_pixel_of_a_face_is_found_again_on_that_face():
    for number, name in enumerate(NAMES):
        face, pixels = cube_pixels(face_rays(name, 8), 8)
        assert (face == number).all()
        x, y = torch.meshgrid(torch.arange(8) + 0.5, torch.arange(8) + 0.5, indexing="xy")
        torch.testing.assert_close(pixels, torch.stack([x, y], -1).double())


@pytest.mark.parametrize(("projection", "named"), [("cube-3x2", "c3x2"), ("cube-6x1", "c6x1")])
def test_cubes_lie_as_ffmpeg_lays_them(projection, named):
    image = colours(equirectangular_rays(256, 128)).round().to(torch.uint8).numpy()
    cube = by_ffmpeg(image, f"input=e:output={named}:interp=line")
    n = cube.shape[0] // len(CUBES[projection])
    for name, (row, col) in places_of(projection).items():
        shown = torch.from_numpy(cube[row * n : (row + 1) * n, col * n : (col + 1) * n]).double()
        assert (shown - colours(face_rays(name, n))).abs().mean() < 1.5, name


@pytest.mark.parametrize("projection", list(CUBES))
def test_a_cube_unrolled_has_no_seam(projection):
    """A colour that changes evenly over the sphere still does, across every edge between faces."""
    n, rows, cols = 64, len(CUBES[projection]), len(CUBES[projection][0].split())
    image = torch.zeros(rows * n, cols * n, 3).double()
    for name, (row, col) in places_of(projection).items():
        image[row * n : (row + 1) * n, col * n : (col + 1) * n] = colours(face_rays(name, n))
    unrolled = equirectangular_from_cube(image.movedim(-1, 0), projection)
    error = (unrolled.movedim(0, -1) - colours(equirectangular_rays(256, 128))).abs()
    assert error.max() < 0.25


def test_a_shape_tells_only_what_no_photograph_has():
    assert projection_of("a", 4096, 2048) == "equirectangular"
    assert projection_of("a", 600, 100) == "cube-6x1"
    assert projection_of("a", 600, 400, "cube-3x2") == "cube-3x2"
    for size, said, words in [
        ((600, 400), None, "--projection cube-3x2"),
        ((1920, 1080), None, "1920 x 1080"),
        ((512, 512), None, "Two eyes"),
        ((600, 400), "equirectangular", r"equirectangular \(2:1\)"),
        ((600, 300), "globe", "projection: expected"),
    ]:
        with pytest.raises(InputError, match=words):
            projection_of("a", *size, said)
