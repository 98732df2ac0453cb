"""A store, a folder of plain arrays that are mapped into memory: `bmrm.data.store`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.files import about
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import Stored, plain_matrix
from bmrm.data.memory import free_memory
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import row_share
from bmrm.data.readers.npz import label_sets
from bmrm.data.store import Store
from bmrm.problem import InputError
from bmrm.registry import parameter

MUCH = 0.5
"""Share of the free memory beyond which a store is read part by part."""


@formats.register("store")
@dataclass(frozen=True)
class Stores:
    """A folder that `bmrm convert` has written, mapped into memory; larger than memory it is read part by part."""

    stream: bool | None = parameter(
        None, doc="read part by part, by solvers that can; null: where it takes half of the free memory", example=True
    )
    verify: bool = parameter(False, doc="compare checksums first: reads all once more", example=True)
    ignore: tuple[str | int, ...] | None = parameter(
        None, doc="columns with names that are left out, of a store that fits in memory; null: none", example=("b",)
    )

    suffixes: ClassVar[tuple[str, ...]] = (".store",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """A store is a folder, which has no content."""
        return False

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows, views of what all parts have mapped."""
        store = Store(path)
        if self.verify:
            store.verify()
        arrays = store.beside()
        y: Any = label_sets(arrays) if "labels" in arrays else arrays.get("y")
        rows = store.rows
        with about(path):
            weights, groups, offset = (arrays.get(name) for name in ("weights", "groups", "offset"))
            data = Dataset.from_arrays(np.zeros((rows.shape[0], 1)), y, weights, groups, offset=offset)
        names = store.header.get("names")
        layout = Layout(formats.describe(self), rows.shape[1], None if names is None else tuple(names))
        start, stop = row_share(data.rows, part, parts, data.targets.groups)
        data = data.part(start, stop)
        stream, told = (self.stream, "") if self.stream is not None else _too_large(store.bytes, str(path))
        mine: Any = rows.part(start, stop)
        streamed = Stored(mine, _Share(store, start))
        with about(path):
            for first, _, some in streamed.parts():
                _checked(some, start + first)
        X: Any = streamed if stream else plain_matrix(mine)
        layout = replace(layout, notes=(told,) if told else ())
        raw = Raw(replace(data, X=X, layout=layout, labelled=bool(y is not None)), str(path))
        if self.ignore and stream:
            raise InputError(f"{path}: data.ignore needs a store that fits in memory, or stream: false")
        return raw.without(self.ignore or (), alike)


@dataclass(frozen=True)
class _Share:
    """The pages of the rows of a store from `first` on."""

    store: Store
    first: int

    def ahead(self, start: int, stop: int) -> None:
        """As of `Pages`."""
        self.store.ahead(self.first + start, self.first + stop)

    def behind(self, start: int, stop: int) -> None:
        """As of `Pages`."""
        self.store.behind(self.first + start, self.first + stop)


def _too_large(size: int, origin: str) -> tuple[bool, str]:
    """Whether rows of so many bytes are to be read part by part, and what is said of it."""
    free = free_memory()
    if free is None or size <= MUCH * free.bytes:
        return False, ""
    return True, (
        f"{origin}: {size / 1e9:.2f} GB of rows, {free.bytes / 1e9:.2f} GB of memory are free ({free.limit}): they are"
        " read from the file in each pass, by solvers that need no copy of them"
    )


def _checked(rows: Any, first: int) -> None:
    """Raise InputError for entries that are not finite, and indices that lie outside, naming the row."""
    if rows.table is None:
        rows.checked(f"X from row {first} on" if first else "X")
    values = rows.array if rows.table is not None else rows.own.values
    if values is None or np.isfinite(values).all():
        return
    at = int(np.argmax(~np.isfinite(values).ravel()))
    row = at // rows.shape[1] if rows.table is not None else int(np.searchsorted(rows.own.indptr, at, side="right")) - 1
    raise InputError(f"row {first + row}: an entry is {values.ravel()[at]}, expected finite numbers")
