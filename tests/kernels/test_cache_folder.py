"""Compiled kernels are unpickled where they are kept: only from folders that nobody else can write to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.kernels import cache_folder

PACKAGE = Path("/nowhere/bmrm")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Neither package nor home can be written; the temporary directory, which is safe."""
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache_folder, "_writable", lambda folder: False)
    return temporary


def folder_of(temporary):
    return temporary / f"bmrm-numba-{os.getuid()}"


def test_a_folder_of_ours_is_made_for_us_alone(bare, capsys):
    before = os.umask(0)
    try:
        assert cache_folder.choose_folder(PACKAGE)
    finally:
        os.umask(before)
    assert os.environ["NUMBA_CACHE_DIR"] == str(folder_of(bare))
    assert folder_of(bare).stat().st_mode & 0o777 == 0o700
    assert "no cache folder can be written" in capsys.readouterr().err
    del os.environ["NUMBA_CACHE_DIR"]
    assert cache_folder.choose_folder(PACKAGE)  # and used again


def wide(folder):
    folder.mkdir()
    folder.chmod(0o777)


def elsewhere(folder):
    other = folder.parent / "other"
    other.mkdir(mode=0o700)
    folder.symlink_to(other)


@pytest.mark.parametrize(
    ("plant", "message"),
    [(wide, "open to other users"), (elsewhere, "is no folder"), (Path.touch, "is no folder")],
)
def test_what_others_may_have_planted_is_not_used(bare, capsys, plant, message):
    plant(folder_of(bare))
    assert not cache_folder.choose_folder(PACKAGE)
    assert "NUMBA_CACHE_DIR" not in os.environ
    error = capsys.readouterr().err
    assert message in error
    assert str(folder_of(bare)) in error
    assert "not kept" in error


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder away")
def test_a_folder_of_another_user_is_not_used(bare, capsys):
    folder_of(bare).mkdir(mode=0o700)
    os.chown(folder_of(bare), 12345, 12345)
    assert not cache_folder.choose_folder(PACKAGE)
    assert "another user (number 12345)" in capsys.readouterr().err


def test_nor_a_temporary_directory_where_others_can_rename(bare, capsys):
    bare.chmod(0o777)
    assert not cache_folder.choose_folder(PACKAGE)
    assert "can replace" in capsys.readouterr().err
    bare.chmod(0o1777)
    assert cache_folder.choose_folder(PACKAGE)
    del os.environ["NUMBA_CACHE_DIR"]


def test_a_home_that_all_can_write_is_none(bare, monkeypatch, capsys):
    monkeypatch.setattr(cache_folder, "_writable", lambda folder: folder.name == "numba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "home"))
    (bare / "home").mkdir()
    (bare / "home").chmod(0o1777)
    assert cache_folder.choose_folder(PACKAGE)
    assert os.environ.pop("NUMBA_CACHE_DIR") == str(folder_of(bare))
    (bare / "home").chmod(0o700)
    assert cache_folder.choose_folder(PACKAGE)
    assert "NUMBA_CACHE_DIR" not in os.environ


def test_the_users_word_counts(bare, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/anywhere")
    assert cache_folder.choose_folder(PACKAGE)
    assert os.environ["NUMBA_CACHE_DIR"] == "/anywhere"


def test_kernels_work_where_none_are_kept(tmp_path):
    """A planted index is not even opened."""
    program = """
import os, sys, tempfile
from pathlib import Path
from bmrm.kernels import cache_folder
cache_folder._writable = lambda folder: False
folder = Path(tempfile.gettempdir()) / f"bmrm-numba-{os.getuid()}"
folder.mkdir()
folder.chmod(0o777)
sys.addaudithook(lambda event, arguments: os._exit(9) if event == "open" and str(folder) in str(arguments[0]) else None)
from bmrm.kernels.products.vectors import dot
import numpy as np
assert dot(np.ones(3), np.ones(3)) == 3.0
assert not any(folder.iterdir())
"""
    (tmp_path / "tmp").mkdir(mode=0o700)
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "compiled kernels are not kept" in done.stderr
