"""Camera files in and out, each with its own convention, all of them to and from one: `Cameras`.

In: a path, and what the file does not say (a lens, a size). Out: `Cameras`; or a file of any format that can hold them.
It knows cameras, and how files are read and written; it may not know models, or what the cameras are for.
"""

from typing import TYPE_CHECKING

from curvedray.lazy_names import lazy_names

if TYPE_CHECKING:
    from curvedray.formats.curvedray_json import cameras_from_json, cameras_to_json
    from curvedray.formats.detect import Detection, detect_format
    from curvedray.formats.lens_files import read_lens
    from curvedray.formats.of_video import cameras_of_video
    from curvedray.formats.options import Option
    from curvedray.formats.panshot import read_requests
    from curvedray.formats.read import GENERAL, read_cameras
    from curvedray.formats.registry import FORMATS, Format
    from curvedray.formats.write import write_cameras
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "FORMATS": "registry",
            "GENERAL": "read",
            "Detection": "detect",
            "Format": "registry",
            "Option": "options",
            "cameras_from_json": "curvedray_json",
            "cameras_of_video": "of_video",
            "cameras_to_json": "curvedray_json",
            "detect_format": "detect",
            "read_cameras": "read",
            "read_lens": "lens_files",
            "read_requests": "panshot",
            "write_cameras": "write",
        },
    )

__all__ = [
    "FORMATS",
    "GENERAL",
    "Detection",
    "Format",
    "Option",
    "cameras_from_json",
    "cameras_of_video",
    "cameras_to_json",
    "detect_format",
    "read_cameras",
    "read_lens",
    "read_requests",
    "write_cameras",
]
