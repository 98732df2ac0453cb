"""Data from one format to another; a store is written part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.files import about, bare_suffix, divisible
from bmrm.data.layout import Layout
from bmrm.data.layout import columns_of as columns_in_order
from bmrm.data.readers._core.formats import ByBytes, Format
from bmrm.data.readers._core.raw import Raw
from bmrm.data.reading import format_for, is_made, read, scan
from bmrm.data.store import new_store
from bmrm.data.table_writers import columns_of, write_arrow, write_csv
from bmrm.data.thesis_writers import write_harwell_boeing, write_june, write_spardat
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError, shown
from bmrm.registry import Range, checked_value

AT_A_TIME = 64 << 20
"""Bytes of text that are read at a time."""
WRITERS: Mapping[str, Callable[[str | PathLike[str], Dataset], None]] = {
    ".npz": write_npz,
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), write_svmlight),
    **dict.fromkeys((".csv", ".tsv"), write_csv),
    **dict.fromkeys((".parquet", ".pq", ".arrow", ".feather"), write_arrow),
    ".spardat": write_spardat,
    ".ssv": write_june,
    ".hb": write_harwell_boeing,
}
TABLES = {write_csv: "csv", write_arrow: "arrow"}
"""Writers of columns, and the formats that read them."""
STORE = ".store"


@dataclass(frozen=True)
class Converted:
    """What was written."""

    rows: int
    features: int
    entries: int
    format: Mapping[str, Any] | None = None
    """What a reader of the file must be told, as `data.format`; None for nothing."""


def convert(
    source: str | Sequence[str],
    target: str | PathLike[str],
    *,
    format: str | Mapping[str, Any] | Format = "auto",
    columns: int | None = None,
    seed: int = 0,
    at_a_time: int = AT_A_TIME,
) -> Converted:
    """Write the rows of a source in another format, which the name of the target says.

    A store of plain svmlight text is written part by part: memory is needed for a part, and for labels.

    Parameters
    ----------
    source, format : those of `bmrm.data.reading.scan`.
    target : `.store` (a folder), `.npz`, `.svm`, `.csv`, `.tsv`, `.parquet`, `.arrow`, `.spardat`, `.hb`, or `.ssv` for
        the two files of june; `.svm.gz` and the like are compressed.
    columns : so many features, drawn without replacement, in their order; None for all.
    seed : of the draw.
    at_a_time : bytes of text in a part, about.

    Raises
    ------
    InputError
        For a name of another kind; for what cannot be read, or written in this format; for more columns than there are.
    """
    checked_value("columns", columns, (int, NoneType), Range(least=1))
    checked_value("seed", seed, (int,), Range(least=0))
    suffix = checked_target(target)
    names = [source] if isinstance(source, str) else list(source)
    if suffix != STORE or columns is not None:
        return write_as(target, chosen_columns(read(source, format=format), columns, seed), ", ".join(names))
    with new_store(target) as store:
        for raw in _parts(source, names, format, at_a_time):
            if raw.data.rows:
                with about(raw.origin):
                    store.add(raw.data, raw.extent, raw.first)
        header = store.finish(", ".join(names))
    rows, features = header["shape"]
    return Converted(rows, features, store.entries)


def checked_target(target: str | PathLike[str]) -> str:
    """The suffix of a file or folder that can be written; InputError for another."""
    suffix = bare_suffix(Path(target))
    if suffix != STORE and suffix not in WRITERS:
        known = ", ".join([STORE, *WRITERS])
        raise InputError(f"{shown(fspath(target))}: expected a name that ends in one of {known}")
    return suffix


def write_as(target: str | PathLike[str], data: Dataset, origin: str) -> Converted:
    """Write rows of an origin in the format that the name says; InputError where it cannot hold them."""
    suffix, told = checked_target(target), None
    if suffix == STORE:
        with new_store(target) as store:
            raw = Raw(data, origin)
            store.add(data, raw.extent, raw.first)
            store.finish(origin)
    else:
        writer = WRITERS[suffix]
        writer(target, data)
        if writer in TABLES:
            told = columns_of(target, data).format(TABLES[writer])
    return Converted(data.rows, data.features, data.nnz, told)


def chosen_columns(data: Dataset, columns: int | None, seed: int) -> Dataset:
    """Some features, drawn without replacement, in their order; all for None. InputError for more than there are."""
    if columns is None:
        return data
    if columns > data.features:
        raise InputError(f"columns is {columns}, expected at most the {data.features} features")
    kept = np.sort(np.random.default_rng(seed).choice(data.features, columns, replace=False))
    names = data.feature_names
    layout = replace(
        data.layout or Layout(),
        features=columns,
        names=None if names is None else tuple(names[k] for k in kept),
        encoding=None,
    )
    return replace(data, X=columns_in_order(data.X, kept), layout=layout)


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
