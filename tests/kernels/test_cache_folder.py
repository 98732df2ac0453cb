"""Compiled kernels are unpickled where they are kept: only from folders that nobody else can write to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.kernels import cache_folder

PACKAGE = Path("/nowhere/bmrm")


DIGEST = "0123456789abcdef"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Neither package nor home can be written; the temporary directory, which is safe."""
    temporary = tmp_path / "tmp"
    temporary.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache_folder, "_writable", lambda folder: False)
    cache_folder.say.cache_clear()
    return temporary


def root_of(temporary):
    return temporary / f"bmrm-numba-{os.getuid()}"


def folder_of(root):
    return root / f"kernels-{DIGEST}"


def choose():
    return cache_folder.choose_folder(PACKAGE, DIGEST)


def test_a_folder_of_ours_is_made_for_us_alone(bare, capsys):
    before = os.umask(0)
    try:
        assert choose() == folder_of(root_of(bare))
    finally:
        os.umask(before)
    assert "NUMBA_CACHE_DIR" not in os.environ
    assert root_of(bare).stat().st_mode & 0o777 == 0o700
    assert folder_of(root_of(bare)).stat().st_mode & 0o007 == 0
    assert "no cache folder can be written" in capsys.readouterr().err
    assert choose() == folder_of(root_of(bare))  # and used again
    assert not capsys.readouterr().err, "said twice"


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
    plant(root_of(bare))
    assert choose() is None
    error = capsys.readouterr().err
    assert message in error
    assert str(root_of(bare)) in error
    assert "not kept" in error


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder away")
def test_a_folder_of_another_user_is_not_used(bare, capsys):
    root_of(bare).mkdir(mode=0o700)
    os.chown(root_of(bare), 12345, 12345)
    assert choose() is None
    assert "another user (number 12345)" in capsys.readouterr().err


def test_nor_a_temporary_directory_where_others_can_rename(bare, capsys):
    bare.chmod(0o777)
    assert choose() is None
    assert "can replace" in capsys.readouterr().err
    bare.chmod(0o1777)
    assert choose() == folder_of(root_of(bare))


def test_a_home_that_all_can_write_is_none(bare, monkeypatch, capsys):
    monkeypatch.setattr(cache_folder, "_writable", lambda folder: folder.parent.name == "bmrm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "home"))
    (bare / "home").mkdir()
    (bare / "home").chmod(0o1777)
    assert choose() == folder_of(root_of(bare))
    (bare / "home").chmod(0o700)
    assert choose() == folder_of(bare / "home" / "bmrm")


def test_the_users_word_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "anywhere"))
    assert choose() == folder_of(tmp_path / "anywhere")
    (tmp_path / "taken").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "taken"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cache_folder, "_writable", lambda folder: PACKAGE not in folder.parents)
    assert choose() == folder_of(tmp_path / "home" / "bmrm"), "no folder can be made there"


def test_of_folders_for_other_sources_the_last_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "of_somebody_else").mkdir()
    old = [tmp_path / f"kernels-{k}" for k in range(cache_folder.KEPT + 2)]
    for k, folder in enumerate(old):
        folder.mkdir()
        (folder / "some.nbi").touch()
        os.utime(folder, (k, k))
    assert cache_folder.choose_folder(PACKAGE, "1").exists()  # used now, and nothing goes
    assert all(folder.exists() for folder in old)
    assert choose().exists()
    assert [folder.name for folder in old if not folder.exists()] == ["kernels-0", "kernels-2"]
    assert (tmp_path / "of_somebody_else").exists()


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
