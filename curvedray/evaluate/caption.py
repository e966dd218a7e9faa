"""Captions for clips that have none: by a captioner of your own through transformers, or an estimate without weights.

The estimate says what can be measured: how bright a clip is, which colours fill it, and how its camera moves. It is a
stand-in until somebody, or a model, says what is seen.
"""

import colorsys
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import UInt8
from torch import Tensor

from curvedray.data.clips import Footage
from curvedray.data.folders import FolderFootage
from curvedray.data.records import AnyRecord
from curvedray.engine import HERE, Engine, run_jobs
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.inputs import is_file, read_json
from curvedray.moves.describe import describe

FILE = "captions.json"
ESTIMATE = "estimate"
DARK, BRIGHT = 0.25, 0.7  # of full scale
GREY, LEAST_SHARE = 0.18, 0.15  # saturation below which a pixel has no colour; share of a frame that a colour must fill
HUES = ((15, "red"), (45, "orange"), (70, "yellow"), (165, "green"), (200, "turquoise"), (255, "blue"), (290, "purple"))
Captioner = Callable[[Footage], str]


@dataclass(frozen=True)
class Captioned:
    """A clip's caption, or why it has none."""

    clip: str
    caption: str
    failure: str = ""


def caption_folder(
    source: FolderFootage,
    open_captioner: Callable[[], Captioner],
    *,
    again: bool = False,
    done: Callable[[Captioned], None] = lambda made: None,
    engine: Engine = HERE,
    gpu: bool = False,
) -> list[Captioned]:
    """Captions for the clips that have none (or for all, `again`), into captions.json beside the data as they come.

    A capture that is cut into clips has the caption of its first under its own name, for clips of another length.
    """
    path = source.folder / FILE
    captions: dict[str, str] = read_json(path) if is_file(path) else {}
    waiting = [record for record in source.records if again or not record.caption]
    made: list[Captioned] = []

    def heard(number: int, one: Captioned) -> None:
        made.append(one)
        if one.caption:
            captions[one.clip] = one.caption
        if len(made) % 100 == 0:
            _write(path, captions)
        done(one)

    found = run_jobs(waiting, partial(_worker, open_captioner), engine, done=heard, lost=_lost, gpu=gpu)
    if waiting:
        captures = _of_captures(waiting, found)
        _write(path, captions | captures if again else captures | captions)
    return found


def _of_captures(records: list[AnyRecord], found: list[Captioned]) -> dict[str, str]:
    """The caption of each capture's first clip: a capture is a source that its clips' names begin with.

    Not written before all is done: a clip that has its capture's caption no longer waits for its own.
    """
    first: dict[str, str] = {}
    for record, one in zip(records, found, strict=True):
        if one.caption and record.source and record.id.startswith(f"{record.source}-"):
            first.setdefault(record.source, one.caption)
    return first


def _write(path: Path, captions: dict[str, str]) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(captions, indent=1, ensure_ascii=False, sort_keys=True), encoding="utf-8")


def _worker(open_captioner: Callable[[], Captioner]) -> Callable[[AnyRecord], Captioned]:
    return partial(_caption, captioner=open_captioner())


def _caption(record: AnyRecord, captioner: Captioner) -> Captioned:
    try:
        return Captioned(record.id, " ".join(captioner(record.read()).split()))
    except InputError as error:
        return Captioned(record.id, "", str(error))


def _lost(record: AnyRecord, reason: str) -> Captioned:
    return Captioned(record.id, "", reason)


# -- the estimate


def open_estimate() -> Captioner:
    return estimated_caption


def estimated_caption(footage: Footage) -> str:
    """`a bright scene, mostly blue and grey, pan left 40deg`."""
    small = F.interpolate(footage.video[:: max(1, len(footage.video) // 4)].movedim(-1, 1).float() / 255, (18, 32))
    light = small.mean().item()
    shade = "a dark scene" if light < DARK else "a bright scene" if light > BRIGHT else "a scene"
    colours = main_colours((small.movedim(1, -1) * 255).to(torch.uint8))
    said = describe(footage.cameras)
    moves = said.move or said.looks_like
    return ", ".join([shade, f"mostly {' and '.join(colours)}", moves])


def main_colours(frames: UInt8[Tensor, "t h w 3"]) -> list[str]:
    """The names of the one or two colours that fill most of some frames."""
    counts: dict[str, int] = {}
    for red, green, blue in (frames.reshape(-1, 3).double() / 255).tolist():
        name = colour_name(red, green, blue)
        counts[name] = counts.get(name, 0) + 1
    ranked = sorted(counts, key=lambda name: -counts[name])
    total = sum(counts.values())
    return [ranked[0], *(name for name in ranked[1:2] if counts[name] >= LEAST_SHARE * total)]


def colour_name(red: float, green: float, blue: float) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if value < 0.15:
        return "black"
    if saturation < GREY:
        return "white" if value > 0.85 else "grey"
    return next((name for end, name in HUES if hue * 360 < end), "pink" if hue * 360 < 335 else "red")
