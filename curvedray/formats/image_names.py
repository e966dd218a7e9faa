"""The images that a capture's camera file names, in the order in which `read_cameras` gives their cameras."""

from pathlib import Path

from curvedray.errors import InputError
from curvedray.formats.colmap import pycolmap
from curvedray.formats.source import Source, natural
from curvedray.inputs import first_line


def nerfstudio_images(path: Path) -> list[str]:
    """The file_path of every frame of a transforms.json."""
    frames = Source.open(path).json["frames"].items()
    return sorted((frame["file_path"].text() for frame in frames), key=natural)


def colmap_images(folder: Path) -> list[str]:
    """The names of a model's images that have a pose."""
    try:
        model = pycolmap().Reconstruction(folder)
        return sorted((image.name for image in model.images.values() if image.has_pose), key=natural)
    except (ValueError, RuntimeError, IndexError, MemoryError, OverflowError) as error:
        raise InputError(str(folder), "a COLMAP model", first_line(error), "Is a file cut short?") from error
