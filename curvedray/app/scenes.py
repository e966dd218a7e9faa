"""What there is to see, from what the page asks: a scene as values for its shader, and pictures drawn here."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from curvedray.app.lenses import lens_of
from curvedray.app.paths import path_of
from curvedray.app.requests import PictureAsked, SceneAsked, SceneLook
from curvedray.app.uploads import Uploads
from curvedray.cameras import Cameras, Lens
from curvedray.errors import InputError
from curvedray.media.distance_colours import distance_limits, radial_picture
from curvedray.models.embedded.trained_on import read_caption
from curvedray.radial.map import RadialMap
from curvedray.world.blocks import Block, block_scene, blocks_from_json, blocks_to_json, check_clear, parse_blocks
from curvedray.world.preview import NEAR, enclosing, preview_scene, scene_near
from curvedray.world.raycast import render
from curvedray.world.scene import Room, Scene, Thing
from curvedray.world.world import scene_from_caption


@dataclass(frozen=True)
class SceneMade:
    """A scene, its blocks if it has any, its near distance in metres, and how it was understood."""

    kind: str
    scene: Scene
    near: float
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()


def scene_of(asked: SceneAsked, lens: Lens) -> SceneMade:
    """The scene, and the near distance of what its first camera sees through this lens."""
    if asked.is_blocks:
        blocks = blocks_of(asked)
        scene = block_scene(blocks, asked.eye)
        return SceneMade("blocks", scene, blocks_near(scene, lens), tuple(blocks))
    if asked.caption is not None:
        caption, notes = read_caption(asked.caption)
        found = scene_from_caption(caption)
        return SceneMade("caption", found.scene, scene_near(found.scene, lens), notes=tuple(notes))
    return SceneMade("court", preview_scene(), NEAR)


def blocks_of(asked: SceneAsked) -> list[Block]:
    if asked.text is not None:
        return parse_blocks(asked.text) if asked.text.strip() else []
    rows = [block.model_dump(exclude_none=True) for block in asked.blocks or []]
    return blocks_from_json(rows) if rows else []


def blocks_near(scene: Scene, lens: Lens) -> float:
    """As `film_blocks` has it: of what the first camera sees within a map's reach; one metre where that is nothing."""
    first = render(scene, Cameras(lens, torch.eye(4)[None].to(lens.focal), "metric"), samples=1)
    return RadialMap.from_metric(first.radius, first.valid).near if first.valid.any() else 1.0


def seen_along(made: SceneMade, positions: list[list[float]] | None) -> Scene:
    """The scene, a court made large enough for some positions and cleared of what stands in their way."""
    if made.kind == "blocks" or not positions:
        return made.scene
    poses = torch.eye(4).repeat(len(positions), 1, 1)
    poses[:, :3, 3] = torch.tensor(positions)
    return enclosing(made.scene, Cameras(Lens.from_fov(90.0, 0.0, 8, 8), poses, "metric"))


def scene_json(asked: SceneLook) -> dict[str, Any]:
    made = scene_of(asked.scene, lens_of(asked.lens, asked.width, asked.height))
    scene = seen_along(made, asked.positions)
    is_blocks = made.kind == "blocks"
    return {
        "kind": made.kind,
        "text": "; ".join(str(block) for block in made.blocks) if is_blocks else None,
        "blocks": blocks_to_json(list(made.blocks)) if is_blocks else None,
        "near": made.near,
        "eye": scene.room.floor,
        "room": _room_json(scene.room),
        "things": [_thing_json(thing) for thing in scene.things],
        "notes": list(made.notes),
    }


def _room_json(room: Room) -> dict[str, Any]:
    paints = {name: [list(colour) for colour in getattr(room, name)] for name in ("walls", "stripes", "tiles", "sky")}
    names = ("half", "half_depth", "ahead", "floor", "height", "spacing", "stripe", "softness", "ink", "shadows")
    return paints | {name: getattr(room, name) for name in names}


def _thing_json(thing: Thing) -> dict[str, Any]:
    names = ("kind", "x", "z", "radius", "height", "half_depth", "base", "yaw")
    return {name: getattr(thing, name) for name in names} | {
        "motion": list(thing.motion),
        "colour": list(thing.colour),
        "accent": None if thing.accent is None else list(thing.accent),
    }


@dataclass(frozen=True, eq=False)
class PictureMade:
    """One frame: its picture, or its distances, and the metres of the first and last colour."""

    pixels: UInt8[Tensor, "h w 3"]
    metres: Float[Tensor, "h w"]
    limits: tuple[float, float] | None
    notes: list[str]


def picture_of(asked: PictureAsked, uploads: Uploads) -> PictureMade:
    """One frame of a path, drawn here: for pages that cannot draw, and to hold those that can against."""
    path = path_of(asked.path, uploads)
    if asked.frame >= len(path.cameras):
        raise InputError("frame", f"one of {len(path.cameras)}, from 0", asked.frame)
    lens = path.cameras.frame_lens[asked.frame].sized(asked.width, asked.height)
    made = scene_of(asked.scene, path.cameras.frame_lens[0])
    scene = seen_along(made, asked.positions)
    time = asked.frame / max(1, len(path.cameras) - 1)
    now = Cameras(lens, path.cameras.world_from_camera[asked.frame : asked.frame + 1], "metric")
    seen = render(scene.at(time), now, asked.samples)
    limits = None if asked.limits is None else (asked.limits[0], asked.limits[1])
    pixels = seen.frames[0]
    if asked.what == "distances":
        limits = limits or distance_limits(seen.radius, seen.valid)
        pixels = radial_picture(seen.radius, seen.valid, limits)[0]
    return PictureMade(pixels, seen.radius[0], limits, path.notes + list(made.notes))


def clearance(asked: SceneAsked, path: Cameras) -> str:
    """What a path runs into, in words; nothing where it is clear."""
    if not asked.is_blocks:
        return ""
    blocks = blocks_of(asked)
    try:
        check_clear(blocks, block_scene(blocks, asked.eye), path)
    except InputError as error:
        return str(error)
    return ""


def raw_metres(metres: Float[Tensor, "h w"]) -> bytes:
    return metres.numpy().astype("<f4").tobytes()
