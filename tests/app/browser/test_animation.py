"""The README's animation: the dial is turned to a fisheye, the clip is played. Made where STUDIO_PICTURES is set."""

import io
import os
from pathlib import Path

import pytest


@pytest.mark.skipif("STUDIO_PICTURES" not in os.environ, reason="STUDIO_PICTURES names the folder to draw it into")
def test_animation(visit):
    from PIL import Image

    page, frames = visit.page, []

    def keep(times: int = 1) -> None:
        visit.settle()
        page.wait_for_timeout(300)
        page.wait_for_function("() => studio.finder.painter.finished")
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize((880, 550), Image.Resampling.LANCZOS)
        frames.extend([picture] * times)

    page.get_by_role("slider", name="Bend (xi)").fill("0")
    page.get_by_role("slider", name="Bend (xi)").blur()
    for hfov in (70, 95):
        visit.tell(f"studio.panels.lens.change({{ hfov: {hfov}, xi: 0, name: null }})")
        keep()
    for hfov, xi in ((110, 0.4), (125, 0.7), (150, 1.0), (180, 1.3), (200, 1.5), (180, 1.3), (150, 1.0)):
        visit.tell(f"studio.panels.lens.change({{ hfov: {hfov}, xi: {xi}, name: null }})")
        keep()
    visit.press("Edit as keyframes")
    page.wait_for_timeout(1500)
    for frame in (*range(0, 17, 2), 16):
        visit.tell(f"studio.shot.goto({frame})")
        keep()
    few = [frame.quantize(96, dither=Image.Dither.NONE) for frame in frames]
    target = Path(os.environ["STUDIO_PICTURES"]) / "studio.gif"
    few[0].save(target, save_all=True, append_images=few[1:], duration=280, loop=0, optimize=True)
