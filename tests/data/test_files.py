"""Files that appear whole or not at all, also where the disk runs full."""

import gzip
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bmrm
from bmrm.cli import main
from bmrm.data.files import (
    bare_suffix,
    compressed_like_its_name,
    compression,
    open_bytes,
    open_text,
    whole_file,
)
from bmrm.data.matrix import Csr
from bmrm.data.reading import read, scan
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
    (tmp_path / "a.txt").write_bytes("é\nb\r\n".encode())
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
    with (
        pytest.raises(InputError, match=r"a\.txt, line 1: the byte 0xff is not UTF-8"),
        open_text(tmp_path / "a.txt") as file,
    ):
        file.read()


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "empty").touch()
    for name, message in (("gone", "No such file"), ("empty", "the file is empty"), (".", "directory")):
        with pytest.raises(InputError, match=message):
            compression(tmp_path / name)


ROWS = {
    "csv": "a,b,y\n1,2,x\n3,4,z\n",
    "svmlight": "# rows\n1 1:2 2:3\n-1 1:4\n",
    "conll": "He PRP B\nran VBD O\n\nShe PRP B\n",
    "crfsuite": "B\tw=He\tp=PRP\nO\tw=ran\tp=VBD\n\nB\tw=She\tp=PRP\n",
}


def rows_of(path, name):
    data = read(path, format=name)
    X = data.X.to_dense() if isinstance(data.X, Csr) else data.X
    return (
        X.tolist(),
        np.asarray(data.targets.y).tolist(),
        None if data.targets.groups is None else list(data.targets.groups),
    )


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_marks_and_line_ends_make_no_difference(tmp_path, name, ends, mark, pack):
    (tmp_path / "plain").write_bytes(ROWS[name].encode())
    (tmp_path / "other").write_bytes(pack(mark + ROWS[name].replace("\n", ends).encode()))
    assert rows_of(tmp_path / "other", name) == rows_of(tmp_path / "plain", name)
    assert rows_of(tmp_path / "other", "auto") == rows_of(tmp_path / "plain", name)
    files = [tmp_path / "other", tmp_path / "other"]
    for source, rows in (files[0], 1), (files, 2):
        shares = [scan(source, format=name, part=part, parts=3).data.rows for part in range(3)]
        assert sum(shares) == rows * read(tmp_path / "plain", format=name).rows


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_line_is_numbered_in_every_kind_of_text(tmp_path, name):
    wrong = {"csv": "5,x,z\n", "svmlight": "1 1:x\n", "conll": "one\n", "crfsuite": "B\tw:x=\n"}[name]
    for ends in ("\n", "\r\n", "\r"):
        for mark in ("", "\ufeff"):
            (tmp_path / "a").write_bytes((mark + (ROWS[name] + wrong).replace("\n", ends)).encode())
            with pytest.raises(InputError, match=f"a, line {ROWS[name].count(chr(10)) + 1}[:,]"):
                read(tmp_path / "a", format=name)


@pytest.mark.parametrize("kind", ["two", "-"])
@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_pieces_have_no_mark(tmp_path, monkeypatch, ends, kind):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    bmrm.fit(random.normal(size=(9, 2)), [-1.0, 1.0, 1.0] * 3, loss="logistic").save("m.npz")
    text = "".join(f"{row[0]},{row[1]}\n" for row in random.normal(size=(40, 2)).round(3))
    Path("plain.csv").write_text(text)
    Path("new.csv").write_bytes(("\ufeff" + text.replace("\n", ends)).encode())
    if kind == "-":
        command = [sys.executable, "-m", "bmrm.cli", "predict", "m.npz", "-", "--format", "csv", "--out", "s.txt"]
        subprocess.run(command, input=Path("new.csv").read_bytes(), check=True)
    else:
        assert main(["predict", "m.npz", "new.csv", "--out", "s.txt"]) == 0
    expected = bmrm.load_model("m.npz").decision_function(np.loadtxt("plain.csv", delimiter=","))
    np.testing.assert_allclose(np.loadtxt("s.txt"), expected)


def _tar():
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.size = 8
        archive.addfile(entry, io.BytesIO(b"a,y\n1,2\n"))
    return content.getvalue()


def _zip(name):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, "a,y\n1,2\n")
    return content.getvalue()


NO_TEXT = {
    "UTF-16 text, expected UTF-8; convert it: iconv -f UTF-16": "1 1:2\n2 1:3\n".encode("utf-16"),
    "UTF-16 text": "a,y\n1,2\n".encode("utf-16-be"),
    "UTF-32 text": "a,y\n1,2\n".encode("utf-32"),
    "a zip archive, expected the file itself": _zip("a.csv"),
    "a workbook of Excel (.xlsx)": _zip("[Content_Types].xml"),
    "a tar archive": _tar(),
    "a tar archive, expected": gzip.compress(_tar()),
    "compressed by zstd, which is not read": b"\x28\xb5\x2f\xfd\x04\x00\x41\x00\x00",
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\x00\x04",
    "a web page (HTML)": b"\n<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "a workbook of Excel (.xls)": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
}


@pytest.mark.parametrize("words", NO_TEXT)
@pytest.mark.parametrize("name", [*ROWS, "auto"])
def test_what_is_no_text_is_named(tmp_path, words, name):
    for file in ("a.csv", "a.svm", "a"):
        (tmp_path / file).write_bytes(NO_TEXT[words])
        with pytest.raises(InputError, match=re.escape(f"{file}: {words}")):
            read(tmp_path / file, format=name)


@pytest.mark.parametrize("name", ["csv", "conll", "crfsuite"])
def test_latin_1_is_named_with_its_line(tmp_path, name):
    (tmp_path / "a").write_bytes((ROWS[name] + "\xe9" + ROWS[name]).encode("latin-1"))
    with pytest.raises(InputError, match=r"a, line \d+: the byte 0xe9 is not UTF-8 .*iconv -f LATIN1") as caught:
        read(tmp_path / "a", format=name)
    assert f"a, line {ROWS[name].count(chr(10)) + 1}: " in str(caught.value)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize(("name", "row"), [("a.csv", "1,2"), ("a.svm", "1 1:2"), ("a.conll", "the DT B")])
def test_lines_that_end_with_what_is_no_line_end(tmp_path, name, row, end):
    (tmp_path / name).write_text(end.join([row] * 4) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"where lines end, expected LF, CR LF or CR"):
        read(tmp_path / name)


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")  # to open it would wait for a writer
    with pytest.raises(InputError, match=r"a\.csv: a pipe, which can be read only once"):
        read(tmp_path / "a.csv")
