"""What a reader returns before all ranks have agreed on the numbering and the number of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.encoding import Encoding, Summary, merged, notes_of, summaries
from bmrm.data.files import about
from bmrm.data.joining import join_matrices, join_targets
from bmrm.data.labels import LabelSets, joined
from bmrm.data.layout import Alike, Layout, aligned, columns_of
from bmrm.data.matrix import Csr, with_columns
from bmrm.data.raw_columns import Coding, RawTable
from bmrm.data.raw_columns import joined as joined_tables
from bmrm.data.readers._core.shares import row_share
from bmrm.data.vocabulary import NamedColumns, Vocabulary, counts_of, renumbered
from bmrm.problem import InputError, Targets, Vector
from bmrm.registry import nearest


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
    table : columns that are not features yet; `data.X` then has none, and `encoded` makes them.
    coding : what is wanted of them.
    """

    data: Dataset
    origin: str
    smallest: int | None = 0
    first: int | None = None
    names: NamedColumns | None = None
    table: RawTable | None = None
    coding: Coding | None = None

    @property
    def layout(self) -> Layout | None:
        """How the rows were read."""
        return self.data.layout

    def aligned(self, names: Sequence[str] | None) -> Raw:
        """The columns in the order of these names; unchanged if either side has none."""
        if self.table is not None:
            if names is None or not self.table.headed or self.layout is None:
                return self
            table, layout = self.table.aligned(names, self.origin), replace(self.layout, names=tuple(names))
            return replace(self, table=table, data=replace(self.data, layout=layout))
        X = aligned(self.data.X, self.data.feature_names, names, self.origin)
        if X is self.data.X or names is None or self.layout is None:
            return self
        return replace(self, data=replace(self.data, X=X, layout=replace(self.layout, names=tuple(names))))

    def like(self, layout: Layout) -> Raw:
        """The features of other files: encoded in the same way, without the column of the offset, in the same order."""
        found = self
        if layout.encoding is not None and self.table is not None:
            found = self.encoded(layout.encoding)
        if layout.offset is not None:
            found = found.with_offset(layout.offset)
        return found.aligned(layout.names)

    def columns(self) -> RawTable:
        """The columns of data whose features may still be made of them."""
        if self.table is not None:
            return self.table
        if isinstance(self.data.X, Csr):
            raise InputError(f"{self.origin}: sparse rows, expected columns as in the other files")
        return RawTable.of_numbers(self.data.X, self.data.feature_names)

    def encoded(self, encoding: Encoding) -> Raw:
        """The rows with the features that the encoding makes of their columns."""
        layout, rows = self.layout or Layout(), self.data.rows
        X, unknown = encoding.encoded(self.columns(), self.origin) if rows else (encoding.no_rows(), ())
        layout = replace(
            layout, features=encoding.width, names=encoding.names, encoding=encoding, unknown=layout.unknown + unknown
        )
        return replace(self, data=replace(self.data, X=X, layout=layout), table=None, coding=None)

    def summaries(self) -> list[Summary] | None:
        """Of the columns, as ranks exchange them; None without rows."""
        return summaries(self.columns()) if self.data.rows else None

    def with_offset(self, name: str) -> Raw:
        """The rows with the column of that name for their offset; unchanged where no column has it."""
        if name not in (self.data.feature_names or ()):
            return self
        with about(self.origin):
            return replace(self, data=self.data.with_offset(name))

    def without(self, ignored: Sequence[str | int], alike: Alike | None = None) -> Raw:
        """The rows without some columns, by names or numbers from 0, of data that name their columns.

        Of data that are read as others were, columns may be absent.
        """
        names = self.data.feature_names
        before = () if alike is None else tuple(set(alike.layout.ignored).difference(alike.layout.names or ()))
        if not ignored and not before:
            return self
        if names is None:
            if not ignored:
                return self
            raise InputError(f"{self.origin}: column {ignored[0]!r} of data.ignore, but the columns have no names")
        gone = set()
        for key in ignored:
            if isinstance(key, int) and -len(names) <= key < len(names):
                gone.add(key % len(names))
            elif key not in names and alike is None:
                raise InputError(f"{self.origin}: 0 columns are named {key!r}, expected one{nearest(str(key), names)}")
        gone |= {k for k, name in enumerate(names) if name in ignored or name in before}
        if len(gone) == len(names):
            raise InputError(f"{self.origin}: data.ignore leaves no column")
        kept = np.array([k for k in range(len(names)) if k not in gone], np.intp)
        layout = replace(
            self.layout or Layout(),
            features=len(kept),
            names=tuple(names[k] for k in kept),
            ignored=tuple(names[k] for k in sorted(gone)),
        )
        return replace(self, data=replace(self.data, X=columns_of(self.data.X, kept), layout=layout))

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
        if self.table is not None:
            return self._self_encoded().dataset(features=features)
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
        return replace(data, X=with_columns(data.X, found)) if features is None else data.with_features(features)

    def _self_encoded(self) -> Raw:
        """With an encoding of these rows, for a single process."""
        assert self.table is not None
        found = merged([summaries(self.table)], self.table.names, self.origin)
        encoding = Encoding.fitted(found, self.table.names, self.table.headed, self.coding or Coding(), self.origin)
        made = self.encoded(encoding)
        layout = made.layout or Layout()
        notes = (*layout.notes, *notes_of(found, self.table.names))
        return replace(made, data=replace(made.data, layout=replace(layout, notes=notes)))

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

    def share(self, part: int, parts: int) -> Raw:
        """The share `part` of `parts` of the rows, groups whole."""
        return self.kept(*row_share(self.data.rows, part, parts, self.data.targets.groups))

    def kept(self, start: int, stop: int) -> Raw:
        """A copy of the rows [start, stop), so that the others' memory can be freed; the extent is kept."""
        if (start, stop) == (0, self.data.rows):
            return self
        part = self.data.part(start, stop)
        X, t = part.X, part.targets
        if isinstance(X, Csr):
            own = X.own
            X = Csr(own.indptr, own.indices.copy(), _copy(own.values), own.columns)
        else:
            X = X.copy()
        y = joined([t.y]) if isinstance(t.y, LabelSets) else t.y.copy()
        beside = {"structure": _copy(t.structure), "offset": _copy(t.offset)}
        targets = Targets(y, _copy(t.weights), _copy(t.groups), t.dtype, **beside)
        data = replace(self.data, X=X, targets=targets, sources=((self.origin, stop - start),))
        return replace(self, data=data, table=None if self.table is None else self.table.part(start, stop))


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
    table = None
    if any(raw.table is not None for raw in raws):
        table = joined_tables([raw.columns() for raw in raws], origin)
        raws = [replace(raw, data=replace(raw.data, X=np.empty((raw.data.rows, 0)))) for raw in raws]
    X = join_matrices([raw.data.X for raw in raws], origin, raws[0].first is not None)
    sources = tuple(source for raw in raws for source in raw.data.sources or ((raw.origin, raw.data.rows),))
    if named is not None:
        layouts = [raw.layout for raw in raws if raw.layout is not None]
        notes = dict.fromkeys(note for layout in layouts for note in layout.notes)
        unknown = tuple(one for layout in layouts for one in layout.unknown)
        named = replace(named, notes=tuple(notes), unknown=unknown)
    data = Dataset(X, join_targets([raw.data.targets for raw in raws], origin), named, raws[0].data.labelled, sources)
    coding = next((raw.coding for raw in raws if raw.coding is not None), None)
    return Raw(data, origin, min(found, default=None), raws[0].first, table=table, coding=coding)


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


def _copy(array: Any) -> Any:
    return None if array is None else array.copy()
