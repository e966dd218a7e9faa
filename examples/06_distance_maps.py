"""Maps of distances: from words, from a video, changed, carried to another camera, filmed. The pictures of the docs.

python examples/06_distance_maps.py [FOLDER]
"""

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from curvedray import trajectory
from curvedray.cameras.named_lenses import named_lens
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.label import label_videos
from curvedray.evaluate.matching import Job
from curvedray.formats import write_cameras
from curvedray.generation.parts import load_parts
from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet, enlarged
from curvedray.media.video import read_video, write_video
from curvedray.radial.carry import carried
from curvedray.radial.edit import Region, edited
from curvedray.radial.map import RadialMap, read_radial_map
from curvedray.transfer import transfer
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import parse_blocks
from curvedray.world.world import world_clip

SCENE = "box 1x1x2m at left 2m ahead 4m; wall ahead 7m; ball 0.5m at right 1m ahead 3m moving left 1m"
FRAMES, ZOOM = (0, 8, 16), 3
CLIP, OTHER_PROMPT = 2, "a green pillar and a white ball in a snowy courtyard"


def main(folder: Path) -> None:
    lens = named_lens("fisheye-150", 96, 64)
    made = film_blocks(parse_blocks(SCENE), "orbit left 20deg", lens, 17)
    limits = distance_limits(made.map.radius, made.map.valid)
    grey = enlarged(made.rendered.frames[list(FRAMES)], ZOOM)
    sheet(
        [*grey, *coloured(made.map, limits)],
        ["the scene"] * 3 + ["its distances"] * 3,
        limits,
        folder / "radial_block.png",
    )

    nearer, _ = edited(made.map, Region.of("0.3,0.2,0.7,0.9", None, None), push=-1.0)
    cut, _ = edited(made.map, Region.of("0,0,1,0.4", None, None), cut=True)
    aside = trajectory("truck right 0.5", lens, 17, unit="metric", near=made.map.near)
    moved, share = carried(made.map, made.cameras, replace(aside, lens=lens))
    maps = {"pushed 1 m nearer": nearer, "cut out": cut, f"another camera, {share:.0%}": moved}
    pictures = [coloured(map, limits)[1] for map in maps.values()]
    sheet(pictures, list(maps), limits, folder / "radial_edit.png")

    clip = world_clip(CLIP, "val")
    exact = RadialMap.from_metric(clip.radius, clip.valid)
    with TemporaryDirectory() as place:
        source, cameras = Path(place) / "clip.mp4", Path(place) / "clip.json"
        write_video(clip.video, source, clip.cameras.fps or 8.0, crf=4)
        write_cameras(clip.cameras, cameras)
        label_videos([Job("clip", source, cameras)], Embedded.load(), Path(place) / "labels")
        read = read_radial_map(Path(place) / "labels" / "clip.npz")
        parts = load_parts()
        transfer(source, OTHER_PROMPT, parts, Embedded.load(), Path(place) / "film.mp4", cameras=cameras)
        film = read_video(Path(place) / "film.mp4").frames[list(FRAMES)]
    limits = distance_limits(exact.radius, exact.valid)
    frames, size = enlarged(clip.video[list(FRAMES)], ZOOM), (ZOOM * 64, ZOOM * 96)
    sheet(
        [*frames, *coloured(read, limits), *coloured(exact, limits)],
        ["the video"] * 3 + ["its teacher's distances"] * 3 + ["the exact ones"] * 3,
        limits,
        folder / "radial_label.png",
    )
    filmed = torch.nn.functional.interpolate(film.movedim(-1, 1).float(), size, mode="area").round().to(torch.uint8)
    sheet(
        [*frames, *coloured(read, limits), *filmed.movedim(1, -1)],
        ["the source"] * 3 + ["its map"] * 3 + [OTHER_PROMPT.split(" in ")[0]] * 3,
        limits,
        folder / "radial_transfer.png",
    )


def coloured(map: RadialMap, limits: tuple[float, float] | None) -> torch.Tensor:
    return enlarged(radial_picture(map.radius, map.valid, limits)[list(FRAMES)], ZOOM)


def sheet(pictures: list[torch.Tensor], labels: list[str], limits: tuple[float, float] | None, path: Path) -> None:
    write_png(with_scale(contact_sheet(torch.stack(pictures), 3, labels), limits), path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "images")
