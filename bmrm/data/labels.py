"""Several labels per row: the targets of multi-label problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.data.label_types import shown_label, stored
from bmrm.problem import InputError

Form = Literal["sets", "matrix", "sparse"]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of labels per row, possibly empty; stands as `Targets.y`.

    Attributes
    ----------
    indptr : (rows + 1,) int64; `labels[indptr[i]:indptr[i + 1]]` are those of row `i`.
    labels : (at least indptr[-1],) float64, int64 or text, strictly rising within a row.
    dtype : the original type of the labels, see `bmrm.data.label_types`.
    form : the form in which they were given: sets, or a matrix with a column for each label.
    known : all labels, sorted, including those that no row has; None if these are the labels of the rows.
    """

    indptr: NDArray[np.int64]
    labels: NDArray[Any]
    dtype: str = ""
    form: Form = "sets"
    known: NDArray[Any] | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[Iterable[Any]]) -> LabelSets:
        """From one collection of labels per row; order and repetition do not matter.

        Raises InputError where a row is no collection, or labels are not all numbers or all text.
        """
        sets: list[list[Any]] = []
        for number, row in enumerate(rows):
            if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
                raise InputError(f"y: row {number} is {row!r:.60}, expected a set of labels")
            sets.append(list(row))
        flat = np.empty(sum(map(len, sets)), object)
        flat[:] = [label for row in sets for label in row]
        labels, dtype = stored(flat, "the labels of y") if flat.size else (np.empty(0), "")
        ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row_of = int(np.searchsorted(ends, np.flatnonzero(~np.isfinite(labels))[0], side="right")) - 1
            raise InputError(f"row {row_of}: a label is not finite")
        return cls.from_ends(ends, labels, dtype)

    @classmethod
    def from_ends(cls, ends: NDArray[np.int64], labels: NDArray[Any], dtype: str = "") -> LabelSets:
        """From the labels of all rows, those of row i from `ends[i]` to `ends[i + 1]`, in any order."""
        row = np.repeat(np.arange(ends.shape[0] - 1), np.diff(ends))
        order = np.lexsort((labels, row))
        row, labels = row[order], labels[order]
        new = np.ones(labels.shape[0], bool)
        new[1:] = (row[1:] != row[:-1]) | (labels[1:] != labels[:-1])
        counts = np.bincount(row[new], minlength=ends.shape[0] - 1)
        return cls(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64), labels[new], dtype)

    @classmethod
    def from_matrix(cls, table: Any, form: Form = "matrix") -> LabelSets:
        """From 0 and 1 in (rows, labels), dense or a sparse CSR matrix of scipy; the labels are the columns from 0."""
        if hasattr(table, "indptr"):
            table = table.copy()
            table.sum_duplicates()
            table.eliminate_zeros()
            values, columns, indptr = table.data, table.indices, table.indptr.astype(np.int64)
        else:
            values, (rows, columns) = table[table != 0], np.nonzero(table)
            indptr = np.searchsorted(rows, np.arange(table.shape[0] + 1)).astype(np.int64)
        if not np.all(values == 1):
            place = int(np.argmax(values != 1))
            row = int(np.searchsorted(indptr, place, side="right")) - 1
            raise InputError(
                f"y: row {row}, column {columns[place]} is {values[place]}, expected 0 or 1 for each label, or sets"
            )
        known = np.arange(table.shape[1], dtype=np.float64)
        return cls(indptr, columns.astype(np.float64), table.dtype.name, form, known)

    @property
    def shape(self) -> tuple[int]:
        """(rows,)."""
        return (self.indptr.shape[0] - 1,)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for start, stop in zip(self.indptr[:-1], self.indptr[1:], strict=True):
            yield self.labels[start:stop]

    def __getitem__(self, rows: slice | NDArray[Any]) -> LabelSets:
        if not isinstance(rows, slice):
            return self.select(np.flatnonzero(rows) if rows.dtype == np.bool_ else rows)
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise IndexError("only consecutive rows can be taken by a slice; use `select`")
        return replace(self, indptr=self.indptr[start : max(start, stop) + 1])

    def select(self, rows: Sequence[int] | NDArray[np.integer]) -> LabelSets:
        """A copy of the chosen rows."""
        rows = np.asarray(rows, np.int64)
        counts = np.diff(self.indptr)[rows]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        return replace(self, indptr=ends, labels=self.labels[np.repeat(self.indptr[rows], counts) + within])

    def classes(self) -> NDArray[Any]:
        """The distinct labels of all rows, sorted, including known ones that no row has."""
        return np.unique(self._held()) if self.known is None else self.known

    def counts(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        """How many rows have each of the sorted `classes`, which must be all."""
        return np.bincount(np.searchsorted(classes, self._held()), minlength=len(classes))

    def indicator(self, classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Shape (rows, classes): whether the row has the class; every label must be among the sorted `classes`."""
        labels = self._held()
        if labels.size and (labels.dtype.kind == "U") != (classes.dtype.kind == "U"):
            raise InputError(f"label {shown_label(labels[0].item(), self.dtype)} is not one of the known classes")
        column = np.searchsorted(classes, labels)
        known = classes[np.minimum(column, len(classes) - 1)] == labels if len(classes) else np.zeros(len(labels), bool)
        if not np.all(known):
            label = shown_label(labels[~known][0].item(), self.dtype)
            raise InputError(f"label {label} is not one of the {len(classes)} known classes")
        table = np.zeros((len(self), len(classes)), bool)
        table[np.repeat(np.arange(len(self)), np.diff(self.indptr)), column] = True
        return table

    @property
    def own(self) -> LabelSets:
        """The same rows in arrays of their labels alone, counted from 0."""
        return replace(self, indptr=self.indptr - self.indptr[0], labels=self._held())

    def _held(self) -> NDArray[Any]:
        return self.labels[self.indptr[0] : self.indptr[-1]]


def joined(sets: Sequence[LabelSets]) -> LabelSets:
    """The rows of several, one after the other, with the dtype and form of the first."""
    sets = [part.own for part in sets]
    offsets = np.cumsum([0, *(len(part.labels) for part in sets)])
    indptr = [part.indptr[1:] + offset for part, offset in zip(sets, offsets, strict=False)]
    labels = np.concatenate([part.labels for part in sets])
    return replace(sets[0], indptr=np.concatenate([np.zeros(1, np.int64), *indptr]), labels=labels)


def in_form(table: NDArray[np.bool_], labels: NDArray[Any], form: str, dtype: str) -> Any:
    """Truth values, (rows, labels), in the form in which the label sets were given."""
    if form == "matrix":
        return table.astype(dtype or np.float64)
    if form == "sparse":
        from scipy.sparse import csr_array

        return csr_array(table.astype(dtype or np.float64))
    names = labels.tolist()
    return [{names[k] for k in np.flatnonzero(row)} for row in table]
