"""Journey: a scene is blocked out, its distances are seen in colour, a map is dropped, regions are cut."""

import base64
import io

import numpy as np
import torch

from curvedray.media.video import write_video
from curvedray.radial.map import read_radial_map

LONG = 600_000  # milliseconds: seconds on an idle machine
DROP = """([name, type, code]) => {
  const bytes = Uint8Array.from(atob(code), (i) => i.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name, { type }));
  for (const kind of ['dragenter', 'dragover', 'drop'])
    window.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def test_scene(visit):
    """Item 5."""
    page = visit.page
    visit.tab("Scene")
    page.get_by_role("radio", name="blocked out").click()
    visit.press("Add a ball")
    visit.press("Add a wall")
    visit.settle()
    assert [i["kind"] for i in visit.tell("studio.derived.scene.blocks")] == ["box", "ball", "wall"]
    page.get_by_role("button", name="ball 2", exact=False).click()
    page.get_by_label("Moves right").fill("-1.5")
    page.get_by_label("Moves right").press("Enter")
    page.get_by_label("Right", exact=True).fill("1.2")
    page.get_by_label("Right", exact=True).press("Enter")
    visit.settle()
    assert "ball 1m at right 1.2m ahead 3.5m moving left 1.5m" in visit.tell("studio.derived.scene.text")
    text = page.locator("[data-key='blocks text']")
    text.fill("box 1x1x2m at left 2m ahead 4m; pillar at right 1m ahead 3m; wall 8x3m ahead 7m")
    text.press("Tab")
    page.wait_for_function("() => studio.store.project.scene.blocks[1].kind === 'pillar'")
    page.get_by_role("radio", name="Both").click()
    visit.settle()
    page.wait_for_function("() => document.querySelectorAll('.scale text').length > 1")
    box = page.locator("canvas[aria-label='Distances in colour']").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9)
    reading = page.locator(".reading")
    reading.filter(has_text=" m").wait_for()
    assert 1 < float(reading.inner_text().removesuffix(" m")) < 4  # the ground before the camera
    visit.picture("scene", colours=0)
    visit.press("Draw a region")
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()
    np.testing.assert_allclose(visit.tell("studio.store.project.cuts[0].box"), [0.2, 0.3, 0.6, 0.7], atol=0.01)
    visit.press("Map of the blocks")
    page.get_by_alt_text("The map in colour", exact=False).wait_for()
    assert visit.tell("studio.store.project.follow") == "map"
    assert visit.tell("studio.store.project.map.valid") < 0.9  # without the region


WHERE = """(index) => {
  const { stage } = studio, box = stage.canvas.getBoundingClientRect();
  const place = stage.parts.things.children[index].getWorldPosition(stage.camera.position.clone());
  const { x, y } = place.project(stage.camera);
  return [box.left + ((x + 1) / 2) * box.width, box.top + ((1 - y) / 2) * box.height];
}"""


def test_a_block_is_dragged_in_the_set(visit):
    """Taken by its middle it goes along the floor, as far as the pointer: it once leapt under it, or did not move."""
    page = visit.page
    visit.tab("Scene")
    page.get_by_role("radio", name="blocked out").click()
    visit.press("Add a ball")  # which is then selected, with arrows around it
    visit.settle()
    visit.press("Show all")
    visit.rest()
    before = visit.tell("studio.store.project.scene.blocks[1]")
    x, y = page.evaluate(WHERE, 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2, y, steps=2)
    little = visit.tell("studio.store.project.scene.blocks[1]")
    page.mouse.move(x + 40, y, steps=6)
    page.mouse.up()
    visit.settle()
    after = visit.tell("studio.store.project.scene.blocks[1]")
    assert np.hypot(little["right"] - before["right"], little["ahead"] - before["ahead"]) < 0.2
    assert np.hypot(after["right"] - before["right"], after["ahead"] - before["ahead"]) > 0.2
    assert after["up"] == 0


def test_a_block_more_compiles_nothing(visit):
    """Each kind of block once had a program of its own, and adding one held the page for as long as compiling took."""
    page = visit.page
    visit.tab("Scene")
    page.get_by_role("radio", name="blocked out").click()
    page.get_by_role("radio", name="Both").click()
    visit.rest()
    page.evaluate(
        """() => {
          const { gl } = studio.finder.painter.caster;
          window.compiled = 0;
          const compile = gl.compileShader.bind(gl);
          gl.compileShader = (shader) => { window.compiled += 1; compile(shader); };
        }"""
    )
    for kind in ("ball", "pillar", "wall"):
        visit.press(f"Add a {kind}")
    visit.rest()
    assert len(visit.tell("studio.derived.scene.things")) == 4
    assert page.evaluate("() => window.compiled") == 0


def drop(page, name: str, type: str, content: bytes) -> None:
    page.evaluate(DROP, [name, type, base64.b64encode(content).decode()])


def test_a_map_is_dropped(visit):
    page = visit.page
    packed = io.BytesIO()
    np.save(packed, np.full((17, 64, 96), 3.0, np.float32))
    drop(page, "depth.npy", "application/octet-stream", packed.getvalue())
    page.get_by_role("button", name="Map of distances").click()
    page.get_by_label("What the numbers are").select_option(label="distance along each ray")
    page.get_by_role("button", name="Read it").click()
    page.wait_for_function("() => studio.store.project.map !== null")
    assert visit.tell("studio.store.project.map.nearest") == 3


def test_a_depth_video_is_dropped_and_followed(visit, tmp_path):
    """From 2 m on the left to 8 m on the right, in 16 frames: asked about, shown in colour, and handed to the film."""
    page = visit.page
    grey = torch.linspace(16, 240, 96).round().to(torch.uint8).expand(16, 64, 96)[..., None].repeat(1, 1, 1, 3)
    file = write_video(grey, tmp_path / "depth.mp4", 8, crf=4)
    drop(page, "depth.mp4", "video/mp4", file.read_bytes())
    page.get_by_role("button", name="Depth video").click()
    page.get_by_label("What the numbers are").select_option(label="distance along each ray")
    for label, metres in (("Black is", "1.6"), ("White is", "8.4")):
        page.get_by_label(label).fill(metres)
        page.get_by_label(label).press("Tab")
    page.get_by_role("button", name="Read it").click()
    page.wait_for_function("() => studio.store.project.map !== null")
    page.get_by_text("its 16 frames, some of them twice, for 17", exact=False).first.wait_for()
    map = visit.tell("studio.store.project.map")
    assert (map["frames"], map["name"], visit.tell("studio.store.project.follow")) == (17, "depth.mp4", "map")
    np.testing.assert_allclose([map["nearest"], map["farthest"]], [2.0, 8.0], atol=0.15)
    picture = page.get_by_alt_text("The map in colour", exact=False)
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.map-picture').naturalWidth >= 300")
    assert page.evaluate("() => document.getElementById('panel-scene').scrollWidth <= 342")  # nothing sticks out of it
    visit.picture("map")
    visit.tab("Film")
    assert page.get_by_label("Follow the distances of").input_value() == '"map"'
    page.get_by_label("Steps").fill("2")
    page.get_by_label("Steps").press("Tab")
    page.wait_for_function("() => studio.takes.worker?.state === 'ready'", timeout=LONG)
    with page.expect_request("**/api/takes") as asked:
        page.locator("[data-key=film]").click()
    assert asked.value.post_data_json["map"] == map["map"]
    page.wait_for_function("() => studio.takes.list[0]?.state === 'finished'", timeout=LONG)
    page.get_by_role("button", name="Reopen").wait_for()
    with page.expect_download() as kept:
        page.get_by_role("link", name="Map", exact=True).click()
    kept.value.save_as(tmp_path / "map.npz")
    radius = read_radial_map(tmp_path / "map.npz").radius
    np.testing.assert_allclose(radius[8, 32, [8, 88]].numpy(), [2.5, 7.5], atol=0.15)
