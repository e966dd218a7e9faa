"""PanShot: as its authors lay it out, or as requests that pair poses with a lens and a caption."""

from pathlib import Path

from curvedray.data.labels import split_of_name
from curvedray.data.layouts.realestate import VIDEOS
from curvedray.data.records import AnyRecord, FaultyRecord, Record
from curvedray.data.tables import loose_rows, number_value, table_rows, text_value
from curvedray.errors import InputError
from curvedray.formats.panshot import near_distances


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
        for number, row in enumerate([i for match in loose_rows(meta) for i in match.get("videos", [])], 1):
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


def _requested(folder: Path) -> list[AnyRecord]:
    """Requests (.json or .jsonl with x_fov, xi, caption, pose_path), poses, near_plane_depth-*.jsonl, videos.

    A request's video is its `video_path`, or the video that bears the name of its poses, which are PanShot's .npy or
    RealEstate10K's text. Poses keep their own unit, and near depths are in it. The split is that of the file names:
    requests or near depths that end in -test or -val are held out.
    """
    requests = [path for path in sorted(folder.rglob("*.json*")) if not path.name.startswith("near_plane_depth")]
    found = [(row, split_of_name(path)) for path in requests for row in loose_rows(path)]
    rows = [(row, split) for row, split in found if {"pose_path", "x_fov"} <= set(row)]
    near: dict[str, float] = {}
    splits: dict[str, str] = {}
    for path in sorted(folder.rglob("near_plane_depth-*.jsonl")) if rows else ():
        depths = near_distances(path)
        near |= depths
        splits |= dict.fromkeys(depths, split_of_name(path))
    videos = {path.stem: path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEOS}
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
                hfov=number_value(row["x_fov"], f"{where}: x_fov"),
                xi=number_value(row.get("xi", 0.0), f"{where}: xi"),
                split=split or splits.get(own, ""),
            )
        except InputError as error:
            records.append(FaultyRecord(where, error))
        else:
            records.append(record)
    return records
