"""A store: a folder of plain `.npy` arrays and `header.json`, mapped into memory where it is read.

Arrays: those of an archive (`bmrm.data.readers.npz`), `X`, or `indptr`, `indices` and perhaps `values`; `y`, or
`label_indptr` and `labels`; `weights`, `groups`, `offset`. NumPy alone reads them: `numpy.load(path, mmap_mode="r")`.
The header has the version, the shape, the names of columns, and of each array its type, shape and checksum.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import secrets
import shutil
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.archives import array_header
from bmrm.data.dataset import Dataset
from bmrm.data.files import about, checked_path, explained, failures_of, flush_folder
from bmrm.data.joining import join_targets
from bmrm.data.matrix import MOST_COLUMNS, Csr, Dense, features_of
from bmrm.data.writers import label_arrays
from bmrm.problem import InputError, Targets, Vector

HEADER, NAME, VERSION = "header.json", "bmrm store", 1
CHUNK = 1 << 24
"""Bytes that are read at once for a checksum, and entries that are renumbered at once."""
SPARSE = ("indptr", "indices", "values")
BESIDE = ("y", "label_indptr", "labels", "weights", "groups", "offset")
"""Arrays that are read whole."""


class Mapped:
    """An array of a store, as a view of the file's pages, which the system reads when they are looked at.

    Attributes
    ----------
    array : read-only.
    """

    def __init__(self, path: Path) -> None:
        with explained(path), about(path):
            self._file = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
            self._size = os.fstat(self._file).st_size
            with open(self._file, "rb", closefd=False) as file:
                shape, dtype, begin = array_header(file, self._size)
            count = int(np.prod(shape, dtype=np.int64))
            self.map = _mapped(self._file, self._size)
        self.begin, self.row = begin, dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        self.array: NDArray[Any] = np.frombuffer(self.map, dtype, count, begin).reshape(shape)

    def ahead(self, start: int, stop: int) -> None:
        """Have the system read these rows of the array, on a thread of its own: to ask for much may take its time."""
        first, last = self._bytes(start, stop)
        if last > first and hasattr(os, "posix_fadvise"):
            _reader(os.getpid()).ask(self._file, first, last - first)

    def behind(self, start: int, stop: int) -> None:
        """Give up these rows: they are no longer memory of this process, but for a page that is shared with others."""
        begin, end = self._bytes(start, stop)
        first, last = (-(-begin // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE)
        if last > first and hasattr(mmap, "MADV_DONTNEED"):
            self.map.madvise(mmap.MADV_DONTNEED, first, last - first)

    def _bytes(self, start: int, stop: int) -> tuple[int, int]:
        """Where these rows lie in the file; within it, though a damaged index say otherwise."""
        first, last = (min(max(self.begin + row * self.row, 0), self._size) for row in (start, stop))
        return first, last


class _ReadAhead:
    """One thread that asks the system to read; this thread does, where there is no memory for another one."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "bmrm-read-ahead")

    def ask(self, file: int, first: int, length: int) -> None:
        """For some bytes of an open file."""
        if self._thread is not None:
            try:
                self._thread.submit(os.posix_fadvise, file, first, length, os.POSIX_FADV_WILLNEED)
                return
            except RuntimeError:
                self._thread = None
        os.posix_fadvise(file, first, length, os.POSIX_FADV_WILLNEED)


@lru_cache(maxsize=1)
def _reader(process: int) -> _ReadAhead:
    """That of a process; one that was forked off has not the thread of the other."""
    return _ReadAhead()


def _mapped(file: int, size: int) -> mmap.mmap:
    """All of a file; InputError where the address space of the process is too small."""
    try:
        return mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise InputError(
            f"{size} bytes exceed the address space of this process, in which mapped files count (ulimit -v); expected"
            " a limit of the memory that it takes (ulimit -d, a control group)"
        ) from error


class Store:
    """An open store.

    Parameters
    ----------
    path : the folder.

    Attributes
    ----------
    header : as it is written.
    arrays : mapped, by name.
    rows : views of them, not checked yet.

    Raises
    ------
    InputError
        For a folder that is no store, or is damaged, naming the file.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.header = path, _header(path)
        self.arrays = {name: Mapped(path / f"{name}.npy") for name in self.header["arrays"]}
        for name, said in self.header["arrays"].items():
            array = self.arrays[name].array
            if list(array.shape) != said["shape"] or array.dtype.str != said["dtype"]:
                raise InputError(
                    f"{path / name}.npy: {array.dtype.str} of shape {array.shape}, {HEADER} says {said['dtype']} of"
                    f" shape {said['shape']}"
                )
        rows, _ = self.header["shape"]
        sparse = "indptr" in self.arrays
        if not (sparse and "indices" in self.arrays) and "X" not in self.arrays:
            raise InputError(f"{path}: neither X nor indptr and indices are there")
        with about(path):
            self.rows: Csr | Dense = self._sparse() if sparse else self._full()
        if self.rows.shape[0] != rows:
            raise InputError(f"{path}: {self.rows.shape[0]} rows, {HEADER} says {rows}")

    @property
    def bytes(self) -> int:
        """Of the features."""
        return sum(self.arrays[name].array.nbytes for name in ("X", *SPARSE) if name in self.arrays)

    def verify(self) -> None:
        """Read all; InputError where a file has not the bytes that were written."""
        for name, said in self.header["arrays"].items():
            if checksum(self.path / f"{name}.npy") != said["sha256"]:
                raise InputError(f"{self.path / name}.npy: the checksum is another than that in {HEADER}: damaged")

    def ahead(self, start: int, stop: int) -> None:
        """Have the system read these rows."""
        for array, first, last in self._places(start, stop):
            array.ahead(first, last)

    def behind(self, start: int, stop: int) -> None:
        """Give up these rows: they are no longer memory of this process."""
        for array, first, last in self._places(start, stop):
            array.behind(first, last)

    def _places(self, start: int, stop: int) -> Iterator[tuple[Mapped, int, int]]:
        """The arrays in which rows lie, and where."""
        if "X" in self.arrays:
            yield self.arrays["X"], start, stop
            return
        indptr = self.arrays["indptr"].array
        for name in SPARSE[1:]:
            if name in self.arrays:
                yield self.arrays[name], int(indptr[start]), int(indptr[stop])

    def beside(self) -> Mapping[str, NDArray[Any]]:
        """Targets and the like, copied."""
        return {name: np.array(self.arrays[name].array) for name in BESIDE if name in self.arrays}

    def _sparse(self) -> Csr:
        indptr, indices = (self.arrays[name].array for name in SPARSE[:2])
        values = self.arrays["values"].array if "values" in self.arrays else None
        columns = int(self.header["shape"][1])
        found = Csr(indptr, indices, values, columns)
        if indptr[0] != 0 or indptr[-1] != indices.size:
            raise InputError(f"indptr goes from {indptr[0]} to {indptr[-1]}, expected from 0 to {indices.size}")
        return found

    def _full(self) -> Dense:
        X = self.arrays["X"].array
        if X.ndim != 2 or X.dtype not in (np.float32, np.float64) or X.shape[1] != self.header["shape"][1]:
            raise InputError(f"X is {X.dtype} of shape {X.shape}, expected numbers in {self.header['shape']}")
        return Dense(X)


def _header(path: Path) -> dict[str, Any]:
    where = path / HEADER
    if not where.is_file():
        raise InputError(f"{path}: no {HEADER}, expected a store as `bmrm convert` writes it")
    try:
        header = json.loads(where.read_text(encoding="utf-8"))
        arrays = header["arrays"]
        plain = header["format"] == NAME and isinstance(header["version"], int)
        shape = header["shape"]
        plain = plain and len(shape) == 2 and all(isinstance(n, int) and n >= 0 for n in shape)
        plain = plain and shape[1] <= MOST_COLUMNS and {*arrays} <= {"X", *SPARSE, *BESIDE}
        plain = plain and all(
            {*map(type, a["shape"])} <= {int} and isinstance(a["dtype"], str) for a in arrays.values()
        )
        names = header.get("names")
        plain = plain and (names is None or (len(names) == shape[1] and {*map(type, names)} <= {str}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: not the header of a store ({type(error).__name__}: {error!s:.80})") from error
    if not plain:
        raise InputError(f"{where}: not the header of a store")
    if header["version"] > VERSION:
        raise InputError(f"{where}: version {header['version']}, this program reads up to {VERSION}; update it")
    return dict(header)


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


class _Growing:
    """A `.npy` file whose number of rows is known at its end: NumPy's headers leave room for it."""

    def __init__(self, path: Path, dtype: np.dtype[Any], width: tuple[int, ...] = ()) -> None:
        self.path, self.dtype, self.width, self.count = path, dtype, width, 0
        self.file: IO[bytes] = open(path, "xb")  # noqa: SIM115
        self._head()

    def _head(self) -> None:
        self.file.seek(0)
        said = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.count, *self.width)}
        np.lib.format.write_array_header_1_0(self.file, said)  # type: ignore[no-untyped-call]

    def append(self, array: NDArray[Any]) -> None:
        """Add rows."""
        self.file.write(np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8).data)
        self.count += len(array)

    def close(self) -> None:
        """Complete the file."""
        at = self.file.tell()
        self._head()
        assert self.file.tell() <= at
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


class StoreWriter:
    """Rows that are added part by part; see `new_store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, _Growing] = {}
        self.restart()

    def restart(self) -> None:
        """Without the rows that were added so far."""
        for file in self.files.values():
            file.file.close()
            file.path.unlink()
        self.rows, self.entries, self.labelled = 0, 0, True
        self.files = {}
        self.targets: list[Targets] = []
        self.extent: Vector = np.array([-np.inf, 0.0])
        self.numbered = self.complete = False
        self.names: tuple[str, ...] | None = None

    def add(self, data: Dataset, extent: Vector, first: int | None) -> None:
        """Rows as a reader returns them, before the parts have agreed on numbers of columns.

        Parameters
        ----------
        data : the rows.
        extent, first : those of `bmrm.data.readers._core.raw.Raw`.
        """
        if self.targets and (data.labelled, data.feature_names) != (self.labelled, self.names):
            raise InputError("labels or names of columns differ from those of the rows before")
        self.labelled, self.names = data.labelled, data.feature_names
        self.targets.append(data.targets)
        self.rows += data.rows
        self.extent = np.maximum(self.extent, extent)
        self.numbered = self.numbered or first is not None
        rows = features_of(data.X)
        if isinstance(rows, Csr):
            self._add_sparse(rows.own, first or 0)
        else:
            for _, _, part in rows.parts():
                assert isinstance(part, Dense)
                self._file("X", part.dtype, (part.shape[1],)).append(part.array)
                self.entries += part.nnz

    def _add_sparse(self, rows: Csr, first: int) -> None:
        begun = "indptr" in self.files
        indptr = self._file("indptr", np.dtype(np.int64))
        if not begun:
            indptr.append(np.zeros(1, np.int64))
        indptr.append(rows.indptr[1:] + self.entries)
        self._file("indices", np.dtype(np.int32)).append(rows.indices + np.int32(first))
        if rows.values is not None or "values" in self.files:
            dtype = np.dtype(np.float64) if rows.values is None else rows.values.dtype
            file = self._file("values", self.files["values"].dtype if "values" in self.files else dtype)
            while file.count < self.entries:  # those before were all 1
                file.append(np.ones(min(CHUNK, self.entries - file.count)))
            file.append(np.ones(rows.nnz) if rows.values is None else rows.values)
        self.entries += rows.nnz

    def _file(self, name: str, dtype: np.dtype[Any], width: tuple[int, ...] = ()) -> _Growing:
        if name not in self.files:
            self.files[name] = _Growing(self.folder / f"{name}.npy", dtype, width)
        found = self.files[name]
        if (found.width, found.dtype) != (width, dtype) and not (name == "values" and dtype.kind == "f"):
            raise InputError(f"{name}: rows of {width or 'one'} {dtype}, those before had {found.width} {found.dtype}")
        return found

    def finish(self, source: str, agreed: bool = True) -> dict[str, Any]:
        """Write what is left, and the header, which is returned.

        Parameters
        ----------
        source : of the rows, for the header.
        agreed : whether these are all rows, so that it is known whether columns count from 1; else they stay.
        """
        if not self.rows:
            raise InputError(f"{source}: no rows")
        targets = join_targets(self.targets, source)
        more = label_arrays(targets) if self.labelled else {}
        more |= {name: array for name in BESIDE[3:] if (array := getattr(targets, name)) is not None}
        for name, array in more.items():
            file = _Growing(self.folder / f"{name}.npy", array.dtype, array.shape[1:])
            file.append(array)
            self.files[name] = file
        for file in self.files.values():
            file.close()
        from_one = -np.inf < self.extent[0] < 0.0  # there are some columns, and none is 0
        first = int(agreed and self.numbered and from_one)
        if first:
            self._renumber()
        columns = max(1, int(self.extent[1]) - first)
        arrays = {
            name: {"dtype": file.dtype.str, "shape": [file.count, *file.width], "sha256": checksum(file.path)}
            for name, file in self.files.items()
        }
        header = {"format": NAME, "version": VERSION, "shape": [self.rows, columns], "source": source, "arrays": arrays}
        header |= {} if self.names is None else {"names": list(self.names)}
        with open(self.folder / HEADER, "w", encoding="utf-8") as file_of_header:
            json.dump(header, file_of_header, indent=1, ensure_ascii=False)
            file_of_header.flush()
            os.fsync(file_of_header.fileno())
        self.complete = True
        return header

    def _renumber(self) -> None:
        """Columns that count from 1, from 0."""
        indices = np.load(self.folder / "indices.npy", mmap_mode="r+")
        for start in range(0, len(indices), CHUNK):
            indices[start : start + CHUNK] -= 1
        indices.flush()


@contextmanager
def new_store(path: str | os.PathLike[str]) -> Iterator[StoreWriter]:
    """A store that appears complete, under its name, when the block has called `finish`, or not at all.

    Raises
    ------
    InputError
        Where something of that name is there, or the folder cannot be written.
    OutputError
        Where the disk is full.
    """
    target = checked_path(path)
    if target.exists():
        raise InputError(f"{target}: is there already, expected a new name")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    writer = StoreWriter(temporary)
    try:
        with failures_of(target):
            temporary.mkdir()
            yield writer
            if writer.complete:
                flush_folder(temporary)
                os.replace(temporary, target)
                flush_folder(target.parent)
    finally:
        for file in writer.files.values():
            file.file.close()
        shutil.rmtree(temporary, ignore_errors=True)
