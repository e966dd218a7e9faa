"""Shards hold the clips of a cache, in an order made for streams; what is torn is named, and the rest is read."""

import io
import json
import shutil
import tarfile

import pytest
import torch
import webdataset as wds
from tiny import TinyFootage, TinyModel

from curvedray.data.cache import CachedClips, broken_shards, build_cache
from curvedray.data.clips import Skipped, VideoShape, clip_at, clips_except
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.data.shards import ShardedClips, pack_cache, stream_order
from curvedray.data.sources import Data, open_clips, open_held_out
from curvedray.data.tars import open_shards, tar_places
from curvedray.data.webdataset import ShardFootage, pack_footage
from curvedray.errors import InputError
from curvedray.training.recipe import changed
from curvedray.training.recipes import recipe
from curvedray.training.run import Run

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


@pytest.mark.parametrize("where", ["between files", "in a header", "in a file", "in the next sample", "in its end"])
def test_a_torn_sample_is_left_out_and_a_whole_one_is_not(tmp_path, where):
    """Regression: a sample whose map lay beyond the tear was used without it; between files nobody saw the tear."""
    endings = ("mp4", "cameras.json", "radial.npz")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in [f"{key}.{ending}" for key in ("one", "two", "three") for ending in endings]:
            entry = tarfile.TarInfo(name)
            entry.size = 700
            tar.addfile(entry, io.BytesIO(b"x" * 700))
    cuts = {"between files": (5, 0), "in a header": (5, 100), "in a file": (5, 900), "in the next sample": (6, 600)}
    content = (tmp_path / "a.tar").read_bytes()
    place, more = cuts.get(where, (8, 512 + 1024 + 512))  # the last: a block of zeros is there, and no more
    (tmp_path / "a.tar").write_bytes(content[: place * (512 + 1024) + more])  # a header, and the file in two blocks
    with (tmp_path / "a.tar").open("rb") as file:
        _, torn = tar_places(file)
    found = open_shards(str(tmp_path))
    assert found is not None
    kept = {"in the next sample": ["one", "two"], "in its end": ["one", "two", "three"]}.get(where, ["one"])
    assert [sample.key for sample in found.samples] == kept
    assert all(set(sample.files) == set(endings) for sample in found.samples)
    assert bool(torn) == bool(found.broken) == (where != "in its end")


def test_a_tar_that_cannot_be_opened_is_passed_over(shards, tmp_path):
    """Regression: without an index one link to nothing refused the whole set."""
    (shards / "index.json").unlink()
    (shards / "000003.tar").symlink_to(tmp_path / "gone.tar")
    (shards / "000004.tar").mkdir()
    clips = ShardedClips(str(shards))
    assert len(clips) == 7
    assert [name for name, _ in clips.broken] == ["000003.tar", "000004.tar"]
    for path in sorted(shards.glob("*.tar"))[:3]:
        path.unlink()
    with pytest.raises(InputError, match=r"a shard that can be read, got none of 2; 000003.tar: "):
        ShardedClips(str(shards))


@pytest.mark.parametrize("cache", ["auto", "off"])
def test_broken_shards_are_said_when_training_starts(made, footage, tmp_path, cache):
    """Regression: nothing but a line on standard error told that a part of the set was gone."""
    pack_footage(FolderFootage(footage / "clips"), tmp_path / "of footage", 1)
    shutil.copytree(made / "shards", tmp_path / "encoded")
    for kind in ("of footage", "encoded"):
        (tmp_path / kind / "000001.tar").unlink()
        data = Data(str(tmp_path / kind), frames=9, height=32, width=48, cache=cache)
        clips, report = open_clips(data, TinyModel(), tmp_path / cache, held_out=1)
        ((name, reason),) = broken_shards(clips)
        assert (name, "it is not there" in reason) == ("000001.tar", True)
        assert report is None or (name, reason) in report.skipped
    said: list[str] = []
    changes = {"model": "random", "data.source": str(tmp_path / "of footage"), "data.cache": cache}
    shape = {"data.frames": 9, "data.height": 32, "data.width": 48, "every.validate": 0}
    run = Run.prepare(changed(recipe("quick"), {**changes, **shape}), tmp_path / f"run {cache}")
    run.open_clips(say=said.append)
    assert sum("shard 000001.tar was left out" in line for line in said) == 1
    assert not any("clips were left out" in line for line in said)


def test_shards_are_read_from_inside_a_zip(made, tmp_path):
    """Regression: a zip was closed as soon as a shard in it had been opened."""
    shutil.make_archive(str(tmp_path / "packed"), "zip", made / "shards")
    near, far = ShardedClips(str(made / "shards")), ShardedClips(f"zip://::file://{tmp_path}/packed.zip")
    assert [far[i].id for i in range(7)] == [near[i].id for i in range(7)]
    assert torch.equal(far[0].latents, near[0].latents)


@pytest.mark.parametrize(("address", "package"), [("s3://nobody/x", "s3fs"), ("gs://nobody/x", "gcsfs")])
def test_an_address_whose_package_is_missing_is_one_sentence(monkeypatch, address, package):
    """Regression: an ImportError from inside fsspec."""

    def refuse(address):
        raise ImportError("Install it to access that")

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(InputError, match=rf"Install it to access that\. Run: pip install {package}"):
        ShardedClips(address)


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


def test_clips_none_of_which_can_be_packed_are_refused_and_nothing_is_written(footage, tmp_path):
    """Regression: an empty shard, and success. And a shard all of whose clips are wrong is not written."""
    table = (footage / "clips" / "metadata.csv").read_text().splitlines()
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "metadata.csv").write_text("\n".join([table[0], table[-1]]) + "\n")
    with pytest.raises(InputError, match=r"some that can be packed, got none of 1; the first: clip gone"):
        pack_footage(FolderFootage(tmp_path / "clips"), tmp_path / "shards")
    assert not (tmp_path / "shards").exists()
    report = pack_footage(FolderFootage(footage / "clips"), tmp_path / "shards", 3)
    assert (report.clips, report.shards, len(report.skipped)) == (3, 1, 1)
    assert [path.name for path in (tmp_path / "shards").glob("*.tar")] == ["000000.tar"]


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
