"""The page's own formulas are the package's: lenses, angles, the text of moves; and keyframes keep their time."""

import json

import numpy as np
import pytest

from curvedray.cameras import Lens
from curvedray.cameras.angles import yaw_pitch_roll
from curvedray.moves.text import parse_moves
from curvedray.moves.trajectory import trajectory

MOVES = [
    "static",
    "orbit left 40deg radius 1.2 smooth, then dolly in 0.5 for 2s",
    "(pan left 30deg, then tilt up 10deg ease-in) and dolly in 1 for 3",
    "handheld 0.5deg sway 0.02 seed 3 and truck right 0.2/s",
    "zoom to 40deg, then zoom in 2x, then dolly_zoom out 0.3m subject 2",
    "spiral left 360deg radius 2 to 1 and roll ccw 5deg and pedestal down 0.25",
]


@pytest.fixture(scope="module")
def call(chromium, static_files):
    """Call a function of one of the page's modules with values, and get its value back."""
    page = chromium.new_page()
    page.goto(f"{static_files}/view/lens.js")
    code = "async ([file, name, given]) => JSON.stringify(await (await import(file))[name](...given))"
    yield lambda file, name, *given: json.loads(page.evaluate(code, [file, name, list(given)]))
    page.close()


@pytest.mark.parametrize(("hfov", "xi"), [(60, 0.0), (110, 0.55), (150, 1.0), (180, 1.3), (220, 1.7)])
def test_lens(call, hfov, xi):
    lens = Lens.from_fov(hfov, xi, 96, 64)
    made = call("/view/lens.js", "fromFov", {"hfov": hfov, "xi": xi}, 96, 64)
    assert made["fx"] == pytest.approx(lens.focal[0].item(), rel=1e-6)
    for u, v in ((3.5, 8.0), (48.0, 32.0), (70.0, 60.5)):
        ray, valid = lens.unproject(np.array([u, v]))
        found = call("/view/lens.js", "unproject", made, u, v)
        assert (found is not None) == bool(valid)
        if found:
            np.testing.assert_allclose(found, ray.numpy(), atol=1e-5)
            np.testing.assert_allclose(call("/view/lens.js", "project", made, found), [u, v], atol=1e-3)
    millimetres = call("/view/lens.js", "millimetres", {"hfov": hfov, "xi": xi}, 96, 64)
    assert Lens.from_millimetres(millimetres, width=96, height=64, xi=xi).hfov.item() == pytest.approx(hfov, abs=1e-2)
    assert call("/view/lens.js", "fovOfMillimetres", millimetres, xi, 96, 64) == pytest.approx(hfov, abs=1e-6)


def test_a_lens_sees_no_farther_than_its_outline(call):
    """Every ray of the outline is one that the lens has: of the frame, or of the image circle inside it."""
    for hfov, xi in ((90, 0.0), (180, 1.3), (234, 2.0)):
        made = call("/view/lens.js", "fromFov", {"hfov": hfov, "xi": xi}, 96, 64)
        rays = np.array(call("/view/lens.js", "outline", made, 48))
        np.testing.assert_allclose(np.linalg.norm(rays, axis=-1), 1, atol=1e-6)
        assert np.degrees(np.arccos(rays[0, 2])) == pytest.approx(hfov / 2, abs=0.1)  # to the right


def test_angles(call):
    cameras = trajectory("pan left 70deg and tilt up 25deg and roll cw 15deg and truck right 0.7", "pinhole-60", 5)
    for pose in cameras.world_from_camera.double().numpy():
        found = call("/view/pose.js", "anglesOf", pose.flatten().tolist())
        angles = [found[i] for i in ("yaw", "pitch", "roll")]
        np.testing.assert_allclose(angles, np.degrees(yaw_pitch_roll(pose[:3, :3])), atol=1e-5)
        np.testing.assert_allclose(call("/view/pose.js", "poseOf", found), pose.flatten(), atol=1e-6)


@pytest.mark.parametrize("text", MOVES)
def test_moves_taken_apart_and_put_together_are_the_same_text(call, text):
    exact = str(parse_moves(text))
    parts = call("/panels/move_text.js", "pieces", exact)
    assert call("/panels/move_text.js", "joined", parts) == exact
    for index, part in enumerate(parts):
        if part.get("move"):
            parse_moves(call("/panels/move_text.js", "withoutMove", parts, index))  # what is left is still a move


def test_keyframes_keep_the_clips_time(call):
    keys = [{"seconds": i, "name": n} for i, n in ((1, "a"), (3, "b"), (2, "c"), (1, "d"))]
    seconds = lambda made, count: sum(key["seconds"] for key in made[:count])  # noqa: E731
    file = "/timeline/keys.js"
    assert seconds(call(file, "timed", keys, 2.0, False), 3) == pytest.approx(2)
    assert seconds(call(file, "lasting", keys, 1, 0.4, 2.0, False), 3) == pytest.approx(2)
    assert call(file, "lasting", keys, 1, 0.4, 2.0, False)[1]["seconds"] == pytest.approx(0.4)
    moved = call(file, "movedTo", keys, 1, 0.9, 2.0, False)
    assert (moved[0]["seconds"], seconds(moved, 3)) == (pytest.approx(0.9), pytest.approx(2))
    made, index = call(file, "inserted", keys, {"name": "new"}, 0.5, 2.0, False)
    assert (index, [key["name"] for key in made], seconds(made, 4)) == (
        2,
        ["a", "b", "new", "c", "d"],
        pytest.approx(2),
    )
    assert seconds(call(file, "removed", keys, 1, 2.0, False), 2) == pytest.approx(2)
    assert seconds(call(file, "appended", keys, {"name": "e"}, 2.0, False), 4) == pytest.approx(2)
    assert seconds(call(file, "timed", keys, 2.0, True), 4) == pytest.approx(2)
