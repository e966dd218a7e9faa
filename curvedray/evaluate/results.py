"""One clip's result, and its file, which a stopped run resumes from.

A report's folder may be handed on, so what is read back is checked: types, finite numbers, poses of one shape, and
pictures that are JPEGs and nothing else.
"""

import base64
import binascii
import io
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from curvedray.configs import config_of
from curvedray.errors import InputError
from curvedray.evaluate.scores import Score
from curvedray.files import whole_file
from curvedray.inputs import read_json

THUMBNAILS, THUMBNAIL_WIDTH = 5, 208
JPEG = b"\xff\xd8\xff"  # how one begins

WORDS = re.compile(r"[\w .()/%+-]{1,60}")  # a metric's name, a unit: they go into Markdown and LaTeX as they are

Path3x4 = list[list[list[float]]]  # (t, 3, 4), relative to the first frame, the largest translation 1


@dataclass(frozen=True)
class ClipResult:
    """What the page and the tables know of one clip."""

    clip: str
    scores: list[Score] = field(default_factory=list)
    failure: str = ""
    suspect: str = ""  # why the estimator's answer is in doubt; the clip is scored all the same, and marked
    lens: str = ""
    stratum: str = ""
    near_static: bool = False
    note: str = ""
    requested: Path3x4 = field(default_factory=list)
    recovered: Path3x4 = field(default_factory=list)
    thumbnails: list[str] = field(default_factory=list)  # JPEG, base64
    seconds: float = 0.0
    key: str = ""


def write_result(result: ClipResult, path: Path) -> None:
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(asdict(result)), encoding="utf-8")


def saved_result(path: Path, clip: str, key: str) -> ClipResult | None:
    """A clip's result saved before, if it is whole and of the same job; a damaged one is as good as none."""
    if not path.is_file():
        return None
    try:
        result = config_of(ClipResult, read_json(path, "a clip's result"), path.name)
        check_content(result)
    except InputError:
        return None
    return result if (result.clip, result.key) == (clip, key) else None


def check_content(result: ClipResult) -> None:
    """What types alone do not say: names are words, poses (t, 3, 4) and as many, pictures base64 of a JPEG."""
    for score in result.scores:
        if score.clip != result.clip or not all(WORDS.fullmatch(name) for name in (score.metric, score.unit)):
            raise InputError("scores", "metrics and units of this clip in plain words", score.metric)
    asked, got = (_shape(path) for path in (result.requested, result.recovered))
    if asked != got or (asked != (0,) and asked[1:] != (3, 4)):
        raise InputError("poses", "two paths of (t, 3, 4)", f"{asked} and {got}")
    for picture in result.thumbnails:
        try:
            start = base64.b64decode(picture, validate=True)[: len(JPEG)]
        except (binascii.Error, ValueError) as error:
            raise InputError("thumbnail", "base64", "other text") from error
        if start != JPEG:
            raise InputError("thumbnail", "a JPEG", "another file")


def _shape(path: Path3x4) -> tuple[int, ...]:
    try:
        return np.array(path, dtype=np.float64).shape
    except ValueError as error:  # rows of several lengths
        raise InputError("poses", "rows of one length", "several") from error


def thumbnails(video: UInt8[np.ndarray, "t h w 3"]) -> list[str]:
    """A few frames from the first to the last, small."""
    chosen = np.linspace(0, len(video) - 1, min(THUMBNAILS, len(video))).round().astype(int)
    pictures = []
    for index in chosen:
        picture = Image.fromarray(video[index])
        picture = picture.resize((THUMBNAIL_WIDTH, max(1, round(THUMBNAIL_WIDTH * picture.height / picture.width))))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=82)
        pictures.append(base64.b64encode(buffer.getvalue()).decode())
    return pictures
