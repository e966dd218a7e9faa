"""PanShot: as its authors lay it out, or as requests that pair poses with a lens and a caption."""

from pathlib import Path

from curvedray.data.labels import split_of_name
from curvedray.data.layouts.below import files_below
from curvedray.data.layouts.realestate import VIDEOS
from curvedray.data.records import AnyRecord, FaultyRecord, Record
from curvedray.data.tables import Row, loose_rows, number_value, table_rows, text_value
from curvedray.errors import InputError
from curvedray.formats.panshot import near_distances
from curvedray.inputs import read_bytes, read_json, reading


def panshot_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    """PanShot as it is released, with its own splits; else requests."""
    released = [record for split in ("train", "val", "test") for record in _released(folder, split)]
    return released or _requested(folder)


def _released(folder: Path, split: str) -> list[AnyRecord]:
    """PanShot/meta-SPLIT/CLIP.json pairs videos with poses and lenses, captioned-SPLIT.jsonl has the captions.

    PanFlow/near_plane_depth-SPLIT.jsonl has a near depth per CLIP, pose-SPLIT the poses, videos-SPLIT the videos. A
    video that has no caption is left out, as its authors do.
    """
    root = folder / "PanShot" if (folder / "PanShot").is_dir() else folder
    table = root / f"captioned-{split}.jsonl"
    if not (root / f"meta-{split}").is_dir() or not table.is_file():
        return []
    captions = {row["video"]: row for row in table_rows(table) if isinstance(row, dict) and "video" in row}
    depths: dict[str, float] = {}
    for base in (folder / "PanFlow", root.parent / "PanFlow", root):
        if (base / f"near_plane_depth-{split}.jsonl").is_file():
            depths = near_distances(base / f"near_plane_depth-{split}.jsonl")
            break
    records: list[AnyRecord] = []
    for meta in sorted((root / f"meta-{split}").glob("*.json")):
        try:
            rows = _videos_of(meta)
        except InputError as error:
            records.append(FaultyRecord(meta.stem, error, split))
            continue
        for number, row in enumerate(rows, 1):
            where = f"{meta.name} video {number}"
            try:
                name = text_value(row.get("video"), f"{where}: video")
                if name not in captions:
                    continue
                if meta.stem not in depths:
                    raise InputError(
                        where, f"a near depth of {meta.stem}", "none", f"See near_plane_depth-{split}.jsonl"
                    )
                poses = root / f"pose-{split}" / f"{text_value(row.get('pose'), f'{where}: pose')}.npy"
                record = Record(
                    root / f"videos-{split}" / f"{name}.mp4",
                    poses,
                    text_value(captions[name].get("caption", ""), f"{where}: caption"),
                    name,
                    "panshot",
                    near=depths[meta.stem],
                    unit="arbitrary",  # of the poses, and near depths are in it
                    hfov=number_value(row.get("x_fov"), f"{where}: x_fov"),
                    xi=number_value(row.get("xi", 0.0), f"{where}: xi"),
                    split=split,
                    source=meta.stem,
                )
            except InputError as error:
                records.append(FaultyRecord(where, error, split))
            else:
                records.append(record)
    return records


def _videos_of(meta: Path) -> list[Row]:
    """The videos that were taken of a clip of PanFlow: an object with a list of them, or a list of such objects."""
    stored = read_json(meta, "an object with `videos`, or a list of such")
    matches = stored if isinstance(stored, list) else [stored]
    with reading(str(meta), "objects with a list `videos`"):
        return [dict(video) for match in matches for video in match.get("videos", [])]


def _requested(folder: Path) -> list[AnyRecord]:
    """Requests (.json or .jsonl with x_fov, xi, caption, pose_path), poses, near_plane_depth-*.jsonl, videos.

    A request's video is its `video_path`, or the video that bears the name of its poses, which are PanShot's .npy or
    RealEstate10K's text. Poses keep their own unit, and near depths are in it. The split is that of the file names:
    requests or near depths that end in -test or -val are held out.
    """
    below = files_below(folder, (".json", ".jsonl", *VIDEOS))
    depth_files = [i for i in below if i.name.startswith("near_plane_depth-") and i.suffix == ".jsonl"]
    requests = [i for i in below if i.suffix in (".json", ".jsonl") and i not in depth_files and _may_request(i)]
    found = [(row, split_of_name(path)) for path in requests for row in loose_rows(path)]
    rows = [(row, split) for row, split in found if {"pose_path", "x_fov"} <= set(row)]
    near: dict[str, float] = {}
    splits: dict[str, str] = {}
    for path in depth_files if rows else ():
        depths = near_distances(path)
        near |= depths
        splits |= dict.fromkeys(depths, split_of_name(path))
    videos = {path.stem: path for path in below if path.suffix.lower() in VIDEOS}
    records: list[AnyRecord] = []
    for number, (row, split) in enumerate(rows, 1):
        where = f"request {number}"
        try:
            poses = folder / text_value(row["pose_path"], f"{where}: pose_path")
            video = folder / text_value(row["video_path"], f"{where}: video_path") if "video_path" in row else None
            own = poses.stem if poses.stem in near else poses.stem.rsplit("-", 2)[0]  # parts of a clip share its depth
            record = Record(
                video or videos.get(poses.stem) or poses.with_suffix(".mp4"),  # a missing one is reported as missing
                poses,
                text_value(row.get("caption", ""), f"{where}: caption"),
                poses.stem,
                "panshot" if poses.suffix.lower() == ".npy" else "realestate10k",
                near=near.get(own),
                unit="arbitrary",
                hfov=number_value(row["x_fov"], f"{where}: x_fov"),
                xi=number_value(row.get("xi", 0.0), f"{where}: xi"),
                split=split or splits.get(own, ""),
                poses="" if poses.suffix.lower() == ".npy" else "first",  # RealEstate10K's go on, as UCPE takes them
            )
        except InputError as error:
            records.append(FaultyRecord(where, error))
        else:
            records.append(record)
    return records


def _may_request(path: Path) -> bool:
    """Whether a file has the words of a request at all: a disk's other JSON is not parsed for them."""
    try:
        content = read_bytes(path)
    except InputError:
        return False
    return b"pose_path" in content and b"x_fov" in content
