"""A data set in pictures: its lenses, its motion, a sheet of its clips, and what is unusual about which.

n clip
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import UInt8
from torch import Tensor

from curvedray.data.cache import broken_shards
from curvedray.data.check import ClipReport, report_on
from curvedray.data.clips import FootageSource
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.media.histogram import histogram
from curvedray.media.image import write_png
from curvedray.media.pictures import contact_sheet
from curvedray.tables import markdown_table, plain

ODD = 5.0  # robust deviations from the middle: one clip in a million, if they were normal
FEWEST = 8  # clips below which nothing can be called unusual
SHOWN = 24  # clips on the sheet
THUMB = (160, 96)
MEASURES: dict[str, tuple[str, str, Callable[[ClipReport], float]]] = {
    "hfov": ("field of view", "°", lambda row: row.hfov),
    "xi": ("bend xi", "", lambda row: row.xi),
    "rotation": ("turning per clip", "°", lambda row: row.rotation),
    "travel": ("travel per clip", "", lambda row: row.travel),
    "frames": ("frames", "", lambda row: float(row.frames)),
    "words": ("words of caption", "", lambda row: 0.0),
    "brightness": ("brightness", "", lambda row: 0.0),
}
COUNTED = ("frames", "words")


@dataclass(frozen=True)
class Described:
    """One clip's numbers, by the names of MEASURES, and what is wrong with it."""

    clip: str
    numbers: dict[str, float]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class SetDescription:
    """What a data set is like."""

    clips: int
    readable: int
    middles: dict[str, tuple[float, float, float]]  # least, median, greatest
    unusual: tuple[tuple[str, str], ...]  # clip, why
    problems: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe_set(
    source: FootageSource, folder: Path, tick: Callable[[int, int], None] = lambda done, total: None
) -> SetDescription:
    """Look at every clip once; write description.md, lens.png, motion.png and sheet.png."""
    rows: list[Described] = []
    thumbs: list[tuple[str, Tensor]] = []
    shown = set(np.linspace(0, len(source) - 1, min(SHOWN, len(source))).round().astype(int).tolist())
    for index in range(len(source)):
        tick(index, len(source))
        name = source.name_of(index)
        try:
            footage = source[index]
            report = report_on(footage)
        except InputError as error:
            rows.append(Described(name, {}, (str(error),)))
            continue
        numbers = {key: read(report) for key, (_, _, read) in MEASURES.items()}
        numbers["words"] = float(len(footage.caption.split()))
        numbers["brightness"] = float(footage.video[:: max(1, len(footage.video) // 4)].float().mean()) / 255
        rows.append(Described(name, numbers, report.problems))
        if index in shown:
            thumbs.append((name, thumbnail(footage.video[len(footage.video) // 2])))
    tick(len(source), len(source))
    found = summary(rows)
    found = replace(found, problems=(*found.problems, *broken_shards(source)))
    _write(folder, rows, thumbs, found)
    return found


def summary(rows: Sequence[Described]) -> SetDescription:
    known = [row for row in rows if row.numbers]
    middles = {}
    for key in MEASURES if known else ():
        values = np.array([row.numbers[key] for row in known])
        middles[key] = (float(values.min()), float(np.median(values)), float(values.max()))
    problems = tuple((row.clip, problem) for row in rows for problem in row.problems)
    return SetDescription(len(rows), len(known), middles, tuple(_unusual(known)), problems)


def _unusual(rows: Sequence[Described]) -> Iterator[tuple[str, str]]:
    """Clips far from the middle in any number, by how much most of the others differ from it."""
    if len(rows) < FEWEST:
        return
    for key, (words, unit, _) in MEASURES.items():
        values = np.array([row.numbers[key] for row in rows])
        middle = np.median(values)
        usual = 1.4826 * np.median(np.abs(values - middle))  # of normal numbers, their standard deviation
        least = 1.0 if key in COUNTED else 1e-6
        usual = max(usual, 0.01 * abs(middle), least)  # most are alike: a hundredth, or one word, is no oddity
        for row, value in zip(rows, values, strict=True):
            if abs(value - middle) > ODD * usual:
                yield row.clip, f"{words} {value:.3g}{unit}, where the middle is {middle:.3g}{unit}"


def thumbnail(frame: UInt8[Tensor, "h w 3"]) -> UInt8[Tensor, "y x 3"]:
    """A frame cropped in the middle to the sheet's shape, and shrunk."""
    height, width = frame.shape[:2]
    tall, wide = min(height, round(width * THUMB[1] / THUMB[0])), min(width, round(height * THUMB[0] / THUMB[1]))
    top, left = (height - tall) // 2, (width - wide) // 2
    part = frame[top : top + tall, left : left + wide].movedim(-1, 0)[None].float()
    small = F.interpolate(part, (THUMB[1], THUMB[0]), mode="bilinear", antialias=True, align_corners=False)
    return small[0].round().clamp(0, 255).to(torch.uint8).movedim(0, -1)


def _write(
    folder: Path, rows: Sequence[Described], thumbs: Sequence[tuple[str, Tensor]], found: SetDescription
) -> None:
    known = [row.numbers for row in rows if row.numbers]
    for name, keys in (("lens", ("hfov", "xi")), ("motion", ("rotation", "travel"))):
        pair = [histogram([i[key] for i in known], MEASURES[key][0], MEASURES[key][1]) for key in keys]
        write_png(torch.cat(pair, 1), folder / f"{name}.png")
    pictures = ["![lenses](lens.png)", "![motion](motion.png)"]
    if thumbs:
        labels = [name if len(name) <= 20 else f"...{name[-17:]}" for name, _ in thumbs]
        write_png(contact_sheet(torch.stack([i for _, i in thumbs]), 6, labels), folder / "sheet.png")
        pictures.append("![clips](sheet.png)")
    table = markdown_table(
        ["", "least", "middle", "greatest"],
        [[MEASURES[key][0], *(f"{i:.3g}{MEASURES[key][1]}" for i in three)] for key, three in found.middles.items()],
    )
    parts = [f"# {found.readable} of {found.clips} clips can be read", table, *pictures]
    for title, listed in (("Unusual", found.unusual), ("Problems", found.problems)):
        parts.append(f"## {title}")
        parts.append("\n".join(f"- {plain(clip)}: {plain(why)}" for clip, why in listed) or "None.")
    with whole_file(folder / "description.md") as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
