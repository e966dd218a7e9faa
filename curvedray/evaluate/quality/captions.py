"""The caption of every video: from a table, a JSON object, or the recipe that `curvedray generate` noted in it."""

from collections.abc import Mapping
from pathlib import Path

from curvedray.data.tables import table_rows
from curvedray.errors import InputError
from curvedray.evaluate.matching import clip_name
from curvedray.inputs import parsed_json, read_json
from curvedray.media.video import read_notes


def read_captions(path: Path) -> dict[str, str]:
    """Captions by clip: {"clip": "caption"} in a .json, or `id` or `video`, and `caption`, in a .csv or .jsonl."""
    found: dict[str, str] = {}
    if path.suffix.lower() == ".json":
        content = read_json(path, "captions by clip")
        if not isinstance(content, dict):
            raise InputError(str(path), 'an object, {"clip": "caption"}', type(content).__name__)
        rows: list[tuple[object, object]] = list(content.items())
    else:
        rows = []
        for row in table_rows(path):
            if isinstance(row, InputError):
                raise row
            rows.append((row.get("id") or clip_name(Path(str(row.get("video") or ""))), row.get("caption")))
    for clip, caption in rows:
        if not (isinstance(clip, str) and clip and isinstance(caption, str) and caption.strip()):
            raise InputError(str(path), "a clip's name and its caption, both text", f"{clip!r}: {caption!r}")
        found[clip] = caption
    return found


def noted_captions(videos: Mapping[str, Path]) -> dict[str, str]:
    """The prompts that videos carry with them; those that carry none are left out."""
    found = {}
    for clip, video in videos.items():
        try:
            recipe = parsed_json(read_notes(video).get("recipe", "{}"), str(video))
        except InputError:
            continue
        prompt = recipe.get("prompt") if isinstance(recipe, dict) else None
        if isinstance(prompt, str) and prompt.strip():
            found[clip] = prompt
    return found
