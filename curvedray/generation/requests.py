"""A list of videos to make: a JSON object per line, in PanShot's form or our own; a bad line is named, with why.

PanShot's form is that of its test set: `pose_path`, `x_fov`, `xi` and `caption`. Ours names what `curvedray generate`
takes: a `prompt`, a `move` or a `camera` file, a `lens`, a `seed` ...
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from curvedray.configs import config_of
from curvedray.errors import InputError
from curvedray.files import plain_name
from curvedray.generation.settings import GUIDED, SIZES
from curvedray.inputs import parsed_json, read_text

PANSHOT = {"pose_path": "camera", "caption": "prompt", "near_depth": "near"}  # its words for ours
PATHS = ("move", "camera")  # a line that names one of them does without the other's default
MOST_REQUESTS = 1_000_000
LONGEST_SLUG = 60  # characters of a prompt that go into a file's name


@dataclass(frozen=True)
class VideoRequest:
    """One video to make. What is None is the command's, or the model's own."""

    prompt: str
    name: str = ""  # of its files; without one, the path's or the prompt's with a digest of the whole line
    move: str | None = None
    camera: str | None = None  # a camera file, from the folder of the list
    lens: str | None = None
    x_fov: float | None = None  # degrees across the width, with xi: a lens in PanShot's terms
    xi: float | None = None
    near: float | None = None
    near_depths: str | None = None  # PanShot's .jsonl, in which the clip's near distance is looked up
    zero_yaw: bool | None = None
    traj_normalization: float | None = None
    radial: str | None = None  # a map of distances, from the folder of the list
    negative: str | None = None
    seed: int | None = None
    frames: int | None = None
    width: int | None = None
    height: int | None = None
    steps: int | None = None
    guidance: float | None = None
    camera_guidance: float | None = None
    map_guidance: float | None = None
    block_guidance: float | None = None
    left_out: int | None = None
    drop_text: bool | None = None
    sampler: str | None = None
    shift: float | None = None
    radial_sigma: float | None = None
    zoom: int | None = None
    fps: float | None = None

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise InputError("prompt", "what the video shows", "no words")
        if self.move is not None and self.camera is not None:
            raise InputError("camera", "a move or a camera file", "both")
        if (self.x_fov is None) != (self.xi is None):
            got = "x_fov alone" if self.xi is None else "xi alone"
            raise InputError("lens", "x_fov and xi together", got)
        if self.x_fov is not None and self.lens is not None:
            raise InputError("lens", "a lens by name, or x_fov and xi", "both")
        if self.name:
            plain_name(self.name, "name")

    @property
    def settings(self) -> dict[str, Any]:
        """What `Settings` takes, by name; None is the model's own."""
        names = (*SIZES, *GUIDED, "map_guidance", "steps", "sampler", "shift", "seed", "zoom")
        return {name: getattr(self, name) for name in names}

    @property
    def file(self) -> str:
        """The name of its files: the one given, or one that changes when anything in the line does."""
        if self.name:
            return self.name
        words = Path(self.camera).stem if self.camera else self.prompt
        slug = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-").lower()[:LONGEST_SLUG].strip("-")
        record = asdict(self)
        # However a list's path was spelled, it asks for the same videos.
        record |= {key: str(Path(record[key]).resolve()) for key in ("camera", "radial", "near_depths") if record[key]}
        digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:10]
        return f"{slug or 'video'}-{digest}"


@dataclass(frozen=True)
class BadLine:
    """A line that is no request, and why."""

    line: int
    reason: str


def read_video_requests(
    path: str | Path, defaults: dict[str, Any] | None = None
) -> tuple[list[VideoRequest], list[BadLine]]:
    """The requests of a .jsonl, or of a .json list as PanShot's test set is, and the lines that are none.

    `defaults` hold for every line that says nothing else. Paths start at the list's own folder.
    """
    path = Path(path)
    requests: dict[str, tuple[int, VideoRequest]] = {}
    bad: list[BadLine] = []
    for number, found in _records(path):
        try:
            if isinstance(found, InputError):
                raise found
            request = _request(found, defaults or {}, path.parent, f"{path.name}, line {number}")
            before = requests.get(request.file)
            if before is not None:
                raise InputError(f"{path.name}, line {number}", "a name of its own", f"that of line {before[0]}")
            requests[request.file] = number, request
        except InputError as error:
            bad.append(BadLine(number, str(error)))
    return [request for _, request in requests.values()], bad


def _records(path: Path) -> list[tuple[int, Any]]:
    """Numbers and records: lines of a .jsonl, entries of a .json list; a record may be the error of its line."""
    text = read_text(path, "a list of requests")
    if path.suffix.lower() == ".json":
        whole = parsed_json(text, str(path), "a list of requests")
        found: list[tuple[int, Any]] = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
    else:
        found = []
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    found.append((number, parsed_json(line, f"{path.name}, line {number}", "a JSON object")))
                except InputError as error:
                    found.append((number, error))
    if not found:
        raise InputError(str(path), "at least one request", "none")
    if len(found) > MOST_REQUESTS:
        raise InputError(str(path), f"at most {MOST_REQUESTS} requests", len(found), "Split the list.")
    return found


def _request(record: Any, defaults: dict[str, Any], folder: Path, where: str) -> VideoRequest:
    if not isinstance(record, dict):
        raise InputError(where, "a JSON object: names and values", type(record).__name__)
    if "pose_path" in record:  # PanShot's lines carry more than a video needs: whose clip it is, its video
        known = {field.name for field in fields(VideoRequest)} | PANSHOT.keys()
        record = {PANSHOT.get(key, key): value for key, value in record.items() if key in known}
    elif "caption" in record:
        record = {PANSHOT.get(key, key): value for key, value in record.items()}
    record = {key: value for key, value in record.items() if value is not None}
    if any(key in record for key in PATHS):
        defaults = {key: value for key, value in defaults.items() if key not in PATHS}
    if "x_fov" in record or "lens" in record:
        defaults = {key: value for key, value in defaults.items() if key != "lens"}
    merged = {key: value for key, value in defaults.items() if value is not None} | record
    for key in ("camera", "radial", "near_depths"):
        if isinstance(record.get(key), str):
            merged[key] = str(folder / record[key])
    if "prompt" not in merged:
        raise InputError(where, "a prompt, or PanShot's caption", "none")
    try:
        return config_of(VideoRequest, merged, where)
    except InputError as error:
        if error.name.startswith(where):
            raise
        raise InputError(f"{where}: {error.name}", error.expected, error.got, error.fix) from error
