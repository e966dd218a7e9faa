"""The studio's page in a browser, for the tests of tests/app/browser."""

import io
import os
import shutil
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
READY = """() => {
  const { studio } = window;
  if (!studio?.shot.ready || document.getElementById('main').hasAttribute('aria-busy')) return false;
  return !studio.derived.paths.busy && !studio.derived.scenes.busy;
}"""


def find_chromium() -> str | None:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Visit:
    """A page of the studio that fails the test on any error in its console and any request to elsewhere."""

    def __init__(self, browser: Any, address: str, **context: Any):
        self.wrong: list[str] = []
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        origin = address.split("/?")[0]
        self.page.on(
            "console", lambda said: self.wrong.append(f"console: {said.text}") if said.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", lambda request: self._check(request.url, origin))
        self.page.goto(address)
        self.settle()

    def _check(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "blob:", "data:")):
            self.wrong.append(f"foreign request: {url}")

    def forgive(self, words: str) -> None:
        """Errors that this journey makes on purpose, such as a move that is not understood."""
        self.wrong = [said for said in self.wrong if words not in said]

    def settle(self) -> None:
        """Until nothing is asked of the server."""
        self.page.wait_for_timeout(100)
        self.page.wait_for_function(READY, timeout=60_000)

    def rest(self) -> None:
        """Until the fine picture and the film strip are drawn."""
        self.page.wait_for_timeout(1200)
        self.settle()
        self.page.wait_for_function("() => studio.finder.painter.finished", timeout=60_000)

    def tell(self, expression: str) -> Any:
        """What the page's own state says: an expression of `studio`."""
        return self.page.evaluate(f"() => {{ const {{ studio }} = window; return {expression}; }}")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def picture(self, name: str, colours: int = 256) -> None:
        """A screenshot for the documentation, where STUDIO_PICTURES names its folder; in few colours, or (0) in all."""
        folder = os.environ.get("STUDIO_PICTURES")
        if folder:
            self.rest()
            from PIL import Image

            picture = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
            few = picture.quantize(colours, dither=Image.Dither.NONE) if colours else picture
            few.save(Path(folder) / f"{name}.png", optimize=True)

    def end(self) -> None:
        self.context.close()
        assert not self.wrong, self.wrong
