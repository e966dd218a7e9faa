"""`curvedray radial` means the embedded model where no other is named: its frames, its rate and its tokens."""

import torch
from typer.testing import CliRunner

from curvedray.cameras.named_lenses import named_lens
from curvedray.cli import app
from curvedray.cli.radial import EMBEDDED_FPS
from curvedray.errors import InputError
from curvedray.models.open import usual_video
from curvedray.radial.map import RadialMap, read_radial_map, write_radial_map
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import parse_blocks

SCENE = "box 1x1x2m at left 1m ahead 4m; wall ahead 7m"
MOVE = "pan right 60deg for 0.5s, then truck right 1"
WAN = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"


def run(*words):
    return CliRunner().invoke(app, ["radial", *(str(word) for word in words)])


def test_a_blocked_out_map_moves_at_the_rate_of_the_embedded_model(tmp_path):
    """It moved at 16 frames per second: after half a second of the film the map had turned 30 degrees, the film 60."""
    assert usual_video("")[3] == EMBEDDED_FPS
    lens = named_lens("pinhole-70", 96, 64)
    for words, fps in (((), 8.0), (("--fps", 16), 16.0)):
        out = tmp_path / f"{fps}.npz"
        done = run("block", SCENE, "--move", MOVE, "--lens", "pinhole-70", *words, "-o", out)
        assert done.exit_code == 0, done.output
        made = film_blocks(parse_blocks(SCENE), MOVE, lens, 17, fps=fps).map
        found = read_radial_map(out)
        assert torch.equal(found.valid, made.valid)
        torch.testing.assert_close(found.radius[found.valid], made.radius[made.valid], rtol=1e-4, atol=1e-4)
    assert "frames per second" in str(run("block", SCENE, "--fps", 0, "-o", tmp_path / "none.npz").exception)


def test_a_map_is_checked_on_the_tokens_of_its_model(tmp_path):
    """It was checked on tokens of 16 x 16 pixels: checks of 8 x 8, which the embedded model tells apart, were said to
    be equally far, and 120 x 80, which it takes, was refused."""
    fine = (torch.arange(80)[:, None] // 8 + torch.arange(96) // 8) % 2
    checks = RadialMap.from_metric((2.0 + fine).repeat(17, 1, 1), near=2.0)
    file = write_radial_map(checks, tmp_path / "checks.npz")
    shape = ("--frames", 17, "--size", "96x80")
    seen = run("check", file, *shape)
    assert seen.exit_code == 0, seen.output
    assert "tokens see 1.00 to 1.50 near distances" in seen.output
    flat = run("check", file, *shape, "--model", WAN)
    assert flat.exit_code == 1
    assert "every token is equally far" in flat.output
    wide = write_radial_map(RadialMap.from_metric(2 + torch.rand(17, 80, 120)), tmp_path / "wide.npz")
    assert run("check", wide, "--size", "120x80").exit_code == 0
    assert isinstance(run("check", wide, "--size", "120x80", "--model", WAN, "--frames", 17).exception, InputError)


def test_a_map_is_checked_for_the_video_that_its_model_makes(tmp_path):
    file = write_radial_map(RadialMap.from_metric(2 + torch.rand(21, 30, 52)), tmp_path / "latent.npz")
    assert run("check", file, "--model", WAN).exit_code == 0
    assert "expected 17 frames" in str(run("check", file).exception)
