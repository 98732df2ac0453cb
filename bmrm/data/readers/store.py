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
from bmrm.data.memory import available_bytes
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
        with about(path):
            mine: Any = rows.part(start, stop).checked()
            for first, _, some in mine.parts():
                _refuse_infinite(some, start + first)
        stream = store.bytes > MUCH * (available_bytes() or np.inf) if self.stream is None else self.stream
        if stream:
            X: Any = Stored(mine, lambda first, last: store.ahead(start + first, start + last))
        else:
            X = plain_matrix(mine)
        raw = Raw(replace(data, X=X, layout=layout, labelled=bool(y is not None)), str(path))
        if self.ignore and stream:
            raise InputError(f"{path}: data.ignore needs a store that fits in memory, or stream: false")
        return raw.without(self.ignore or (), alike)


def _refuse_infinite(rows: Any, first: int) -> None:
    """Raise InputError for entries that are not finite, naming the row."""
    values = rows.array if rows.table is not None else rows.own.values
    if values is None or np.isfinite(values).all():
        return
    at = int(np.argmax(~np.isfinite(values).ravel()))
    row = at // rows.shape[1] if rows.table is not None else int(np.searchsorted(rows.own.indptr, at, side="right")) - 1
    raise InputError(f"row {first + row}: an entry is {values.ravel()[at]}, expected finite numbers")
