"""What a data set has to learn from, known before the first step: distances, and shards that are not broken."""

from collections.abc import Sequence
from dataclasses import dataclass

from curvedray.data.cache import CachedClips, broken_shards
from curvedray.data.check import ClipReport
from curvedray.data.clips import ClipSource, EncodedOnTheFly, FootageSource, FootageSubset, SomeClips
from curvedray.data.folders import FolderFootage
from curvedray.data.records import FaultyRecord
from curvedray.data.shards import ShardedClips


@dataclass(frozen=True)
class Coverage:
    """What of a data set has radial targets."""

    clips: int
    labelled: int
    tokens: float | None  # share with a target, over all clips; None where clips are encoded as they are needed

    @property
    def is_whole(self) -> bool:
        return self.labelled == self.clips

    def __str__(self) -> str:
        share = "" if self.tokens is None else f", {self.tokens:.0%} of all tokens"
        return f"distances to learn from: in {self.labelled} of {self.clips} clips{share}"


def coverage(clips: ClipSource) -> Coverage | None:
    """Of a cache or a folder; None of a source that cannot say without encoding every clip."""
    kept: Sequence[int] = range(len(clips))
    if isinstance(clips, SomeClips):
        kept, clips = clips.kept, clips.clips
    if isinstance(clips, CachedClips | ShardedClips):
        shares = [clips.share_known(index) for index in kept]
        return Coverage(len(shares), sum(share > 0 for share in shares), sum(shares) / max(1, len(shares)))
    if isinstance(clips, EncodedOnTheFly):
        found = [_has_map(clips.source, index) for index in kept]
        return None if None in found else Coverage(len(found), sum(map(bool, found)), None)
    return None


def shard_reports(source: FootageSource) -> list[ClipReport]:
    """A row of `data check` for every shard that could not be read, which holds nobody knows how many clips."""
    return [
        ClipReport(name, 0, 0, 0, 0, 0.0, 0.0, "", 0.0, 0.0, None, (f"a shard that cannot be used whole: {reason}",))
        for name, reason in broken_shards(source)
    ]


def _has_map(source: FootageSource, index: int) -> bool | None:
    if isinstance(source, FootageSubset):
        return _has_map(source.source, source.kept[index])
    if not isinstance(source, FolderFootage):
        return None
    record = source.records[index]
    return not isinstance(record, FaultyRecord) and record.radial is not None
