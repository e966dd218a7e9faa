"""Depth of other programs: round trips of every kind, what z means, and units that are not what they seem."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from curvedray.cameras import Cameras, Lens
from curvedray.cli import app
from curvedray.errors import InputError
from curvedray.moves.trajectory import trajectory
from curvedray.radial.convert import convert, read_sequence, write_frames, write_ply
from curvedray.radial.depth_files import read_frame, write_exr, write_png16
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map

LENS = Lens.from_fov(90, 0.0, 24, 16)


@pytest.fixture
def map():
    radius = torch.linspace(0.5, 18, 3 * 16 * 24).reshape(3, 16, 24)
    return RadialMap.from_metric(radius, (radius * 7 % 2) > 0.3)


def pfm(picture, little=True):
    scale, order = ("-1.0", "<f4") if little else ("1.0", ">f4")
    return f"Pf\n{picture.shape[1]} {picture.shape[0]}\n{scale}\n".encode() + picture[::-1].astype(order).tobytes()


@pytest.mark.parametrize(("kind", "scale", "close"), [("exr", "m", 0.0), ("png", "mm", 6e-4)])
def test_frames_written_out_come_back(map, tmp_path, kind, scale, close):
    assert len(write_frames(map, tmp_path / "frames", kind)) == 3
    back = convert(tmp_path / "frames", "radius", scale=scale, near=map.near).map
    assert torch.equal(back.valid, map.valid)
    assert (back.radius - map.radius)[map.valid].abs().max() <= close


@pytest.mark.parametrize("little", [True, False])
def test_pfm_is_read_from_the_bottom_up_in_either_byte_order(tmp_path, little):
    picture = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    (tmp_path / "a.pfm").write_bytes(pfm(picture, little))
    np.testing.assert_array_equal(read_frame(tmp_path / "a.pfm"), picture)


def test_blenders_depth_pass_is_found_among_other_channels(tmp_path):
    import OpenEXR

    picture = np.full((4, 6), 3.0, np.float32)
    picture[0, 0] = 1e10  # Blender's sky, beyond everything
    channels = {"ViewLayer.Depth.Z": picture, "ViewLayer.Combined.R": np.zeros((4, 6), np.float32)}
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    with OpenEXR.File(header, channels) as file:
        file.write(str(tmp_path / "a.exr"))
    np.testing.assert_array_equal(read_frame(tmp_path / "a.exr"), picture)
    with pytest.raises(InputError, match=r"ViewLayer\.Depth\.Z"):
        read_frame(tmp_path / "a.exr", "Mist")
    found = convert(tmp_path / "a.exr", "radius").map
    assert not found.valid[0, 0, 0]  # the sky is never a distance
    assert found.valid.sum() == 23


def test_numbered_frames_are_sorted_by_number(tmp_path):
    for number in (1, 2, 10):
        write_png16(np.full((2, 2), float(number), np.float32), tmp_path / f"depth_{number}.png")
    assert read_sequence(tmp_path)[:, 0, 0].tolist() == [1000, 2000, 10000]


def test_z_becomes_a_radius_by_the_lens(tmp_path):
    np.save(tmp_path / "z.npy", np.full((2, 16, 24), 2.0, np.float32))
    found = convert(tmp_path / "z.npy", "z", lens=LENS).map
    rays, _ = LENS.rays()
    torch.testing.assert_close(found.radius[0], 2 / rays[..., 2])
    with pytest.raises(InputError, match="the lens, to turn"):
        convert(tmp_path / "z.npy", "z")
    with pytest.raises(InputError, match=r"at most 170 degrees, got a lens of 180"):
        convert(tmp_path / "z.npy", "z", lens=Lens.from_fov(180, 1.0, 24, 16))
    with pytest.raises(InputError, match="radius"):
        convert(tmp_path / "z.npy", "depth")


@settings(deadline=None, max_examples=30)
@given(st.integers(8, 40), st.integers(8, 40), st.integers(4, 24), st.integers(4, 24))
@example(8, 39, 4, 19)
def test_a_map_is_cropped_in_the_middle_to_the_videos_shape(tmp_path_factory, rows, cols, height, width):
    path = tmp_path_factory.mktemp("crop") / "a.npy"
    metres = np.abs(np.arange(cols) - (cols - 1) / 2) / 2 + 2  # at most 12: beyond 20 none would be valid
    np.save(path, np.broadcast_to(metres, (1, rows, cols)).astype(np.float32))
    found = convert(path, "radius", size=(width, height)).map
    assert found.radius.shape == (1, height, width)
    assert found.valid.all()
    torch.testing.assert_close(found.radius, found.radius.flip(2), atol=0.51, rtol=0)  # still about the middle


def test_frames_are_taken_evenly_and_it_is_said(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(2, 11, dtype=np.float32)[:, None, None].repeat(4, 1).repeat(6, 2))
    found = convert(tmp_path / "a.npy", "radius", frames=5)
    assert found.map.radius[:, 0, 0].tolist() == [2, 4, 6, 8, 10]
    assert found.notes == ("5 of 9 frames, evenly in time",)


def test_units_that_are_not_metres_are_refused(tmp_path):
    np.save(tmp_path / "cm.npy", np.full((1, 4, 6), 350.0))
    np.save(tmp_path / "disparity.npy", np.full((1, 4, 6), 0.4))
    with pytest.raises(InputError, match=r"Say the unit: --scale cm"):
        convert(tmp_path / "cm.npy", "radius")
    assert convert(tmp_path / "cm.npy", "radius", scale="cm").map.radius.max() == pytest.approx(3.5)
    with pytest.raises(InputError, match="A disparity"):
        convert(tmp_path / "disparity.npy", "radius")
    for scale in ("banana", 0.0, float("nan"), -1.0):
        with pytest.raises(InputError, match="scale"):
            convert(tmp_path / "cm.npy", "radius", scale=scale)


def test_a_point_cloud_stands_where_the_cameras_saw_it(tmp_path):
    """A wall one sees from several places is one wall: every point of it has the same z in the first camera's world."""
    cameras = trajectory("truck right 1m", LENS, 3, unit="metric")
    rays, _ = LENS.rays()
    map = RadialMap.from_metric((4 / rays[..., 2]).repeat(3, 1, 1))
    content = write_ply(map, cameras, tmp_path / "a.ply").read_bytes()
    start = content.index(b"end_header\n") + 11
    rows = np.frombuffer(content, [("xyz", "<f4", 3), ("rgb", "u1", 3)], offset=start)
    assert f"element vertex {len(rows)}".encode() in content
    assert len(rows) == int(map.valid.sum())
    np.testing.assert_allclose(rows["xyz"][:, 2], 4.0, atol=1e-4)
    with pytest.raises(InputError, match="3 poses"):
        write_ply(map, Cameras(LENS, torch.eye(4)[None]), tmp_path / "b.ply")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.exr", b"no picture"),
        ("a.exr", b"v/1\x01" + b"\0" * 50),
        ("a.pfm", b"Pf\n4 4\n-1.0\n123"),
        ("a.pfm", b"PF\n1 1\n-1.0\n" + b"0" * 12),
        ("a.pfm", b"Pf\n999999 999999\n-1.0\n"),
        ("a.png", b"\x89PNG\r\n\x1a\nbroken"),
        ("a.npy", b"\x93NUMPY"),
        ("a.txt", b"1 2 3"),
    ],
)
def test_files_that_are_none_are_a_sentence(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError):
        read_sequence(tmp_path / name)


def test_pictures_of_eight_bits_and_mixed_folders_are_refused(tmp_path):
    from PIL import Image

    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match="8 bits per channel"):
        read_frame(tmp_path / "a.png")
    write_exr(np.ones((4, 4), np.float32), tmp_path / "b.exr")
    with pytest.raises(InputError, match="a mixture of"):
        read_sequence(tmp_path)
    with pytest.raises(InputError, match=r"at most 65\.5 m"):
        write_png16(np.full((2, 2), 99.0, np.float32), tmp_path / "c.png")


@pytest.mark.parametrize(
    ("name", "says"), [("depth.exr", "--to exr -o depth"), ("depth.png", "--to png -o depth"), ("cloud.ply", "--lens")]
)
def test_a_name_that_needs_an_option_says_which(tmp_path, name, says):
    """Regression: `-o depth.exr` was refused without the way to write EXR."""
    write_radial_map(RadialMap.from_metric(torch.full((2, 8, 12), 3.0)), tmp_path / "map.npz")
    result = CliRunner().invoke(app, ["radial", "convert", str(tmp_path / "map.npz"), "-o", name])
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)
    assert not list(tmp_path.glob("depth*"))


# -- our own maps


def run(*words):
    return CliRunner().invoke(app, ["radial", "convert", *(str(word) for word in words)])


@pytest.fixture
def stored(tmp_path):
    """A map in the cameras' own unit, as another program may write it: with numbers where it is not valid, too."""
    radius = np.full((9, 16, 24), 90.0, np.float32)
    valid = np.ones(radius.shape, bool)
    radius[:, :, :6], valid[:, :, :6] = 5.0, False
    np.savez(tmp_path / "own.npz", radius=radius, valid=valid, near=7.0, unit="cameras")
    return tmp_path / "own.npz"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--size", "12x8"), "Say --meaning radius"),
        (("--frames", 5), "Say --meaning radius"),
        (("--scale", "mm"), "Say --meaning radius"),
        (("--channel", "Z"), "Leave it out"),
    ],
)
def test_options_that_a_map_of_our_own_cannot_follow_are_refused(stored, tmp_path, option, says):
    """They were left undone without a word, and the map was written as it was."""
    result = run(stored, *option, "-o", tmp_path / "out.npz")
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(option[0])
    assert says in str(result.exception)
    assert not (tmp_path / "out.npz").exists()
    assert run(stored, "--scale", 1, "-o", tmp_path / "out.npz").exit_code == 0


def test_a_map_of_our_own_that_is_read_as_radii_keeps_what_its_file_says(stored, tmp_path):
    """With `--meaning radius` everything became valid, the near distance was computed anew and the unit was metres."""
    done = run(stored, "--meaning", "radius", "--size", "12x8", "--frames", 5, "-o", tmp_path / "small.npz")
    assert done.exit_code == 0, done.output
    small = read_radial_map(tmp_path / "small.npz")
    assert small.radius.shape == (5, 8, 12)
    assert not small.valid[:, :, :3].any()
    assert small.valid[:, :, 3:].all()
    assert (small.near, small.unit) == (7.0, "cameras")
    assert (small.radius[small.valid] == 90.0).all()
    named = convert(stored, "radius", near=3.0).map
    assert (named.near, named.unit) == (3.0, "cameras")


def test_a_map_of_our_own_in_another_unit_or_meaning_keeps_what_is_invalid_alone(stored):
    scaled = convert(stored, "radius", scale="cm").map
    along = convert(stored, "z", scale="cm", lens=LENS).map
    for found in (scaled, along):
        assert found.unit == "metric"
        assert found.near != 7.0
        assert not found.valid[:, :, :6].any()
        assert found.valid[:, :, 6:].all()


def test_a_near_and_a_valid_of_something_else_are_not_a_maps(tmp_path):
    """Renderers call the plane before which nothing is drawn `near`, too."""
    depth = np.full((2, 4, 6), 3.0, np.float32)
    np.savez(tmp_path / "other.npz", depth=depth, near=0.1, unit="m", valid=np.zeros(2, bool))
    found = convert(tmp_path / "other.npz", "radius").map
    assert (found.near, found.unit) == (3.0, "metric")
    assert found.valid.all()


def test_a_point_cloud_moves_at_the_rate_of_the_video(tmp_path):
    """A move in seconds was filmed at 16 frames per second, which the embedded model is not."""
    rays, _ = LENS.rays()
    write_radial_map(RadialMap.from_metric((4 / rays[..., 2]).repeat(9, 1, 1), near=4.0), tmp_path / "map.npz")

    def cloud(*more):
        words = (tmp_path / "map.npz", "--lens", "pinhole-90", "--move", "truck right 1m for 0.25s, then static")
        assert run(*words, *more, "-o", tmp_path / "cloud.ply").exit_code == 0
        return (tmp_path / "cloud.ply").read_bytes()

    assert cloud() == cloud("--fps", 8) != cloud("--fps", 16)
