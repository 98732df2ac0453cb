"""Files that appear whole or not at all, also where the disk runs full."""

import os
import subprocess
import sys

import pytest

from bmrm.data.files import (
    bare_suffix,
    compressed_like_its_name,
    compression,
    open_bytes,
    open_text,
    whole_file,
    whole_text,
)
from bmrm.problem import InputError


def test_a_whole_file_replaces_the_old_one_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.bin"]
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, InputError])
def test_an_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail():
        with whole_file(path) as file:
            file.write(b"half")
            raise error("x")

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_text(tmp_path):
    with whole_text(tmp_path / "a.txt") as file:
        file.write("é\nb\r\n")
    assert (tmp_path / "a.txt").read_bytes() == "é\nb\r\n".encode()
    with open_text(tmp_path / "a.txt") as file:
        assert file.read() == "é\nb\r\n"


@pytest.mark.parametrize("name", ["gone/a.bin", "folder"])
def test_places_that_cannot_be_written(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=f"{name}: cannot be written"), whole_file(tmp_path / name) as file:
        file.write(b"x")
    assert os.listdir(tmp_path) == ["folder"]


FULL = """
import resource, signal, sys
import numpy as np
from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
data = Dataset.from_arrays(np.random.default_rng(0).random((200, 50)))
for write, name in ((write_npz, "a.npz"), (write_svmlight, "a.svm"), (write_svmlight, "a.svm.gz")):
    try:
        write(sys.argv[1] + "/" + name, data)
    except InputError as error:
        print(error)
    else:
        sys.exit("written")
"""


def test_a_full_disk_is_one_message_and_leaves_nothing(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"old")
    done = subprocess.run([sys.executable, "-W", "error", "-c", FULL, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = [
        f"{tmp_path}/{name}: cannot be written: the limit of the file size is reached"
        for name in ("a.npz", "a.svm", "a.svm.gz")
    ]
    assert done.stdout.splitlines() == expected
    assert done.stderr == ""
    assert os.listdir(tmp_path) == ["a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == b"old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_no_space_left_on_the_device():
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left"):
        full.write(b"x")


@pytest.mark.parametrize(("suffix", "kind"), [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz"), ("", None)])
def test_packed_as_the_name_says(tmp_path, suffix, kind):
    path = tmp_path / f"a.txt{suffix}"
    with compressed_like_its_name(path) as file:
        file.write(b"hello" * 100)
    assert compression(path) == kind
    assert bare_suffix(path) == ".txt"
    with open_bytes(path) as file:
        assert file.read() == b"hello" * 100
    if kind:
        assert path.stat().st_size < 100


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    with pytest.raises(InputError, match=r"a\.txt: not UTF-8"), open_text(tmp_path / "a.txt") as file:
        file.read()


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "empty").touch()
    for name, message in (("gone", "No such file"), ("empty", "the file is empty"), (".", "directory")):
        with pytest.raises(InputError, match=message):
            compression(tmp_path / name)
