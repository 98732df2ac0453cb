"""What a reader returns before all ranks have agreed on the numbering and the number of features."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.label_types import is_whole
from bmrm.data.labels import LabelSets, joined
from bmrm.data.layout import Layout, aligned
from bmrm.data.matrix import Csr, Matrix
from bmrm.data.vocabulary import NamedColumns, Vocabulary, counts_of, renumbered
from bmrm.problem import InputError, Targets, Vector
from bmrm.problem.loss import common_type


@dataclass(frozen=True, eq=False)
class Raw:
    """Rows, and the numbering of columns in their file.

    Attributes
    ----------
    data : the rows; column `j` of `data.X` has the number `j + first` in the file.
    origin : the source, for messages.
    smallest : the smallest number of a column; None without entries; 0 where columns have no numbers.
    first : 1 or 0 where the file numbers its columns: the number of column 0 of `data.X` (which may have entries in
        column -1 if it is 1 and the file counts from 0); None where columns have no numbers.
    names : of the columns, where features are text and have no numbers yet (`indexed` gives them).
    """

    data: Dataset
    origin: str
    smallest: int | None = 0
    first: int | None = None
    names: NamedColumns | None = None

    @property
    def layout(self) -> Layout | None:
        """How the rows were read."""
        return self.data.layout

    def aligned(self, names: Sequence[str] | None) -> Raw:
        """The columns in the order of these names; unchanged if either side has none."""
        X = aligned(self.data.X, self.data.feature_names, names, self.origin)
        if X is self.data.X or names is None or self.layout is None:
            return self
        return replace(self, data=replace(self.data, X=X, layout=replace(self.layout, names=tuple(names))))

    @property
    def extent(self) -> Vector:
        """What ranks must agree on: the elementwise maximum over them, `group.max(raw.extent)`, goes to `dataset`.

        Two numbers: minus the smallest column number (-inf without entries), and the largest plus 1.
        """
        return np.array(
            [-np.inf if self.smallest is None else -float(self.smallest), self.data.features + (self.first or 0)]
        )

    def dataset(
        self, extent: Vector | None = None, *, features: int | None = None, one_based: bool | None = None
    ) -> Dataset:
        """The rows with columns counted from 0.

        Parameters
        ----------
        extent : the elementwise maximum of `extent` over ranks; None: this rank is alone.
        features : the number of features; None: the largest number on any rank, at least 1.
        one_based : whether the numbers count from 1; None: they do where no rank has a 0. (For test data: what held
            for the training data, `from_one(extent)`.)

        Raises
        ------
        InputError
            More features than `features`; a number 0 where they count from 1.
        """
        if self.names is not None:
            return self.indexed(self.own_vocabulary()).dataset(features=features)
        extent = self.extent if extent is None else extent
        if one_based and self.first is not None and extent[0] == 0:
            raise InputError(f"{self.origin}: feature number 0, expected numbers from 1")
        first = int(from_one(extent) if one_based is None else one_based and extent[0] != 0)
        found = max(int(extent[1]) - first, 1)
        if features is not None and found > features:
            raise InputError(f"{self.origin}: {found} features, expected at most {features}")
        data, X = self.data, self.data.X
        if isinstance(X, Csr) and self.first is not None:
            move = self.first - first
            indices = X.indices + np.int32(move) if move else X.indices
            data = replace(data, X=Csr(X.indptr, indices, X.values, found))
        data = replace(data, sources=data.sources or ((self.origin, data.rows),))
        return data.with_features(found if features is None else features)

    def own_vocabulary(self) -> Vocabulary:
        """The vocabulary of named columns, for a single process."""
        assert self.names is not None
        assert isinstance(self.data.X, Csr)
        return self.names.vocabulary([(self.names.names, counts_of(self.data.X))])

    def indexed(self, vocabulary: Vocabulary) -> Raw:
        """The rows with named columns placed by the vocabulary; unknown ones are left out."""
        X = self.data.X
        assert isinstance(X, Csr)
        names = () if self.names is None else self.names.names
        moved = renumbered(X, vocabulary.columns_of(names), vocabulary.size)
        return replace(self, data=replace(self.data, X=moved), names=None)

    def kept(self, start: int, stop: int) -> Raw:
        """A copy of the rows [start, stop), so that the others' memory can be freed; the extent is kept."""
        if (start, stop) == (0, self.data.rows):
            return self
        X, t = self.data.X, self.data.targets.part(start, stop)
        if isinstance(X, Csr):
            first, last = int(X.indptr[start]), int(X.indptr[stop])
            values = None if X.values is None else X.values[first:last].copy()
            X = Csr(X.indptr[start : stop + 1] - first, X.indices[first:last].copy(), values, X.columns)
        else:
            X = X[start:stop].copy()
        y = joined([t.y]) if isinstance(t.y, LabelSets) else t.y.copy()
        targets = Targets(y, _copy(t.weights), _copy(t.groups), t.dtype)
        data = replace(self.data, X=X, targets=targets, sources=((self.origin, stop - start),))
        return replace(self, data=data)


def from_one(extent: Vector) -> bool:
    """Whether the column numbers count from 1: there are some, and none is 0."""
    return bool(-np.inf < extent[0] < 0)


def nothing(origin: str) -> Raw:
    """No rows, for a rank without a file."""
    X = Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), None, 0)
    return Raw(Dataset(X, Targets(np.zeros(0))), origin, smallest=None)


def join(raws: Sequence[Raw], origin: str) -> Raw:
    """The rows of several files, in their order."""
    if len(raws) == 1:
        return raws[0]
    if len({raw.first for raw in raws}) > 1:
        raise InputError(f"{origin}: some files number their columns and some do not, expected files of one format")
    if any(raw.names is not None for raw in raws):
        return _join_named(raws, origin)
    named = next((raw.layout for raw in raws if raw.data.feature_names is not None), raws[0].layout)
    raws = [raw.aligned(None if named is None else named.names) for raw in raws]
    if len({raw.data.labelled for raw in raws}) > 1:
        without = next(raw.origin for raw in raws if not raw.data.labelled)
        raise InputError(f"{without}: no labels, but other files of {origin} have some")
    found = [raw.smallest for raw in raws if raw.smallest is not None]
    X = _join_matrices([raw.data.X for raw in raws], origin, raws[0].first is not None)
    sources = tuple(source for raw in raws for source in raw.data.sources or ((raw.origin, raw.data.rows),))
    data = Dataset(X, _join_targets(raws, origin), named, raws[0].data.labelled, sources)
    return Raw(data, origin, min(found, default=None), raws[0].first)


def _join_named(raws: Sequence[Raw], origin: str) -> Raw:
    """Columns matched by names; groups of different files are different."""
    table: dict[str, int] = {}
    pieces, before = [], 0
    for raw in raws:
        groups = raw.data.targets.groups
        if raw.names is None or groups is None:
            raise InputError(f"{origin}: some files name their columns and some do not, expected files of one format")
        columns = [table.setdefault(name, len(table)) for name in raw.names.names]
        targets = replace(raw.data.targets, groups=groups + before)
        before += int(groups.max(initial=0)) + 1
        pieces.append((raw, np.array(columns, np.int64), targets))
    moved = [
        replace(raw, data=replace(raw.data, X=renumbered(raw.data.X, columns, len(table)), targets=targets), names=None)  # type: ignore[arg-type]
        for raw, columns, targets in pieces
    ]
    whole = join(moved, origin)
    names: Any = raws[0].names
    return replace(whole, names=replace(names, names=tuple(table)))


def _join_matrices(matrices: Sequence[Matrix], origin: str, numbered: bool) -> Matrix:
    widths = [X.shape[1] for X in matrices]
    if not numbered and len(set(widths)) > 1:
        raise InputError(f"{origin}: the files have {min(widths)} to {max(widths)} features, expected the same number")
    sparse = [X for X in matrices if isinstance(X, Csr)]
    dense = [X for X in matrices if not isinstance(X, Csr)]
    if dense and sparse:
        raise InputError(f"{origin}: some files are dense and some sparse, expected files of one kind")
    if dense:
        return np.concatenate(dense)
    offsets = np.cumsum([0, *(X.nnz for X in sparse)])
    indptr = [X.indptr[1:] - X.indptr[0] + offset for X, offset in zip(sparse, offsets, strict=False)]
    spans = [slice(int(X.indptr[0]), int(X.indptr[-1])) for X in sparse]
    indices = np.concatenate([X.indices[span] for X, span in zip(sparse, spans, strict=True)])
    values: NDArray[Any] | None = None
    if any(X.values is not None for X in sparse):
        dtype = np.result_type(*(X.values for X in sparse if X.values is not None))
        values = np.ones(int(offsets[-1]), dtype)
        for X, span, offset in zip(sparse, spans, offsets, strict=False):
            if X.values is not None:
                values[offset : offset + X.nnz] = X.values[span]
    return Csr(np.concatenate([np.zeros(1, np.int64), *indptr]), indices, values, max(widths))


def _join_targets(raws: Sequence[Raw], origin: str) -> Targets:
    targets = [raw.data.targets for raw in raws]
    kinds = {
        "sets" if isinstance(t.y, LabelSets) else "text" if t.y.dtype.kind == "U" else t.y.shape[1:] for t in targets
    }
    if len(kinds) > 1:
        raise InputError(f"{origin}: labels of different kinds (numbers, text, several numbers) in different files")
    sets: list[Any] = [t.y for t in targets if isinstance(t.y, LabelSets)]
    y: Any = joined(sets) if sets else _joined_labels(targets)
    dtypes = [t.dtype for t in targets if t.rows]
    dtype = functools.reduce(common_type, dtypes) if dtypes else ""
    return Targets(y, _join_all([t.weights for t in targets]), _join_all([t.groups for t in targets]), dtype)


def _joined_labels(targets: Sequence[Targets]) -> NDArray[Any]:
    """The labels one after another, int64 where some are and all are whole."""
    kinds = {t.y.dtype.kind for t in targets}
    whole = "i" in kinds and all(t.y.dtype.kind == "i" or is_whole(t.dtype) for t in targets)
    return np.concatenate([t.y.astype(np.int64) if whole else t.y for t in targets])


def _join_all(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """The joined arrays where every file has one, else None."""
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def _copy(array: Any) -> Any:
    return None if array is None else array.copy()
