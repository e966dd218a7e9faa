"""Data sets as their authors lay them out. A layout looks at a folder and lists its clips, or finds it is not its own.

In: a folder, and how long clips are to be. Out: a record per clip. To add one, write `NAME_records(folder, frames)` in
a file here and name it below. The first layout that finds clips is taken, so those with the plainest marks come last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from curvedray.data.layouts.arkit import arkit_records
from curvedray.data.layouts.captures import colmap_records, nerfstudio_records
from curvedray.data.layouts.davis import davis_records
from curvedray.data.layouts.frames import frames_records
from curvedray.data.layouts.hugging_face import hugging_face_records
from curvedray.data.layouts.kitti360 import kitti360_records
from curvedray.data.layouts.metadata import metadata_records
from curvedray.data.layouts.miradata import miradata_records
from curvedray.data.layouts.panshot import panshot_records
from curvedray.data.layouts.realcam import realcam_records
from curvedray.data.layouts.realestate import realestate_records
from curvedray.data.layouts.scannetpp import scannetpp_records
from curvedray.data.records import AnyRecord


@dataclass(frozen=True)
class Layout:
    """One way in which data sets lie on disk."""

    name: str
    records: Callable[[Path, int | None], list[AnyRecord]]


LAYOUTS = (
    Layout("metadata", metadata_records),
    Layout("kitti-360", kitti360_records),
    Layout("davis", davis_records),
    Layout("hugging face", hugging_face_records),
    Layout("scannet++", scannetpp_records),
    Layout("arkitscenes", arkit_records),
    Layout("nerfstudio", nerfstudio_records),
    Layout("colmap", colmap_records),
    Layout("realcam-vid", realcam_records),
    Layout("miradata", miradata_records),
    Layout("panshot", panshot_records),
    Layout("realestate10k", realestate_records),
    Layout("frames", frames_records),
)
