"""Data from one format to another; a store is written part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bmrm.data.dataset import Dataset
from bmrm.data.files import about, bare_suffix, divisible
from bmrm.data.readers._core.formats import ByBytes, Format
from bmrm.data.readers._core.raw import Raw
from bmrm.data.reading import format_for, is_made, read, scan
from bmrm.data.store import new_store
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError, shown

AT_A_TIME = 64 << 20
"""Bytes of text that are read at a time."""
WRITERS: Mapping[str, Callable[[str | PathLike[str], Dataset], None]] = {
    ".npz": write_npz,
    ".svm": write_svmlight,
    ".svmlight": write_svmlight,
    ".libsvm": write_svmlight,
}
STORE = ".store"


@dataclass(frozen=True)
class Converted:
    """What was written."""

    rows: int
    features: int
    entries: int


def convert(
    source: str | Sequence[str],
    target: str | PathLike[str],
    *,
    format: str | Mapping[str, Any] | Format = "auto",
    at_a_time: int = AT_A_TIME,
) -> Converted:
    """Write the rows of a source into a store (a folder `.store`), an archive (`.npz`) or svmlight text (`.svm`).

    A store of plain svmlight text is written part by part: memory is needed for a part, and for labels.

    Parameters
    ----------
    source, format : those of `bmrm.data.reading.scan`.
    target : the name says the format; `.svm.gz` and the like are compressed.
    at_a_time : bytes of text in a part, about.

    Raises
    ------
    InputError
        For a name of another kind; for what cannot be read, or written in this format.
    """
    suffix = bare_suffix(Path(target))
    if suffix != STORE and suffix not in WRITERS:
        known = ", ".join([STORE, *WRITERS])
        raise InputError(f"{shown(fspath(target))}: expected a name that ends in one of {known}")
    names = [source] if isinstance(source, str) else list(source)
    if suffix != STORE:
        data = read(source, format=format)
        WRITERS[suffix](target, data)
        return Converted(data.rows, data.features, data.nnz)
    with new_store(target) as store:
        for raw in _parts(source, names, format, at_a_time):
            if raw.data.rows:
                with about(raw.origin):
                    store.add(raw.data, raw.extent, raw.first)
        header = store.finish(", ".join(names))
    rows, features = header["shape"]
    return Converted(rows, features, store.entries)


def _parts(source: Any, names: list[str], format: Any, at_a_time: int) -> Iterator[Raw]:
    """The source in parts where text can be divided, else whole."""
    count = 1
    if not any(map(is_made, names)) and all(Path(name).is_file() for name in names):
        files = [Path(name) for name in names]
        if all(isinstance(format_for(path, format), ByBytes) and divisible(path) for path in files):
            count = 1 + sum(path.stat().st_size for path in files) // at_a_time
    for part in range(count):
        raw = scan(source, format=format, part=part, parts=count)
        if raw.names is not None or raw.table is not None:  # text becomes features by what all rows have
            data = raw.dataset()
            raw = Raw(data, raw.origin)
        yield raw
