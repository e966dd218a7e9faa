"""Which clips are trained on: a split by where clips come from, so that no scene is on both sides.

Every clip of a source falls on the same side. The side follows from the source's name and a seed alone, so a source
keeps its side when others are added or removed.
"""

import hashlib

from curvedray.errors import InputError

SHARES = (0.05, 0.05)  # of the sources: for validation, for test


def split_of_source(source: str, seed: int = 0, val: float = SHARES[0], test: float = SHARES[1]) -> str:
    """`train`, `val` or `test`. The shares are those of many sources; few may fall otherwise."""
    if min(val, test) < 0 or val + test >= 1:
        raise InputError("shares of a split", "val and test of at least 0, together below 1", f"{val:g} and {test:g}")
    digest = hashlib.sha256(f"{seed}\0{source}".encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    return "test" if place < test else "val" if place < test + val else "train"
