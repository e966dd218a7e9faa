"""DAVIS-2016: frames, masks of what moves, and its own split. It has no cameras: `curvedray data pose` finds them out.

JPEGImages/480p/SEQUENCE/00000.jpg, Annotations/480p/SEQUENCE/00000.png, ImageSets/480p/train.txt and val.txt
"""

from pathlib import Path

from curvedray.data.pictures import image_files
from curvedray.data.records import AnyRecord, ClipRecord, FaultyRecord, posed_cameras
from curvedray.data.tables import named_captions
from curvedray.errors import InputError
from curvedray.inputs import is_file, read_text

RESOLUTIONS = ("480p", "1080p", "Full-Resolution")


def davis_records(folder: Path, frames: int | None) -> list[AnyRecord]:
    for resolution in RESOLUTIONS:
        images = folder / "JPEGImages" / resolution
        if images.is_dir():
            break
    else:
        return []
    splits = _splits(folder / "ImageSets", resolution)
    captions = named_captions(folder / "captions.json")
    records: list[AnyRecord] = []
    for sequence in sorted(path for path in images.iterdir() if path.is_dir()):
        name = sequence.name
        try:
            pictures = image_files(sequence)
        except InputError as error:
            records.append(FaultyRecord(name, error))
            continue
        masks = tuple(folder / "Annotations" / resolution / name / f"{file.stem}.png" for file in pictures)
        records.append(
            ClipRecord(
                name,
                tuple(pictures),
                posed_cameras(folder / "cameras" / f"{name}.json"),
                captions.get(name, ""),
                moving=masks if all(map(is_file, masks)) else (),
                split=splits.get(name, ""),
                source=name,
            )
        )
    return records


def _splits(sets: Path, resolution: str) -> dict[str, str]:
    """`/JPEGImages/480p/bear/00000.jpg /Annotations/480p/bear/00000.png` in val.txt: bear is held out."""
    found: dict[str, str] = {}
    for split in ("train", "val"):
        for path in (sets / resolution / f"{split}.txt", sets / "2016" / f"{split}.txt"):
            for line in read_text(path).split("\n") if is_file(path) else ():
                first = line.split()[:1]
                parts = Path(first[0]).parts if first else ()
                if parts:
                    found[parts[-2] if len(parts) > 1 else parts[0]] = split
    return found
