"""Several labels per row: the targets of multi-label problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of numbers per row, possibly empty; stands as `Targets.y`.

    Attributes
    ----------
    indptr : (rows + 1,) int64; `labels[indptr[i]:indptr[i + 1]]` are those of row `i`.
    labels : (at least indptr[-1],) float64, strictly rising within a row.
    """

    indptr: NDArray[np.int64]
    labels: NDArray[np.float64]

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[float]]) -> LabelSets:
        """From one collection of labels per row; order and repetition do not matter."""
        sets = [sorted({float(label) for label in row}) for row in rows]
        indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        labels = np.array([label for row in sets for label in row], np.float64)
        if not np.isfinite(labels).all():
            row = int(np.searchsorted(indptr, np.flatnonzero(~np.isfinite(labels))[0], side="right")) - 1
            raise InputError(f"row {row}: a label is not finite")
        return cls(indptr, labels)

    @property
    def shape(self) -> tuple[int]:
        """(rows,)."""
        return (self.indptr.shape[0] - 1,)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        for start, stop in zip(self.indptr[:-1], self.indptr[1:], strict=True):
            yield self.labels[start:stop]

    def __getitem__(self, rows: slice | NDArray[Any]) -> LabelSets:
        if not isinstance(rows, slice):
            return self.select(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise IndexError("only consecutive rows can be taken by a slice; use `select`")
        return LabelSets(self.indptr[start : max(start, stop) + 1], self.labels)

    def select(self, rows: Sequence[int] | NDArray[np.integer]) -> LabelSets:
        """A copy of the chosen rows."""
        return LabelSets.from_rows(self.labels[self.indptr[k] : self.indptr[k + 1]] for k in rows)

    def classes(self) -> NDArray[np.float64]:
        """The distinct labels of all rows, sorted."""
        return np.unique(self.labels[self.indptr[0] : self.indptr[-1]])

    def indicator(self, classes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Shape (rows, classes): whether the row has the class; every label must be among the sorted `classes`."""
        labels = self.labels[self.indptr[0] : self.indptr[-1]]
        column = np.searchsorted(classes, labels)
        known = classes[np.minimum(column, len(classes) - 1)] == labels if len(classes) else np.zeros(len(labels), bool)
        if not np.all(known):
            raise InputError(f"label {labels[~known][0]:g} is not one of the {len(classes)} known classes")
        table = np.zeros((len(self), len(classes)), bool)
        table[np.repeat(np.arange(len(self)), np.diff(self.indptr)), column] = True
        return table
