"""Files are whole or not there: whatever stops a writer, and however many write at once."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from curvedray.errors import InputError
from curvedray.files import scratch_folder, whole_file

WAITS_WHILE_WRITING = """
import sys, time
from curvedray.files import scratch_folder, whole_file
with {kind}(sys.argv[1]) as temporary:
    (temporary / "half" if temporary.is_dir() else temporary).write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def killed_writer(kind, path):
    """A process that was killed, for good, in the middle of a write."""
    program = [sys.executable, "-c", WAITS_WHILE_WRITING.format(kind=kind), str(path)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "writing\n"
        child.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("kind", ["whole_file", "scratch_folder"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, kind):
    killed_writer(kind, tmp_path / "a.txt")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".a-")
    with whole_file(tmp_path / "b.txt") as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_what_a_living_process_or_another_machine_writes_is_left_alone(tmp_path):
    with whole_file(tmp_path / "a.txt") as mine:
        mine.write_text("whole")
        other = tmp_path / mine.name.replace(mine.name.split("-")[1], "0" * 8).replace(str(os.getpid()), "999999999")
        for path in (other, tmp_path / ".hidden-12-x", tmp_path / ".gitignore"):
            path.write_text("")
        program = "import sys\nfrom curvedray.files import whole_file\nwith whole_file(sys.argv[1]): pass"
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "c.txt")], check=True)
    assert sorted(i.name for i in tmp_path.iterdir()) == sorted(
        [other.name, ".hidden-12-x", ".gitignore", "a.txt", "c.txt"]
    )


def test_two_writers_at_once_leave_one_whole_file(tmp_path):
    """Each text is long enough to be written in many pieces; one of them is there in the end, whole."""
    path, texts = tmp_path / "new" / "a.txt", [letter * 3_000_000 for letter in "abcd"]
    failures = []

    def write(text):
        try:
            for _ in range(5):
                with whole_file(path) as temporary, temporary.open("w") as file:
                    for start in range(0, len(text), 100_000):
                        file.write(text[start : start + 100_000])
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failures
    assert path.read_text() in texts
    assert list(path.parent.iterdir()) == [path]


def test_a_writer_that_fails_leaves_the_folder_another_writes_in(tmp_path):
    folder = tmp_path / "new"

    def fail():
        with whole_file(folder / "a.txt"):
            (folder / "b.txt").write_text("another's")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in folder.iterdir()] == ["b.txt"]


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual(tmp_path):
    for name, mode in (("private", 0o600), ("shared", 0o664)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
        with whole_file(tmp_path / name):
            pass
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    (tmp_path / "usual").touch()
    with whole_file(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("name", ["é" * 125 + ".mp4", "a" * 251 + ".mp4", "中" * 80 + ".png", "a." + "b" * 250])
def test_any_name_the_disk_takes_can_be_written(tmp_path, name):
    with whole_file(tmp_path / name) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_name_that_is_not_text_can_be_written(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"\xff\xfe.txt")
    with whole_file(os.fsdecode(path)) as temporary:
        temporary.write_text("whole")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.txt"]


def test_read_only_folders_and_files_are_a_sentence(tmp_path):
    """In a process of its own that is nobody in particular: root may write anywhere."""
    (tmp_path / "file").touch(mode=0o444)
    for folder in tmp_path.parents:  # nobody must get as far as this; how deep it lies depends on who runs the tests
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(0o755)
    tmp_path.chmod(0o555)
    child = os.fork()
    if not child:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            for name in ("new", "file", "new/deeper"):
                with pytest.raises(InputError, match=r"read-only|can be written in"), whole_file(tmp_path / name):
                    pass
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tmp_path.chmod(0o755)


def test_a_scratch_folder_is_on_the_same_disk_and_goes(tmp_path):
    with scratch_folder(tmp_path / "deep" / "a.mp4") as folder:
        assert folder.parent == tmp_path / "deep"
        (folder / "x").write_text("x")
        os.replace(folder / "x", folder.parent / "x")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["x"]
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path / "other" / "a.mp4"):
        raise KeyboardInterrupt
    assert not (tmp_path / "other").exists()
