"""A path as a file of any format that the package writes; a folder becomes a .zip."""

import io
import tempfile
import zipfile
from pathlib import Path

from starlette.responses import Response

from curvedray.app.answering import collected_notes, notes_header
from curvedray.app.paths import path_of
from curvedray.app.requests import ExportAsked
from curvedray.app.uploads import Uploads
from curvedray.errors import InputError
from curvedray.formats import FORMATS, write_cameras

WHEN = (1980, 1, 1, 0, 0, 0)  # in every archive, so that equal paths are equal bytes


def exported(asked: ExportAsked, uploads: Uploads) -> Response:
    """The file as an attachment, and what it does not carry."""
    if asked.format not in FORMATS:
        raise InputError("format", f"one of {', '.join(FORMATS)}", asked.format)
    format = FORMATS[asked.format]
    made = path_of(asked.path, uploads)
    cameras = made.cameras if asked.unit == "metric" else made.cameras.scaled(asked.path.near)
    name = f"path-{format.name}{format.extensions[0] if format.extensions else ''}"
    with tempfile.TemporaryDirectory() as folder, collected_notes() as notes:
        target = Path(folder) / name
        write_cameras(cameras, target, format.name)
        is_folder = target.is_dir()
        content = _zipped(target) if is_folder else target.read_bytes()
    headers = notes_header([*made.notes, *notes])
    headers["Content-Disposition"] = f'attachment; filename="{name}{".zip" if is_folder else ""}"'
    kind = "application/zip" if is_folder else "application/octet-stream"
    return Response(content, media_type=kind, headers=headers)


def _zipped(folder: Path) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.writestr(zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder)}", WHEN), file.read_bytes())
    return stream.getvalue()
