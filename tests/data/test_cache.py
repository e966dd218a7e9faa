"""A cache: what was encoded comes back, and changes with the clip; stopped, damaged, shared and twice at once."""

import os
import shutil

import pytest
import torch
from tiny import TinyFootage, TinyModel, footage

from curvedray.data.cache import CachedClips, build_cache, clip_file, remove_unused
from curvedray.data.clips import VideoShape, encoded
from curvedray.data.fingerprint import END, SMALL, file_fingerprint
from curvedray.data.folders import FolderFootage, write_folder
from curvedray.errors import InputError
from curvedray.files import whole_file
from curvedray.locks import LOCK, lock_folder

SHAPE = VideoShape(9, 32, 48)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_cache_gives_back_what_was_encoded(tmp_path):
    model, source = TinyModel(), TinyFootage(5, broken=(1,))
    report = build_cache(source, model, SHAPE, tmp_path)
    assert (report.clips, report.made, report.unused) == (4, 4, 0)
    assert report.skipped[0][0] == "clip-1"
    cached = CachedClips(tmp_path, source)
    assert [cached[i].id for i in range(len(cached))] == ["clip-0", "clip-2", "clip-3", "clip-4"]
    fresh, stored = encoded(source[3], model, SHAPE), cached[2]
    for name in ("latents", "text", "log_radius", "radius_known"):
        torch.testing.assert_close(getattr(stored, name), getattr(fresh, name), rtol=0, atol=1e-6)
    torch.testing.assert_close(stored.cameras.world_from_camera, fresh.cameras.world_from_camera, rtol=0, atol=1e-6)
    torch.testing.assert_close(stored.cameras.frame_lens.focal, fresh.cameras.frame_lens.focal, rtol=0, atol=1e-4)
    assert (stored.caption, stored.cameras.unit) == (fresh.caption, "near")
    assert torch.equal(cached.empty_text, model.encode_text([""])[0])


def test_equal_clips_are_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        build_cache(TinyFootage(3), TinyModel(), SHAPE, tmp_path / folder)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert LOCK not in files(tmp_path / "a")


def test_a_cache_goes_on_where_it_stopped_and_mends_what_is_damaged(tmp_path):
    model, source = TinyModel(), TinyFootage(6)

    class Dies(TinyFootage):
        def __getitem__(self, index):
            if index == 3:
                raise KeyboardInterrupt
            return super().__getitem__(index)

    with pytest.raises(KeyboardInterrupt):
        build_cache(Dies(6), model, SHAPE, tmp_path)
    first = files(tmp_path)
    assert len(first) == 4  # three clips, and the encoder
    assert build_cache(source, model, SHAPE, tmp_path).made == 3
    assert first.items() <= files(tmp_path).items()
    whole = files(tmp_path)
    path = clip_file(tmp_path, source.fingerprint(2))
    path.write_bytes(path.read_bytes()[:500])
    (tmp_path / f".{path.stem}-01234567-1-abcd1234.safetensors").write_bytes(b"half")  # as a kill leaves it
    (tmp_path / LOCK).write_text("process 1, killed")  # a file, but nobody holds its lock
    with pytest.raises(InputError, match="Copy or download"):
        CachedClips(tmp_path, source)[2]
    assert build_cache(source, model, SHAPE, tmp_path).made == 1
    assert files(tmp_path) == whole


def test_a_cache_of_something_else_is_refused(tmp_path):
    build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path)
    with pytest.raises(InputError, match="another folder"):
        build_cache(TinyFootage(2), TinyModel(), VideoShape(5, 32, 48), tmp_path)
    other = TinyModel()
    other.encode_text = lambda prompts: 1 + TinyModel.encode_text(other, prompts)
    with pytest.raises(InputError, match="this model's encoders"):
        build_cache(TinyFootage(2), other, SHAPE, tmp_path)
    nothing = TinyFootage(2, broken=(0, 1))
    build_cache(nothing, TinyModel(), SHAPE, tmp_path / "other")
    with pytest.raises(InputError, match="none of 2"):
        CachedClips(tmp_path / "other", nothing)
    with pytest.raises(InputError, match="data cache"):
        CachedClips(tmp_path / "nothing", nothing)
    (tmp_path / "other" / "shard-00000.safetensors").touch()
    with pytest.raises(InputError, match="earlier version"):
        build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path / "other")


def test_the_first_share_leaves_alone_what_another_is_writing(tmp_path):
    """It deleted the temporary files of all, and the other share died when its own was to get its name."""
    model, source = TinyModel(), TinyFootage(2)
    other = clip_file(tmp_path, source.fingerprint(1))
    with whole_file(other) as temporary:
        temporary.write_bytes(b"half")
        report = build_cache(source, model, SHAPE, tmp_path, share=(0, 2))
    assert other.read_bytes() == b"half"
    assert (report.clips, report.unused) == (1, 0)


def test_processes_share_the_work_of_a_cache(tmp_path):
    model, source = TinyModel(), TinyFootage(5)
    for rank in (1, 0):
        report = build_cache(source, model, SHAPE, tmp_path, share=(rank, 2))
        assert (report.made, report.unused) == (3 - rank, 0)
    assert [CachedClips(tmp_path, source)[i].id for i in range(5)] == [f"clip-{i}" for i in range(5)]


def test_half_precision_halves_the_latents(tmp_path):
    build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path, dtype="float16")
    clip = CachedClips(tmp_path, TinyFootage(2))[0]
    assert clip.latents.dtype == torch.float32
    torch.testing.assert_close(clip.latents, encoded(footage(0), TinyModel(), SHAPE).latents, rtol=1e-3, atol=1e-3)


def test_who_builds_a_cache_is_alone_in_it(tmp_path):
    with (
        lock_folder(tmp_path, "cache", "Wait."),
        pytest.raises(InputError, match=rf"nobody else at work in it, got process {os.getpid()} on .*Wait until"),
    ):
        build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path)
    assert build_cache(TinyFootage(2), TinyModel(), SHAPE, tmp_path).clips == 2


# -- content


def test_what_changes_is_encoded_again_and_nothing_else(tmp_path):
    clips, cache, model = tmp_path / "clips", tmp_path / "cache", TinyModel()
    write_folder(TinyFootage(3), clips)
    assert build_cache(FolderFootage(clips), model, SHAPE, cache).made == 3
    shutil.copytree(clips, tmp_path / "copied")  # another folder with other times, the same clips
    assert build_cache(FolderFootage(tmp_path / "copied"), model, SHAPE, cache).made == 0

    def changed(edit):
        edit()
        source = FolderFootage(clips)
        report = build_cache(source, model, SHAPE, cache)
        return report.made, CachedClips(cache, source)

    def caption():
        table = clips / "metadata.csv"
        table.write_text(table.read_text().replace("number 1", "other words"))

    def cameras():
        shutil.copy(clips / "clip-0.json", clips / "clip-1.json")

    def video():
        shutil.copy(clips / "clip-0.mp4", clips / "clip-1.mp4")

    made, cached = changed(caption)
    assert (made, cached[1].caption) == (1, "a scene of other words")
    made, cached = changed(cameras)
    assert made == 1
    torch.testing.assert_close(cached[1].cameras.lens.xi, cached[0].cameras.lens.xi)
    made, cached = changed(video)
    assert made == 1
    torch.testing.assert_close(cached[1].latents, cached[0].latents)

    def broken():
        (clips / "clip-2.json").write_text("{}")

    assert len(changed(broken)[1]) == 2

    def mended():
        shutil.copy(clips / "clip-0.json", clips / "clip-2.json")

    made, cached = changed(mended)
    assert (made, len(cached)) == (1, 3)
    source = FolderFootage(clips)
    assert build_cache(source, model, SHAPE, cache).unused == 4
    assert remove_unused(cache, source) == 4
    assert (build_cache(source, model, SHAPE, cache).made, len(CachedClips(cache, source))) == (0, 3)


def test_a_files_fingerprint_is_of_its_content(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    assert file_fingerprint(small) == "missing"
    small.write_bytes(b"a")
    before = file_fingerprint(small)
    os.utime(small, (1, 1))
    assert file_fingerprint(small) == before
    small.write_bytes(b"b")
    assert file_fingerprint(small) != before
    data = bytearray(SMALL + 1)
    found: set[str] = set()
    for place in (0, -1, END + 1):  # the last is where only the time of change tells
        data[place] ^= 1
        large.write_bytes(data)
        os.utime(large, (len(found), len(found)))
        found.add(file_fingerprint(large))
    assert len(found) == 3
    os.mkfifo(tmp_path / "pipe")
    assert file_fingerprint(tmp_path / "pipe") == "missing"  # and it does not hang
    assert file_fingerprint(tmp_path) == file_fingerprint(tmp_path)
