"""Maps of distances from words: block a scene out, change it, carry it to another camera. The pictures of the docs.

python examples/06_distance_maps.py [FOLDER]
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from curvedray import trajectory
from curvedray.cameras.named_lenses import named_lens
from curvedray.media.distance_colours import distance_limits, radial_picture, with_scale
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet, enlarged
from curvedray.radial.carry import carried
from curvedray.radial.edit import Region, edited
from curvedray.radial.map import RadialMap
from curvedray.world.block_map import film_blocks
from curvedray.world.blocks import parse_blocks

SCENE = "box 1x1x2m at left 2m ahead 4m; wall ahead 7m; ball 0.5m at right 1m ahead 3m moving left 1m"
FRAMES, ZOOM = (0, 8, 16), 3


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


def coloured(map: RadialMap, limits: tuple[float, float] | None) -> torch.Tensor:
    return enlarged(radial_picture(map.radius, map.valid, limits)[list(FRAMES)], ZOOM)


def sheet(pictures: list[torch.Tensor], labels: list[str], limits: tuple[float, float] | None, path: Path) -> None:
    write_png(with_scale(contact_sheet(torch.stack(pictures), 3, labels), limits), path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "images")
