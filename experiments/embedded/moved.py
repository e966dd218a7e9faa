"""Does a thing go where a map has it? One named thing alone in its court, moved by the map and by nothing else.

    python experiments/embedded/moved.py -o experiments/results/embedded/moved.md

Test captions of one thing. Each is filmed with one camera and one noise and the exact maps of several layouts, in which
the thing alone stands, nearer or farther, left or right. A map does not say which thing is which, so there is but one.
The embedded estimator reads where it stands. Correlations are over clips and layouts; of moves: of each position less
the mean over its clip's layouts, so that nothing but the map can have made it.
"""

import argparse
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from score import films, through_the_codec
from torch import Tensor

from curvedray.evaluate.estimators.clip_reader import Reading
from curvedray.evaluate.estimators.embedded import WEIGHTS as ESTIMATOR
from curvedray.evaluate.estimators.embedded import Embedded
from curvedray.evaluate.map_obedience import correlation_by_clip
from curvedray.evaluate.report import interval_text
from curvedray.evaluate.world_truth import KnownClips
from curvedray.files import whole_file
from curvedray.models.embedded.model import ADAPTER, WEIGHTS, load_embedded
from curvedray.radial.map import RadialMap
from curvedray.tables import markdown_table
from curvedray.world.raycast import render
from curvedray.world.world import Split, WorldClip, scene, world_clip

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)
LAYOUTS = 3


def of_one_thing(split: Split) -> Iterator[int]:
    """Numbers of clips whose caption names one thing that stands still."""
    for number in count():
        nouns = scene(number, split).description.nouns
        if len(nouns) == 1 and nouns[0].moving is None:
            yield number


def alone(clip: WorldClip) -> WorldClip:
    """The same clip without what its caption does not name."""
    court = replace(clip.world.scene, things=clip.world.scene.things[:1])
    seen = render(court, clip.cameras)
    world = replace(clip.world, scene=court)
    return replace(clip, video=seen.frames, radius=seen.radius, valid=seen.valid, world=world)


def positions(truth: KnownClips, said: Reading) -> np.ndarray:
    """Of each clip's thing, (clip, layout, what was asked and what is read, bearing and log distance)."""
    there = truth.colour == 0
    both = torch.stack([truth.position[there], said.position[there]], 1)
    return both.double().reshape(-1, LAYOUTS, 2, 2).numpy()


def cells(found: np.ndarray) -> list[str]:
    """r of bearing and distance, then of their moves."""
    moves = found - found.mean(1, keepdims=True)
    columns = [(list(some[:, :, 0, axis]), list(some[:, :, 1, axis])) for some in (found, moves) for axis in (0, 1)]
    return [interval_text(correlation_by_clip(*column)) for column in columns]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    parser.add_argument("--estimator", type=Path, default=ESTIMATOR)
    parser.add_argument("--adapter", type=Path, default=ADAPTER)
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--split", choices=["val", "test"], default="test")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    model, estimator = load_embedded(options.model), Embedded.load(options.estimator)
    numbers = track(islice(of_one_thing(options.split), options.clips), "rendering", total=options.clips)
    clips = [[alone(world_clip(i, options.split, layout=k)) for k in range(LAYOUTS)] for i in numbers]
    flat = [clip for layouts in clips for clip in layouts]
    truth = KnownClips.of(flat)

    nears = [RadialMap.from_metric(one[0].radius, one[0].valid).near for one in clips]

    def filmed(mapped: bool, words: str) -> Tensor:
        """A layout at a time, so that every layout of a clip begins with the same noise, and is told the same path: in
        the near distance of its first layout."""
        made = []
        for layout in range(LAYOUTS if mapped else 1):
            some = [one[layout] for one in clips]
            maps = [RadialMap.from_metric(i.radius, i.valid, near=near) for i, near in zip(some, nears, strict=True)]
            made.append(torch.cat(list(films(model, options.adapter, some, mapped, {}, words, maps))))
        return torch.stack(made * (1 if mapped else LAYOUTS), 1).flatten(0, 1)

    shown = {
        "filmed with its map": filmed(True, "with a map"),
        "filmed without a map": filmed(False, "without a map"),
        "rendered (the estimator's own)": torch.cat(list(through_the_codec(model, flat, "rendered"))),
    }
    rows = [[name, *cells(positions(truth, estimator.read(videos)))] for name, videos in shown.items()]
    head = ["clips", *(f"{what}, {way}" for what in ("r", "r of moves") for way in ("left to right", "near to far"))]
    text = (
        f"# A thing moved in the map\n\n{options.clips} {options.split} captions of one thing, {LAYOUTS} layouts each, "
        "the thing alone in its court; the same camera and noise for a clip's layouts. Pearson's r of where a map has "
        "the thing and where the embedded estimator reads it, with 95 % intervals; of moves: of positions less their "
        "clip's mean over layouts. Without a map there is one film, which is compared with every layout. "
        f"`python experiments/embedded/moved.py --clips {options.clips}`, {date.today().isoformat()}, two CPU cores."
        f"\n\n{markdown_table(head, rows)}\n"
    )
    with whole_file(options.out) as temporary:
        temporary.write_text(text)
    log.info("%s", text)


if __name__ == "__main__":
    main()
