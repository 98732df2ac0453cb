"""Rows that come in chunks, from a database or a generator: into a temporary store, in memory for a chunk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.app.filling import fill
from bmrm.data.dataset import Dataset, table_for
from bmrm.data.frames import is_frame
from bmrm.data.index_arrays import is_sparse
from bmrm.data.layout import Layout
from bmrm.data.matrix import Csr
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.raw import Raw, nothing
from bmrm.data.reading import read
from bmrm.data.store import new_store
from bmrm.mpi.group import Alone
from bmrm.problem import InputError, shown

FORMS = "(X, y), (X, y, sample_weight), a Dataset, or a record batch or table of Arrow"
BESIDE = ("y", "sample_weight", "groups", "offset")


def are_chunks(X: Any) -> bool:
    """Whether rows are given in chunks: a function that returns them, or a list of them, one of which is no row."""
    if isinstance(X, Iterator):
        return True
    return callable(X) or (isinstance(X, (list, tuple)) and len(X) > 0 and _is_chunk(X[0]))


def _is_chunk(one: Any) -> bool:
    pair = isinstance(one, tuple) and len(one) in (2, 3) and (is_frame(one[0]) or _is_table(one[0]))
    return pair or isinstance(one, Dataset) or _is_arrow(one)


def _is_table(X: Any) -> bool:
    """Whether it has rows of features."""
    return isinstance(X, Csr) or is_sparse(X) or getattr(X, "ndim", 0) == 2 or _nested(X)


def _nested(X: Any) -> bool:
    return isinstance(X, list) and len(X) > 0 and isinstance(X[0], (list, tuple, np.ndarray))


def _is_arrow(one: Any) -> bool:
    return type(one).__module__.partition(".")[0] == "pyarrow" and hasattr(one, "schema") and hasattr(one, "num_rows")


@dataclass(frozen=True)
class Chunks:
    """The rows of chunks, as readers return them.

    Parameters
    ----------
    source : a list of chunks, or a function without arguments that returns an iterator of them, the same each time.
    beside : by the names of `BESIDE`, names of columns of record batches; None for none.
    coding : what is wanted of columns.

    Raises
    ------
    InputError
        For an iterator, through which one can go only once; for names of columns where chunks bring their own targets.
    """

    source: Any
    beside: dict[str, str | None]
    coding: Coding

    def __post_init__(self) -> None:
        if isinstance(self.source, Iterator):
            raise InputError(
                "X is an iterator, which is at its end after one pass; expected a list of chunks, or a function that"
                " returns an iterator of them each time it is called"
            )
        for name, given in self.beside.items():
            if given is not None and not isinstance(given, str):
                raise InputError(
                    f"{name} beside chunks is {shown(given)}, expected the name of a column of record batches; chunks"
                    f" bring their own: {FORMS}"
                )

    def __iter__(self) -> Iterator[Raw]:
        chunks: Any = self.source() if callable(self.source) else self.source
        try:
            each = iter(chunks)
        except TypeError as error:
            raise InputError(f"X() is {shown(chunks)}, expected an iterator of chunks: {FORMS}") from error
        for k, chunk in enumerate(each):
            origin = f"chunk {k}"
            try:
                raw = self._raw(chunk, origin)
            except InputError as error:
                raise InputError(f"{origin}: {str(error).removeprefix(f'{origin}: ')}") from error
            yield raw

    def _raw(self, chunk: Any, origin: str) -> Raw:
        if _is_arrow(chunk):
            return self._of_arrow(chunk, origin) if chunk.num_rows else nothing(origin)
        for name, given in self.beside.items():
            if given is not None:
                raise InputError(f"{name} is the column {shown(given)}, which only record batches of Arrow have")
        if isinstance(chunk, Dataset):
            if self.coding.stated:
                raise InputError(f"{self.coding.stated[0]} beside a Dataset, whose columns are features already")
            return Raw(chunk.checked(), origin)
        if not _is_chunk(chunk):
            raise InputError(f"{shown(chunk)}, expected {FORMS}")
        X, y, *weights = chunk
        weight = weights[0] if weights else None
        table = table_for(X, self.coding)
        if table is None:
            return Raw(Dataset.from_arrays(X, y, weight), origin)
        data = Dataset.from_arrays(np.zeros((table.rows, 1)), y, weight)
        layout = Layout(features=len(table.names), names=table.names if table.headed else None)
        data = replace(data, X=np.empty((table.rows, 0)), layout=layout)
        return Raw(data, origin, table=table, coding=self.coding)

    def _of_arrow(self, chunk: Any, origin: str) -> Raw:
        from bmrm.data.readers.arrow import Arrow, raw_of

        y, weight, groups, offset = (self.beside[name] for name in BESIDE)
        return raw_of(Arrow(label=y, weight=weight, group=groups), chunk, origin, self.coding, offset)


def rows_of_chunks(
    source: Any, y: Any, sample_weight: Any, offset: Any, groups: Any, coding: Coding, notes: Callable[[str], None]
) -> Dataset:
    """The rows of chunks, in a temporary store: its files have no names, and are gone with the rows.

    Parameters
    ----------
    source, coding : those of `Chunks`.
    y, sample_weight, offset, groups : names of columns of record batches, or None.
    notes : is told where rows are read from the store in each pass.

    Raises
    ------
    InputError
        For what is wrong with a chunk, naming it by its number from 0; where there are no rows.
    """
    chunks = Chunks(source, dict(zip(BESIDE, (y, sample_weight, groups, offset), strict=True)), coding)
    with tempfile.TemporaryDirectory(prefix="bmrm-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "X.store"
        with new_store(path) as store:
            encoding = fill(store, chunks, coding, Alone(), "X")
            store.finish("X")
        data = read(path)
    for note in () if data.layout is None else data.layout.notes:
        notes(note.replace(str(path), "X"))
    layout = None
    if data.feature_names is not None:
        layout = Layout(features=data.features, names=data.feature_names, encoding=encoding)
    return replace(data, layout=layout, sources=())
