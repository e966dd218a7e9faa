"""A lens as the page says it, as a Lens, and as the name by which the command line makes it again."""

from dataclasses import replace

import torch

from curvedray.app.requests import LensAsked
from curvedray.cameras import Lens
from curvedray.cameras.lens_table import USUAL_LENS
from curvedray.cameras.named_lenses import named_lens
from curvedray.moves.move import plain

WIDEST_PINHOLE = 175.0  # degrees of the family that has names
USUAL = LensAsked(name=USUAL_LENS)


def lens_of(asked: LensAsked | None, width: int, height: int) -> Lens:
    """The lens on an image's pixels; the usual one where none is asked for."""
    asked = asked or USUAL
    lens = named_lens(_base_name(asked), width, height)
    if asked.zoom != 1:
        lens = lens.zoomed(asked.zoom)
    if any(asked.pan):
        shift = torch.tensor([asked.pan[0] * width, asked.pan[1] * height], dtype=lens.center.dtype)
        lens = replace(lens, center=lens.center + shift)
    return lens


def name_of(asked: LensAsked | None) -> str | None:
    """What `--lens` takes; None for a lens that was panned or zoomed, which only a camera file holds."""
    asked = asked or USUAL
    return None if any(asked.pan) or asked.zoom != 1 else _base_name(asked)


def _base_name(asked: LensAsked) -> str:
    """A field of view and a bend make a name too: `fisheye-150@0.9`."""
    if asked.name is not None:
        return asked.name
    assert asked.hfov is not None
    degrees, bend = plain(round(asked.hfov, 3)), plain(round(asked.xi, 4))
    if asked.xi == 0 and asked.hfov <= WIDEST_PINHOLE:
        return f"pinhole-{degrees}"
    return f"fisheye-{degrees}@{bend}"
