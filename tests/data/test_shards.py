"""Shards hold the clips of a cache, in an order made for streams; what is torn is named, and the rest is read."""

import io
import json
import shutil
import tarfile

import pytest
import torch
import webdataset as wds
from tiny import TinyFootage, TinyModel

from curvedray.data.cache import CachedClips, build_cache
from curvedray.data.clips import Skipped, VideoShape, clip_at, clips_except
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.data.shards import ShardedClips, pack_cache, stream_order
from curvedray.data.sources import Data, open_clips, open_held_out
from curvedray.data.tars import open_shards
from curvedray.data.webdataset import ShardFootage, pack_footage
from curvedray.errors import InputError

SHAPE = VideoShape(9, 32, 48)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cache of seven clips, and its shards of three, three and one."""
    folder = tmp_path_factory.mktemp("made")
    build_cache(TinyFootage(7), TinyModel(), SHAPE, folder / "cache")
    report = pack_cache(folder / "cache", folder / "shards", 3)
    assert (report.clips, report.shards, report.made) == (7, 3, 3)
    return folder


@pytest.fixture
def shards(made, tmp_path):
    return shutil.copytree(made / "shards", tmp_path / "shards")


def test_shards_hold_the_clips_of_the_cache(made):
    cached, sharded = CachedClips(made / "cache", TinyFootage(7)), ShardedClips(str(made / "shards"))
    by_name = {cached.name_of(i): cached[i] for i in range(7)}
    assert sorted(by_name) == sorted(sharded.name_of(i) for i in range(7))
    for index in range(7):
        clip = sharded[index]
        torch.testing.assert_close(clip.latents, by_name[clip.id].latents, rtol=0, atol=0)
        torch.testing.assert_close(
            clip.cameras.world_from_camera, by_name[clip.id].cameras.world_from_camera, rtol=0, atol=0
        )
        assert clip.caption == by_name[clip.id].caption
        assert sharded.share_known(index) == pytest.approx(clip.radius_known.float().mean().item(), abs=1e-4)
    torch.testing.assert_close(sharded.empty_text, cached.empty_text, rtol=0, atol=0)
    assert pack_cache(made / "cache", made / "shards", 3).made == 0  # all of it is there


@pytest.mark.parametrize("buffer", [1, 4, 1000])
def test_an_epoch_has_every_clip_once_and_none_long_before_its_turn(buffer):
    counts = (5, 7, 1, 12)
    order = stream_order(counts, buffer, 3, 0)
    assert sorted(order) == list(range(25))
    assert order == stream_order.__wrapped__(counts, buffer, 3, 0)
    assert order != stream_order(counts, buffer, 4, 0)
    assert order != stream_order(counts, buffer, 3, 1)
    if buffer == 1:  # shards in a drawn order, the clips of each in turn
        starts = {0: 5, 5: 7, 12: 1, 13: 12}
        position = 0
        while position < 25:
            first, count = order[position], starts[order[position]]
            assert list(order[position : position + count]) == list(range(first, first + count))
            position += count
        return
    turns = {clip: place for place, clip in enumerate(stream_order(counts, 1, 3, 0))}
    assert all(place > turns[clip] - buffer for place, clip in enumerate(order))


def test_a_run_goes_on_from_the_middle_of_an_epoch_at_the_clip(made):
    def stream(first, last):
        clips = clips_except(ShardedClips(str(made / "shards"), buffer=2), {"clip-3"})
        return [clip_at(clips, position, 5, Skipped()).id for position in range(first, last)]

    whole = stream(0, 18)  # three epochs of six
    assert stream(8, 18) == whole[8:]
    for epoch in range(3):
        assert sorted(whole[6 * epoch : 6 * epoch + 6]) == [f"clip-{i}" for i in (0, 1, 2, 4, 5, 6)]


@pytest.mark.parametrize("harm", ["cut", "gone", "rubbish"])
def test_a_broken_shard_is_named_and_the_others_are_read(shards, harm, caplog):
    torn = shards / "000000.tar"
    if harm == "gone":
        torn.unlink()
    else:
        torn.write_bytes(torn.read_bytes()[:2000] if harm == "cut" else b"no tar")
    clips = ShardedClips(str(shards))
    assert len(clips) == 4
    assert [name for name, _ in clips.broken] == ["000000.tar"]
    assert "000000.tar" in caplog.text
    assert all(torch.isfinite(clips[i].latents).all() for i in range(4))


def test_damage_inside_a_shard_is_the_damage_of_one_clip(shards):
    file = shards / "000001.tar"
    content = bytearray(file.read_bytes())
    place = json.loads((shards / "index.json").read_text())["curvedray"]["files"]["000001.tar"][1]
    content[place[1] : place[1] + 8] = b"\xff" * 8
    file.write_bytes(content)
    clips, skipped = ShardedClips(str(shards)), Skipped()
    read = [clip_at(clips, position, 0, skipped).id for position in range(7)]
    assert len(skipped) == 1
    assert len(set(read)) == 6


def test_a_tar_without_an_index_is_read_up_to_where_it_is_torn(shards):
    (shards / "index.json").unlink()
    (shards / "000002.tar").unlink()
    file = shards / "000001.tar"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    found = open_shards(str(shards))
    assert found is not None
    assert [name for name, _ in found.broken] == ["000001.tar"]
    assert 3 < len(found.samples) < 6


def test_shards_stream_from_any_address(made):
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.put(str(made / "shards"), "/somewhere", recursive=True)
    near, far = ShardedClips(str(made / "shards")), ShardedClips("memory://somewhere")
    assert [far[i].id for i in range(7)] == [near[i].id for i in range(7)]
    clips, report = open_clips(Data("memory://somewhere"), TinyModel(), made, held_out=1)
    held = open_held_out(Data("memory://somewhere"), TinyModel(), made, 1)
    assert (len(clips), report) == (6, None)
    assert held is not None
    assert held.clips[0].id not in {clips.name_of(i) for i in range(6)}
    fs.rm("/somewhere", recursive=True)
    with pytest.raises(InputError, match="none"):
        ShardedClips("memory://somewhere")


def test_shards_of_another_model_or_shape_are_refused(made):
    other = TinyModel()
    other.encode = lambda video: 1 - TinyModel.encode(other, video)
    with pytest.raises(InputError, match="made by others"):
        open_clips(Data(str(made / "shards")), other, made)
    with pytest.raises(InputError, match="a cache of"):
        open_clips(Data(str(made / "shards"), frames=5), TinyModel(), made)


# -- footage in shards


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    folder = tmp_path_factory.mktemp("footage")
    write_folder(TinyFootage(3), folder / "clips")
    with (folder / "clips" / "metadata.csv").open("a") as table:
        table.write("gone.mp4,gone.json,a clip that is gone,\n")
    return folder


def test_a_packed_folder_is_the_folder(footage, tmp_path):
    source = FolderFootage(footage / "clips")
    report = pack_footage(source, tmp_path / "shards", 2)
    assert (report.clips, report.shards) == (3, 2)
    assert [name for name, _ in report.skipped] == ["gone"]
    packed = ShardFootage(str(tmp_path / "shards"))
    assert len(packed) == 3
    for index in range(3):
        ours, theirs = packed[index], source[index]
        assert (ours.id, ours.caption, packed.fingerprint(index)) == (
            theirs.id,
            theirs.caption,
            source.fingerprint(index),
        )
        assert torch.equal(ours.video, theirs.video)
        torch.testing.assert_close(ours.cameras.world_from_camera, theirs.cameras.world_from_camera, rtol=0, atol=0)
        assert ours.radial is not None
        assert theirs.radial is not None
        assert torch.equal(ours.radial.radius, theirs.radial.radius)
    assert pack_footage(source, tmp_path / "shards", 2).made == 0


def test_shards_of_others_need_a_video_a_camera_file_and_a_caption(footage, tmp_path):
    """Written by hand, with a sample that lacks its cameras and one whose JSON is none: each is named."""
    clips = footage / "clips"
    cameras = "cameras.json"
    samples = {
        "one": {"mp4": clips / "clip-0.mp4", cameras: clips / "clip-0.json", "txt": b"a hill"},
        "two": {"mp4": clips / "clip-1.mp4", "txt": b"no cameras"},
        "three": {"mp4": clips / "clip-2.mp4", cameras: clips / "clip-2.json", "json": b"{"},
    }
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        samples["one"]["json"] = b'{"split": "val"}'
        for key, parts in samples.items():
            for ending, part in parts.items():
                content = part if isinstance(part, bytes) else part.read_bytes()
                entry = tarfile.TarInfo(f"{key}.{ending}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    source = ShardFootage(str(tmp_path))
    assert [source.name_of(i) for i in range(3)] == ["one", "two", "three"]
    assert source.held_out == [0]
    assert source[0].caption == "a hill"
    with pytest.raises(InputError, match=r"two.*camera file"):
        source[1]
    with pytest.raises(InputError, match="three"):
        source[2]
    report = build_cache(source, TinyModel(), SHAPE, tmp_path / "cache")
    assert (report.clips, [name for name, _ in report.skipped]) == (1, ["two", "three"])


def test_webdataset_reads_our_shards_and_we_read_its(made, footage, tmp_path):
    ours = wds.WebDataset([str(path) for path in sorted((made / "shards").glob("*.tar"))], shardshuffle=False)
    keys = [sample["__key__"] for sample in ours]
    found = open_shards(str(made / "shards"))
    assert found is not None
    assert keys == [sample.key for sample in found.samples]
    clips = footage / "clips"
    with wds.TarWriter(str(tmp_path / "theirs.tar")) as writer:
        for number in range(2):
            writer.write(
                {
                    "__key__": f"clip{number}",
                    "mp4": (clips / f"clip-{number}.mp4").read_bytes(),
                    "cameras.json": (clips / f"clip-{number}.json").read_bytes(),
                    "txt": f"number {number}",
                }
            )
    theirs = ShardFootage(str(tmp_path))
    assert [theirs[i].caption for i in range(2)] == ["number 0", "number 1"]
