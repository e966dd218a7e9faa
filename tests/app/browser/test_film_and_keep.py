"""Journeys: a take is filmed, judged, compared and kept; footage is scored. One studio's worker films all of them."""

import json

import numpy as np

from curvedray.formats import read_cameras

DONE = "() => studio.takes.list.length && studio.takes.list[0].state === 'finished'"
LONG = 600_000  # milliseconds: seconds on an idle machine


def filmed(visit) -> None:
    """A finished take, filmed now unless there is one."""
    if not visit.tell("studio.takes.list.some((take) => take.kind === 'film' && take.state === 'finished')"):
        visit.page.keyboard.press("Control+Enter")
        visit.page.wait_for_function("() => studio.takes.list.length > 0", timeout=LONG)
        visit.page.wait_for_function(DONE, timeout=LONG)


def test_film(visit):
    """Item 6: the queue, a picture after a step, cancel, the verdict beside the exact rendering, side by side."""
    page = visit.page
    visit.tab("Film")
    page.wait_for_function("() => studio.takes.worker?.state === 'ready'", timeout=LONG)
    page.locator("[data-key=film]").click()
    page.wait_for_function("() => studio.takes.steps.size > 0", timeout=LONG)
    page.locator(".under-way img").wait_for()
    visit.page.wait_for_timeout(500)
    visit.picture("filming")
    page.keyboard.press("Control+Enter")
    page.locator(".waiting").filter(has_text="queue").get_by_role("button", name="Cancel").click()
    page.wait_for_function("() => studio.takes.list[0].state === 'cancelled'", timeout=LONG)
    page.wait_for_function("() => studio.takes.list[1].state === 'finished'", timeout=LONG)
    page.locator(".thumb").nth(1).click()
    page.locator(".verdict-words").wait_for()
    assert "degrees" in page.locator(".verdict-words").inner_text()
    page.locator(".plan-way.found").first.wait_for()
    assert page.locator(".videos video").count() == 2
    page.wait_for_function("() => [...document.querySelectorAll('.videos video')].every((v) => v.videoWidth === 384)")
    visit.picture("verdict")
    page.get_by_role("button", name="Another lens", exact=False).click()
    page.locator("dialog select").select_option(label="pinhole-90")
    page.get_by_role("button", name="Film it").click()
    page.wait_for_function(DONE, timeout=LONG)
    assert visit.tell("studio.takes.list[0].lens") == "pinhole-90"
    page.wait_for_function("() => document.querySelectorAll('.take-detail .verdict-words').length === 2")
    visit.picture("side_by_side")
    assert visit.tell("studio.store.project.lens.name") == "fisheye-150"
    page.get_by_role("button", name="Reopen").last.click()  # each of the two is a project of its own
    visit.settle()
    assert visit.tell("studio.store.project.lens.name") == "pinhole-90"
    assert visit.tell("studio.derived.path.lenses[0][4]") == 0


def test_keep(visit, tmp_path):
    """Item 7: history, reopening, the path as other programs' files, a path from a file, video, command, project."""
    page = visit.page
    filmed(visit)
    page.keyboard.press("t")
    page.locator(".thumb img").first.wait_for()
    page.locator(".thumb").last.click()
    page.get_by_role("button", name="Reopen").wait_for()
    with page.expect_download() as video:
        page.get_by_role("link", name="Video").click()
    assert video.value.path().stat().st_size > 5000
    page.locator("[data-key='take format']").select_option(label="curvedray (for Blender, with our add-on)")
    with page.expect_download() as kept:
        page.locator("[data-key='take path']").click()
    kept.value.save_as(tmp_path / "path.json")
    path = read_cameras(tmp_path / "path.json")
    assert len(path) == 17
    assert "curvedray generate" in page.locator(".command code").inner_text()
    page.get_by_role("button", name="Reopen").click()
    visit.settle()
    visit.tab("Path")
    page.get_by_label("Format").select_option('"nerfstudio"')
    visit.press("Download the path")
    with page.expect_download() as straight:
        page.get_by_role("button", name="Write it").click()
    straight.value.save_as(tmp_path / "transforms.json")
    other = read_cameras(tmp_path / "transforms.json", format="nerfstudio").relative_to_first()
    asked = np.array(visit.tell("studio.derived.path.poses")).reshape(-1, 4, 4)
    near = visit.tell("studio.derived.path.near")
    assert np.abs(other.world_from_camera[:, :3, 3].numpy() - asked[:, :3, 3]).max() < 1e-4 * near
    page.locator("#camera-file").set_input_files(tmp_path / "path.json")
    page.wait_for_function("() => studio.store.project.path.kind === 'upload'")
    visit.settle()
    found = np.array(visit.tell("studio.derived.path.poses")).reshape(-1, 4, 4)
    np.testing.assert_allclose(found, asked, atol=1e-4)
    page.get_by_label("Project", exact=True).fill("first try")
    page.get_by_label("Project", exact=True).press("Enter")
    page.keyboard.press("Control+s")
    page.get_by_text("Saved as first try.").wait_for()
    with page.expect_download() as project:
        visit.press("Download")
    assert json.loads(project.value.path().read_text())["studio"] == 1
    visit.press("New")
    visit.press("Open")
    page.get_by_role("button", name="first try", exact=True).click()
    page.wait_for_function("() => studio.store.project.path.kind === 'upload'")


def test_footage(visit, tmp_path):
    """Item 8: a video of one's own is scored against the path in its recipe, and gives its motion to another prompt."""
    page = visit.page
    filmed(visit)
    page.keyboard.press("t")
    page.locator(".thumb").last.click()
    with page.expect_download() as video:
        page.get_by_role("link", name="Video").click()
    video.value.save_as(tmp_path / "mine.mp4")
    visit.tab("Footage")
    page.get_by_label("A video").set_input_files(tmp_path / "mine.mp4")
    page.wait_for_function("() => studio.panels.footage.video !== null")
    page.get_by_role("button", name="Score it").click()
    page.wait_for_function(
        "() => studio.takes.list[0].kind === 'score' && studio.takes.list[0].state === 'finished'", timeout=LONG
    )
    page.locator(".scores tr").first.wait_for()
    page.locator("[data-key='transfer prompt']").fill("a green pillar and a white ball in a snowy courtyard")
    page.get_by_role("button", name="Transfer its motion").click()
    page.wait_for_function(
        "() => studio.takes.list[0].kind === 'transfer' && studio.takes.list[0].state === 'finished'", timeout=LONG
    )
    page.get_by_text("The source, and what was made of it").wait_for()
