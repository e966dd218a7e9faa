"""What a user hands us: refused in a sentence, before it costs memory or time."""

import errno
import importlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from curvedray.errors import LONGEST_QUOTE, InputError, quoted
from curvedray.files import whole_file
from curvedray.inputs import (
    input_file,
    is_file,
    is_folder,
    megabytes,
    parsed_json,
    read_arrays,
    read_json,
    read_tensors,
    read_text,
)


def npy_header(shape, descr="<f4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_an_array_larger_than_allowed_is_refused_by_its_header(tmp_path, kind):
    """Neither file holds more than a few bytes; both claim four terabytes."""
    path, content = tmp_path / f"bomb.{kind}", npy_header((1000, 10**4, 10**5)) + b"0" * 64
    if kind == "npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("radius.npy", content)
    with pytest.raises(InputError, match=r"at most 2.0 GB unpacked, got 4000.0 GB"):
        read_arrays(path)


def test_arrays_come_back_as_they_were_written(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    np.save(tmp_path / "x.npy", arrays["a"])
    for name, array in read_arrays(tmp_path / "x.npz").items():
        np.testing.assert_array_equal(array, arrays[name])
    np.testing.assert_array_equal(read_arrays(tmp_path / "x.npy")["array"], arrays["a"])


def test_python_objects_are_never_unpacked(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="never unpacked"):
        read_arrays(tmp_path / "x.npy")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"{", b"\x00" * 100, npy_header((3,))])
@pytest.mark.parametrize("read", [read_arrays, read_json, read_tensors])
def test_bytes_that_are_something_else_are_a_sentence(tmp_path, content, read):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 5000, "NaN", "[1, Infinity]", "{", '{"a": 1,}'])
def test_json_that_breaks_parsers_is_a_sentence(text):
    with pytest.raises(InputError, match=r"^x"):
        parsed_json(text, "x")


def test_pipes_devices_folders_and_dangling_links_are_not_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path, got in (("pipe", "a pipe"), ("link", "a link to nothing"), (".", "a folder"), ("none", "nothing there")):
        with pytest.raises(InputError, match=got):
            input_file(tmp_path / path)
    with pytest.raises(InputError, match="a pipe or a device"):
        input_file("/dev/zero")
    with pytest.raises(InputError, match="embedded null"):
        input_file("a\0b")
    with pytest.raises(InputError, match="too long"):
        input_file("a" * 10_000)


def test_text_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"a": 1}).encode())
    assert read_text(tmp_path / "x.json") == '{"a": 1}'
    assert read_json(tmp_path / "x.json") == {"a": 1}


def test_messages_cut_what_they_quote_and_escape_what_a_terminal_would_obey():
    error = InputError("a\x1b[31mred", "b", "x" * 10_000)
    assert "\x1b" not in str(error)
    assert "\\x1b[31mred" in str(error)
    assert len(error.got) <= LONGEST_QUOTE
    assert quoted("caf\u00e9 \u4e2d") == "caf\u00e9 \u4e2d"


def test_writing_follows_links_and_refuses_devices(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_file(tmp_path / "link") as temporary:
        temporary.write_text("after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "a" * 10_000):
        with pytest.raises(InputError), whole_file(path):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "real"]


def test_a_full_disk_is_a_sentence_wherever_a_file_is_written(tmp_path):
    def write():
        with whole_file(tmp_path / "x") as temporary:
            temporary.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match=r"a full disk\. Make room"):
        write()
    assert not list(tmp_path.iterdir())


def test_sizes_read_as_a_person_says_them():
    sizes = (20, 5_000, 51_000, 999_999, 1.6e6, 25e6, 6.3e9)
    assert [megabytes(size) for size in sizes] == ["0.1 KB", "5.0 KB", "51 KB", "1.0 MB", "1.6 MB", "25 MB", "6.3 GB"]


READERS = {
    "curvedray.adapter.file": "read_adapter",
    "curvedray.data.folders": "FolderFootage",
    "curvedray.evaluate.estimators.embedded": "load_reader",
    "curvedray.evaluate.matching": "camera_files",
    "curvedray.formats": "read_cameras",
    "curvedray.generation.recipe": "read_recipe",
    "curvedray.media.video": "read_video",
    "curvedray.models.embedded.model": "load_embedded",
    "curvedray.models.open": "load_model",
    "curvedray.radial.convert": "read_sequence",
    "curvedray.radial.map": "read_radial_map",
}


@pytest.mark.parametrize("ending", ["", ".safetensors", ".npz"])
@pytest.mark.parametrize("module", READERS)
def test_a_name_too_long_for_the_disk_is_a_sentence(module, ending):
    """Regression: `Path.is_dir` and its kin throw at such a name; at every other that is not there they answer no."""
    read = getattr(importlib.import_module(module), READERS[module])
    name = "x" * 300 + ending
    with pytest.raises(InputError):
        read(name if module == "curvedray.models.open" else Path(name))


def test_is_file_and_is_folder_answer_for_any_name(tmp_path):
    assert is_folder(tmp_path)
    assert not is_file(tmp_path)
    for name in ("x" * 300, "a\0b", tmp_path / "missing"):
        assert not is_file(name)
        assert not is_folder(name)


def test_a_mistake_travels_between_processes_as_it_was():
    said = InputError("lens", "a name", "none", "Choose one.")
    again = pickle.loads(pickle.dumps(said))
    assert str(again) == str(said)
    assert again.fix == said.fix
