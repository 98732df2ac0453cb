"""The output folder: files are written atomically, and the files of a run replace those of another together.

Files are written into a hidden folder `.unfinished-*` on which the process holds a lock. When a set is complete the
folder is renamed to `.finished-*`; from then on the set is valid. The old files are removed before the first of the new
ones is moved, so that there is never a mixture. A killed process loses its lock; the next one that opens the folder
moves finished sets and removes unfinished ones.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from bmrm.data.files import checked_path, flush_folder, whole_file
from bmrm.problem import InputError, OutputError

CHECKPOINT = "checkpoint.npz"
"""The state of a run that has not ended; removed when it has."""
MODEL, SUMMARY, HISTORY, CONFIG, PICTURE, CURVES = RESULTS = (
    "model.npz",
    "summary.json",
    "history.csv",
    "config.yaml",
    "convergence.svg",
    "curves.json",
)
"""The files of a run. The model is moved first: if it is still in `.finished-*`, nothing else has been moved."""
PNG = "convergence.png"
"""A requested picture, or one of an older version: it is removed with the results that it shows."""
UNFINISHED, FINISHED = ".unfinished-", ".finished-"

Writer = Callable[[IO[bytes]], Any]


def open_folder(directory: Path) -> None:
    """Complete or remove what killed runs have left there; InputError if the folder is not writable.

    A folder that does not exist is not created.
    """
    checked_path(directory, "output.directory ")
    nearest = directory
    try:
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        if not nearest.is_dir():
            raise NotADirectoryError(0, f"{nearest} is not a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
        for folder in sorted(directory.glob(FINISHED + "*")):
            if lock := _locked(folder):
                _move(folder, directory)
                os.close(lock)
        for folder in directory.glob(UNFINISHED + "*"):
            if lock := _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
    except OSError as error:
        raise InputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error


def write_file(directory: Path, name: str, write: Writer) -> None:
    """Write one file atomically; OutputError if it cannot be written. Creates the folder if needed."""
    with _staging(directory) as staging:
        _written(staging / name, write, directory)
        os.replace(staging / name, directory / name)
        flush_folder(directory)


def write_text(directory: Path, name: str, text: str) -> None:
    """`write_file` of a text."""
    write_file(directory, name, lambda stream: stream.write(text.encode()))


def open_for_results(directory: Path, result: str, unfinished: str = "") -> None:
    """`open_folder`; InputError for a folder with files of something else, none of which is called `result`.

    `unfinished` is what a run that was killed may have left there.
    """
    open_folder(directory)
    there = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    there = [name for name in there if name != unfinished]
    if there and result not in there:
        raise InputError(f"--out {directory}: it holds {', '.join(there[:3])}, but no {result}; choose another folder")


def write_set(directory: Path, needed: dict[str, Writer], more: dict[str, Writer]) -> list[str]:
    """Replace all files of an older run by these; returns the reasons for those of `more` that could not be written.

    An empty model replaces an older one too, and is then removed.

    Raises
    ------
    OutputError
        If a file of `needed`, the model among them, cannot be written; older files are then unchanged.
    """
    complaints = []
    with _staging(directory) as staging:
        for name, write in needed.items():
            _written(staging / name, write, directory)
        for name, write in more.items():
            try:
                _written(staging / name, write, directory)
            except OutputError as error:
                complaints.append(str(error))
        finished = staging.with_name(staging.name.replace(UNFINISHED, FINISHED))
        staging.rename(finished)
        try:
            flush_folder(directory)
            _move(finished, directory)
        except OSError as error:
            raise OutputError(
                f"{directory}: {error.strerror}; the next run here finds the files in {finished}"
            ) from error
    return complaints


def _move(finished: Path, directory: Path) -> None:
    """Move a complete set to the place of the older one; may be called again after an interruption."""
    if (finished / MODEL).exists():
        for name in (*RESULTS, PNG):
            (directory / name).unlink(missing_ok=True)
        flush_folder(directory)
    for name in RESULTS:
        if (finished / name).exists():
            os.replace(finished / name, directory / name)
    if (directory / MODEL).exists() and not (directory / MODEL).stat().st_size:
        (directory / MODEL).unlink()  # a run that has found none
    flush_folder(directory)
    shutil.rmtree(finished, ignore_errors=True)


def _written(path: Path, write: Writer, directory: Path) -> None:
    try:
        with whole_file(path) as stream:
            write(stream)
    except InputError as error:
        raise OutputError(str(error).replace(str(path.parent), str(directory))) from error


@contextmanager
def _staging(directory: Path) -> Iterator[Path]:
    """A folder for new files that other processes do not touch; removed at the end."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        staging, lock = _made(directory)
    except OSError as error:
        raise OutputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error
    try:
        yield staging
    except OSError as error:
        raise OutputError(f"output.directory {directory}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if lock:
            os.close(lock)


def _made(directory: Path) -> tuple[Path, int | None]:
    while True:
        staging = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=directory))
        lock = _locked(staging)
        if staging.exists():  # another process may have met it before it was locked
            return staging, lock
        if lock:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """A handle whose lock is released when it is closed or the process ends; None if another process holds it."""
    with suppress(OSError):  # gone, held, or a file system that knows no locks
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            os.close(handle)
    return None


def present(directory: Path, names: Sequence[str] = RESULTS) -> list[str]:
    """Those of the files that exist."""
    return [name for name in names if os.path.lexists(directory / name)]
