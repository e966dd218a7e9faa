"""Which clips are trained on: a split by where clips come from, so that no scene is on both sides.

Every clip of a source falls on the same side. The side follows from the source's name and a seed alone, so a source
keeps its side when others are added or removed.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.inputs import is_file, read_json

SHARES = (0.05, 0.05)  # of the sources: for validation, for test
SPLITS = ("train", "val", "test")
FILE = "splits.json"  # beside the data: the split of every source, by its name


def split_of_source(source: str, seed: int = 0, val: float = SHARES[0], test: float = SHARES[1]) -> str:
    """`train`, `val` or `test`. The shares are those of many sources; few may fall otherwise."""
    if min(val, test) < 0 or val + test >= 1:
        raise InputError("shares of a split", "val and test of at least 0, together below 1", f"{val:g} and {test:g}")
    digest = hashlib.sha256(f"{seed}\0{source}".encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    return "test" if place < test else "val" if place < test + val else "train"


def write_splits(
    folder: Path, sources: Iterable[str], seed: int = 0, val: float = 0.05, test: float = 0.05
) -> dict[str, str]:
    """A split for every source, in a file beside the data that every layout's reader looks at."""
    splits = {source: split_of_source(source, seed, val, test) for source in sorted(set(sources))}
    with whole_file(folder / FILE) as temporary:
        temporary.write_text(json.dumps(splits, indent=1))
    return splits


def read_splits(folder: Path) -> dict[str, str]:
    """What `write_splits` wrote, or somebody by hand; nothing where there is no such file."""
    if not is_file(folder / FILE):
        return {}
    stored = read_json(folder / FILE, "a JSON object of splits by source")
    if not isinstance(stored, dict):
        raise InputError(str(folder / FILE), "a JSON object of splits by source", type(stored).__name__)
    for source, split in stored.items():
        if split not in SPLITS:
            raise InputError(f"{folder / FILE}: {source}", " or ".join(SPLITS), split)
    return stored
