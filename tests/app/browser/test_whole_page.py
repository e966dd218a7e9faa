"""The page as a whole: the keyboard alone, names for screen readers, a tablet, light and dark, no WebGL, doctor."""

import pytest
from studio_visit import Visit, find_chromium

UNNAMED = """() => [...document.querySelectorAll('button, input, select, textarea, [role=slider], canvas')]
  .filter((i) => i.offsetParent !== null && i.getAttribute('aria-hidden') !== 'true')
  .filter((i) => !(i.getAttribute('aria-label') || i.textContent.trim() || i.labels?.length))
  .map((i) => i.outerHTML.slice(0, 120))"""
OUTSIDE = """() => {
  const wide = document.documentElement.clientWidth;
  return [...document.querySelectorAll('button, input, select, textarea, h2, h3, p')]
    .filter((i) => i.offsetParent !== null && !i.closest('.track, [role=tablist], .hidden, .skip'))
    .filter((i) => i.getBoundingClientRect().right > wide + 1)
    .map((i) => i.outerHTML.slice(0, 120));
}"""


def test_everything_has_a_name(visit):
    for name in ("Lens", "Move", "Path", "Scene", "Film", "Footage"):
        visit.tab(name)
        visit.page.wait_for_timeout(150)
        assert visit.page.evaluate(UNNAMED) == []


def test_the_keyboard_alone(visit):
    """From the top of the page to a keyframe of a fisheye, without a pointer."""
    page = visit.page
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("() => document.activeElement.dataset.key ?? document.activeElement.id"))
        if "tab-lens" in seen:
            break
    assert "tab-lens" in seen
    page.keyboard.press("Tab")  # the named lens
    page.keyboard.press("ArrowDown")
    visit.settle()
    assert visit.tell("studio.store.project.lens.name") == "fisheye-180"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowUp")
    visit.settle()
    assert visit.tell("studio.store.project.lens.hfov") == 181
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("k")
    visit.settle()
    page.keyboard.press("]")
    page.keyboard.press("Delete")
    visit.settle()
    assert visit.tell("studio.store.project.path.keys.length") == 4
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (820, 1180)])
def test_sizes_and_themes(chromium, studio_address, size, theme):
    visit = Visit(chromium, studio_address, viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    for name in ("Move", "Scene", "Film"):
        visit.tab(name)
        visit.page.wait_for_timeout(200)
        assert visit.page.evaluate(OUTSIDE) == []
    visit.tab("Lens")
    visit.picture(f"{'desk' if size[0] > 1000 else 'tablet'}_{theme}")  # as the guide shows them
    visit.end()


def test_without_webgl_the_server_draws(playwright, studio_address):
    browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--disable-3d-apis"])
    visit = Visit(browser, studio_address)
    assert visit.page.get_by_text("No WebGL in this browser", exact=False).is_visible()
    colours = "new Set(studio.finder.picture.getContext('2d').getImageData(0, 0, 60, 60).data).size"
    visit.page.wait_for_function(f"() => {colours} > 10", timeout=60_000)
    visit.end()
    browser.close()


def test_doctor(visit):
    visit.press("Doctor")
    visit.page.get_by_role("dialog").get_by_text("torch", exact=False).first.wait_for()
