"""Rows of features with their targets, validated once, on construction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.encoding import Encoding, Unknown, merged, summaries
from bmrm.data.frames import has_numbers_only, is_frame, names_of, refuse_hidden, table_of, values_of
from bmrm.data.index_arrays import check_sparse, is_sparse
from bmrm.data.label_types import as_listed, is_na, of_one_type, stored
from bmrm.data.labels import LabelSets
from bmrm.data.layout import Layout, columns_of, shown
from bmrm.data.matrix import Csr, Features, Matrix, nnz_of, part_of, rows_of, with_columns
from bmrm.data.raw_columns import NUMBER, PLAIN, Coding, RawTable
from bmrm.problem import Check, InputError, Targets, Vector, unchecked
from bmrm.problem import shown as shown_value

FEW = 10_000
"""Entries of which a temporary array costs less than to ask for no warnings."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples: `X` of shape (rows, features), and targets, weights and group of each row.

    Attributes
    ----------
    X : `Csr` (with values or valueless), or a dense C-contiguous float32 or float64 array.
    targets : labels or numbers `y`, sample weights and groups, one of each per row.
    layout : how the rows were read, including the names of columns; None if unknown.
    labelled : whether `targets.y` was given; otherwise it is 0.
    sources : the files that the rows are from, in order, with the number of rows of each; empty if there are none.
    """

    X: Matrix
    targets: Targets
    layout: Layout | None = None
    labelled: bool = True
    sources: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.X, (np.ndarray, Features)) or len(self.X.shape) != 2:
            raise InputError(
                f"X is {shown_value(self.X)}, expected a Csr or an array (rows, features); `Dataset.from_arrays` takes "
                "others"
            )
        if self.X.shape[0] != self.targets.rows:
            raise InputError(f"X has {self.X.shape[0]} rows, y has {self.targets.rows}")
        for name, array in (("weights", self.targets.weights), ("groups", self.targets.groups)):
            if array is not None and array.shape != (self.targets.rows,):
                raise InputError(f"{name} have shape {array.shape}, expected ({self.targets.rows},)")
        offset = self.targets.offset
        if offset is not None and (offset.ndim not in (1, 2) or offset.shape[0] != self.targets.rows):
            raise InputError(f"offset has shape {offset.shape}, expected ({self.targets.rows},)")
        structure = self.targets.structure
        if structure is not None and (structure.ndim != 2 or structure.shape[0] != self.targets.rows):
            raise InputError(f"structure has shape {structure.shape}, expected ({self.targets.rows}, numbers)")

    @property
    def rows(self) -> int:
        """Number of examples."""
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns of `X`; None where they have none."""
        return None if self.layout is None else self.layout.names

    @property
    def nnz(self) -> int:
        """Stored entries of `X`; rows times features where it is dense."""
        return nnz_of(self.X)

    def source_of(self, row: int) -> str:
        """The origin of a row, for messages: its file, or its number if there is none.

        Parameters
        ----------
        row : its number, from 0.
        """
        for name, rows in self.sources:
            if row < rows:
                return name
            row -= rows
        return f"row {row}"

    def part(self, start: int, stop: int) -> Dataset:
        """The rows [start, stop), as views.

        Parameters
        ----------
        start, stop : numbers of rows, from 0.
        """
        return replace(self, X=part_of(self.X, start, stop), targets=self.targets.part(start, stop), sources=())

    def select(self, rows: NDArray[np.integer[Any]], check: Check = unchecked) -> Dataset:
        """A copy of the chosen rows, in the order given.

        Parameters
        ----------
        rows : their numbers, from 0; a row may be chosen more than once.
        check : called from time to time; what it raises ends the copy. Default: nothing.
        """
        return replace(self, X=rows_of(self.X, rows, check), targets=self.targets.take(rows), sources=())

    def with_features(self, features: int) -> Dataset:
        """The same rows with columns of zeros added; fewer columns than there are is an InputError.

        So many columns are meant then, even if most of them are empty.

        Parameters
        ----------
        features : how many columns, not less than there are.

        Raises
        ------
        InputError
            For fewer columns than there are.
        """
        layout = replace(self.layout or Layout(), stated=True)
        return replace(self, X=with_columns(self.X, features), layout=layout)

    def checked(self) -> Dataset:
        """The same rows, with features, weights and offset checked as by `from_arrays`."""
        weights, offset = self.targets.weights, self.targets.offset
        if weights is not None:
            weights = check_weights(weights, self.rows, some=False)
        if offset is not None:
            offset = check_offset(offset, self.rows)
        return replace(self, X=check_matrix(self.X), targets=replace(self.targets, weights=weights, offset=offset))

    def with_weights(self, weights: Any) -> Dataset:
        """The same rows with these sample weights.

        Parameters
        ----------
        weights : (rows,), finite and >= 0; training and measures ask for one above 0 in all rows of all ranks.

        Raises
        ------
        InputError
            For weights of another shape, or that are negative or not finite.
        """
        checked = check_weights(weights, self.rows, some=False)
        return replace(self, targets=replace(self.targets, weights=checked))

    def with_offset(self, offset: Any) -> Dataset:
        """The same rows with numbers that are added to their scores, outside the weights.

        Parameters
        ----------
        offset : (rows,), or (rows, scores) for several scores per row; finite. Or the name of a column, which is no
            feature then.

        Raises
        ------
        InputError
            For an offset of another shape, or that is not finite; for a name that no column or several have.
        """
        if isinstance(offset, str):
            return self._with_offset_column(offset)
        return replace(self, targets=replace(self.targets, offset=check_offset(offset, self.rows)))

    def _with_offset_column(self, name: str) -> Dataset:
        names = self.feature_names or ()
        if names.count(name) != 1:
            told = "the columns have no names" if not names else f"{names.count(name)} columns have this name"
            raise InputError(f"offset is {shown(name)}, expected numbers or the name of a column; {told}")
        place = names.index(name)
        kept = np.delete(np.arange(len(names)), place)
        if not kept.size:
            raise InputError(f"offset is {shown(name)}, the only column; expected at least one feature")
        column = columns_of(self.X, np.array([place]))
        values = np.ravel(column.to_scipy().toarray() if isinstance(column, Csr) else column).astype(np.float64)
        layout = replace(self.layout or Layout(), features=len(kept), names=tuple(names[k] for k in kept), offset=name)
        targets = replace(self.targets, offset=check_offset(values, self.rows))
        return replace(self, X=columns_of(self.X, kept), targets=targets, layout=layout)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any = None,
        weights: Any = None,
        groups: Any = None,
        structure: Any = None,
        offset: Any = None,
        coding: Coding | Encoding | None = None,
    ) -> Dataset:
        """Check and convert arrays; none of them is changed, and `X` is not copied where it fits as it is.

        Parameters
        ----------
        X : (rows, features): array-like of numbers (float32 stays, all else becomes float64), any scipy.sparse matrix
            (duplicates are summed), or a data frame of pandas or polars, whose names of columns are kept. All finite,
            unless `coding` says otherwise.
        y : (rows,) labels (numbers, strings, truth values, times) or numbers; (rows, outputs) numbers; or a set of
            labels per row, as a list of sets, `LabelSets` or a matrix of 0 and 1, dense or sparse. None means 0 for
            every row. Predicted labels have the type of these.
        weights : (rows,) finite, >= 0; None means 1 for every row. All may be 0 where these are a rank's rows.
        groups : (rows,) integers or text; None means no groups.
        structure : (rows, numbers) or (rows,) integers, what a loss over structures asks for; None means none.
        offset : (rows,) or (rows, scores) finite numbers that are added to the scores; or the name of a column; None
            means none.
        coding : how columns become features that hold text or categories, or lack values: a `Coding` that is wanted,
            or the `Encoding` of other rows; None: such columns are refused.

        Raises
        ------
        InputError
            Naming the array, and the row and column where there is one.
        """
        matrix, names, encoding, unknown = features_in(X, coding)
        if matrix.shape[1] == 0:
            raise InputError(f"X has shape {tuple(matrix.shape)}, expected at least one column")
        rows = int(matrix.shape[0])
        labels, dtype = (np.zeros(rows), "") if y is None else check_labels(y, rows)
        found = cls(
            matrix,
            Targets(
                labels,
                None if weights is None else check_weights(weights, rows, some=False),
                None if groups is None else check_groups(groups, rows),
                dtype,
                structure=None if structure is None else check_structure(structure, rows),
            ),
            None
            if names is None
            else Layout(features=matrix.shape[1], names=names, encoding=encoding, unknown=unknown),
            y is not None,
        )
        return found if offset is None else found.with_offset(offset)


Named = tuple[Matrix, "tuple[str, ...] | None", "Encoding | None", tuple[Unknown, ...]]
"""A matrix, the names of its columns, the encoding that it was made by, and what this does not know."""


def features_in(X: Any, coding: Coding | Encoding | None = None) -> Named:
    """The features of rows as `Dataset.from_arrays` takes them, with `coding` as there."""
    encoding, table = coded(X, coding)
    if encoding is None or table is None:
        return (*named_matrix(X), None, ())
    matrix, unknown = encoding.encoded(table, "X")
    return matrix, encoding.names, encoding, unknown


def coded(X: Any, coding: Coding | Encoding | None) -> tuple[Encoding | None, RawTable | None]:
    """The encoding for rows, and their columns; None where these are features as they are."""
    if coding is None or (type(X) is np.ndarray and coding is PLAIN):
        return None, None
    refuse_hidden(X, "X")
    if isinstance(coding, Encoding):
        table = _table_like(X, coding)
        return (None, None) if table is None else (coding, table)
    table = table_for(X, coding)
    if table is None or not (coding.stated or any(kind != NUMBER for kind in table.kinds)):
        return None, None
    found = merged([summaries(table)], table.names, "X")
    return Encoding.fitted(found, table.names, table.headed, coding, "X"), table


def table_for(X: Any, coding: Coding) -> RawTable | None:
    """The columns of training rows; None for numbers of which nothing is wanted."""
    if is_frame(X):
        if not len(X.columns) or (has_numbers_only(X) and not coding.stated) or not len(X):
            return None
        names = names_of(X) or tuple(f"x{k}" for k in range(len(X.columns)))
    elif not coding.stated:
        return None
    else:
        if isinstance(X, Csr) or is_sparse(X):
            raise InputError(f"{coding.stated[0]} is for columns of a data frame or an array, X is sparse")
        X = _objects(X)
        names = tuple(f"x{k}" for k in range(X.shape[1]))
    kinds = coding.kinds(names, "X")
    return table_of(X, lambda name, place: kinds.get(place), coding.missing)


def _table_like(X: Any, encoding: Encoding) -> RawTable | None:
    """The columns of rows like those of training; None where they are features already, as in an array of these."""
    if is_frame(X):
        if not len(X.columns):
            raise InputError("X has no columns")
        return table_of(X, encoding.kind_of, encoding.missing)
    if isinstance(X, Csr) or is_sparse(X):
        return None
    array = _objects(X)
    if len(array.shape) != 2 or array.shape[1] != len(encoding.columns) or not len(array):
        return None
    return table_of(array, lambda name, place: encoding.columns[place].kind, encoding.missing)


def _objects(X: Any) -> NDArray[Any]:
    """`X` as an array of numbers, or of objects where it has others."""
    array = plain_array(X, "X")
    if array.dtype.kind == "U":
        array = plain_array(np.array(X, object), "X")
    if array.ndim != 2:
        raise InputError(f"X has shape {array.shape}, expected (rows, features)")
    return array


def named_matrix(X: Any) -> tuple[Matrix, tuple[str, ...] | None]:
    """As `check_matrix`, and the names of the columns of a data frame."""
    if not is_frame(X):
        return check_matrix(X), None
    names = names_of(X)
    return check_matrix(values_of(X), names), names


def check_matrix(X: Any, names: Sequence[str] | None = None) -> Matrix:
    """`X` as a `Csr` or a dense array of finite numbers; InputError names the first invalid row and column."""
    dense = X
    if type(X) is not np.ndarray:
        if isinstance(X, Csr):
            return _finite_csr(X.checked())
        if is_sparse(X):
            if len(X.shape) != 2:
                raise InputError(f"X has shape {tuple(X.shape)}, expected (rows, features)")
            return _finite_csr(Csr.from_scipy(X)).without_unit_values()
        dense = plain_array(X, "X")
    if dense.ndim == 0:
        raise InputError(f"X is {shown_value(X)}, expected an array (rows, features)")
    if dense.ndim != 2:
        raise InputError(f"X has shape {dense.shape}, expected (rows, features)")
    if dense.dtype.kind == "c":
        raise InputError("X is complex, expected real numbers")
    if dense.dtype != np.float32:
        dense = _to_float64(dense, "X")
    if not _all_finite(dense):
        row, column = np.argwhere(~np.isfinite(dense))[0]
        which = column if names is None else shown(names[column])
        raise InputError(f"X: row {row}, column {which} is {dense[row, column]}, expected a finite number")
    return np.ascontiguousarray(dense)


def check_labels(y: Any, rows: int) -> tuple[Any, str]:
    """`y` as float64, int64, strings or `LabelSets`, one entry per row, and the name of the type of its labels."""
    if isinstance(y, LabelSets):
        _check_length("y", len(y), rows)
        return y, y.dtype
    if is_sparse(y):
        check_sparse(y, "y")
        _check_length("y", y.shape[0], rows)
        sets = LabelSets.from_matrix(y.tocsr(), "sparse")
        return sets, sets.dtype
    if _has_sets(y):
        sets = LabelSets.from_rows(y)
        _check_length("y", len(sets), rows)
        return sets, sets.dtype
    array = _labels(y)
    if array.ndim == 0:
        raise InputError(f"y is {shown_value(y)}, expected ({rows},) or ({rows}, outputs)")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InputError(f"y has shape {array.shape}, expected ({rows},) or ({rows}, outputs)")
    _check_length("y", array.shape[0], rows)
    if array.ndim == 1:
        array, dtype = stored(array)
        if array.dtype.kind in "Ui":
            return array, dtype
    numbers = _to_float64(array, "y")
    if not _all_finite(numbers):
        place = np.argwhere(~np.isfinite(numbers))[0]
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise InputError(f"y: {where} is {numbers[tuple(place)]}, expected a finite number")
    if array.ndim == 2:
        dtype = array.dtype.name if array.dtype.kind in "iubf" else ""
    return np.ascontiguousarray(numbers), dtype


def _labels(y: Any) -> NDArray[Any]:
    """`numpy.asarray`, objects where it would turn numbers of a list into text."""
    array = plain_array(y.to_numpy() if is_frame(y) else y, "y")
    if isinstance(y, (list, tuple)) and array.ndim == 1 and array.dtype.kind in "Uf":
        array = as_listed(y, array)
    return array


def plain_labels(y: Any) -> Any:
    """Labels as an array of one type where that can be told; InputError names a row that is missing or of another."""
    if y is None or isinstance(y, LabelSets) or is_sparse(y):
        return y
    array = _labels(y)
    if array.dtype.kind in "OTmM" and array.ndim and array.size == len(array):
        if array.dtype.kind in "OT":
            array = of_one_type(array).reshape(array.shape)
        stored(array.ravel())  # says which row is missing
    return array if array.ndim else y


def _has_sets(y: Any) -> bool:
    """Whether the first row is a set."""
    if isinstance(y, np.ndarray) and y.dtype != np.object_:
        return False
    try:
        return isinstance(next(iter(y), None), (set, frozenset))
    except TypeError:
        return False


def plain_array(values: Any, name: str) -> NDArray[Any]:
    """`np.asarray`; InputError for what that does not show, and for lists of different lengths, naming the first."""
    if type(values) is np.ndarray:
        return values
    refuse_hidden(values, name)
    if is_sparse(values):
        raise InputError(f"{name} is a sparse matrix, expected an array")
    try:
        return np.asarray(values)
    except Exception as error:  # tensors raise what they like: on another device, with a gradient
        if not isinstance(values, (list, tuple)) or not isinstance(error, ValueError):
            raise InputError(f"{name} is {shown_value(values)}, which is no array ({error})") from error
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in values]
        row = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
        if row is None:
            raise InputError(f"{name}: {error}") from error
        raise InputError(
            f"{name}: row {row} has {lengths[row]} entries, row 0 has {lengths[0]}; expected rows of one length"
        ) from error


def plain_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """As `plain_array`, as float64; InputError for what is no number."""
    return _to_float64(plain_array(values, name), name)


def check_weights(weights: Any, rows: int, *, some: bool = True) -> Vector:
    """Sample weights as float64, finite, >= 0 and (where there are rows, and these are all: `some`) not all 0."""
    array = plain_numbers(weights, "weights")
    if array.ndim != 1:
        raise InputError(f"weights have shape {array.shape}, expected ({rows},)")
    _check_length("weights", array.shape[0], rows)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))
    if bad.size:
        raise InputError(f"weights: row {bad[0]} is {array[bad[0]]}, expected a finite number >= 0")
    if some:
        refuse_weightless(array)
    return np.ascontiguousarray(array)


def refuse_weightless(weights: Vector | None, part: str = "") -> None:
    """Raise InputError where there are weights, and all are 0; `part` is what the rows are, for the message."""
    if weights is not None and len(weights) and not weights.any():
        raise InputError(f"{part}{': ' if part else ''}weights are all zero, expected at least one above 0")


def near_one(weights: Vector, largest: float | None = None) -> Vector:
    """The weights divided by a power of two, after which the largest (of all ranks, where given) is at most 1.

    For means, which do not depend on the unit of weights: so no sum of them is beyond float64.
    """
    most = float(weights.max(initial=0.0)) if largest is None else largest
    found: Vector = np.ldexp(weights, -int(np.frexp(most)[1]))
    return found


def check_offset(offset: Any, rows: int) -> NDArray[np.float64]:
    """What is added to scores as float64, (rows,) or (rows, scores), finite."""
    array = plain_numbers(offset, "offset")
    if array.ndim not in (1, 2):
        raise InputError(f"offset has shape {array.shape}, expected ({rows},) or ({rows}, scores)")
    _check_length("offset", array.shape[0], rows)
    if not _all_finite(array):
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InputError(f"offset: row {row} is {array[row]}, expected finite numbers")
    return np.ascontiguousarray(array)


def check_groups(groups: Any, rows: int) -> NDArray[np.int64]:
    """Groups as int64, one per row; text becomes 63 bits of its hash, the same on every rank."""
    array = plain_array(groups, "groups")
    if array.ndim != 1:
        raise InputError(f"groups have shape {array.shape}, expected ({rows},)")
    _check_length("groups", array.shape[0], rows)
    if array.dtype.kind in "iub":
        return np.ascontiguousarray(array, np.int64)
    if array.dtype.kind in "UOT" and array.size and all(isinstance(group, str) for group in array.tolist()):
        names, place = np.unique(array.astype(np.str_), return_inverse=True)
        return np.array([_hashed(name) for name in names.tolist()], np.int64)[place.reshape(-1)]
    numbers = _to_float64(array, "groups")
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2.0**63)))
    if bad.size:
        raise InputError(f"groups: row {bad[0]} is {array[bad[0]]}, expected an integer")
    return numbers.astype(np.int64)


def check_structure(structure: Any, rows: int) -> NDArray[np.int64]:
    """What is given of each row besides its label as int64, (rows, numbers)."""
    array = plain_array(structure, "structure")
    _check_length("structure", len(array) if array.ndim else 0, rows)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iub":
        raise InputError(f"structure is {array.dtype} of shape {array.shape}, expected integers ({rows}, numbers)")
    return np.ascontiguousarray(array.reshape(rows, -1), np.int64)


def _hashed(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def _finite_csr(matrix: Csr) -> Csr:
    if matrix.values is None or _all_finite(matrix.values):
        return matrix
    entry = int(np.flatnonzero(~np.isfinite(matrix.values))[0])
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    raise InputError(
        f"X: row {row}, column {matrix.indices[entry]} is {matrix.values[entry]}, expected a finite number"
    )


def _all_finite(array: NDArray[Any]) -> bool:
    if array.size > FEW:  # the sum is finite where every term is, unless it overflows: no temporary
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(array.sum(dtype=np.float64)):
                return True
    return bool(np.isfinite(array).all())


def _to_float64(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if array.dtype == np.float64:
        return np.asarray(array)
    if array.dtype.kind == "c":
        raise InputError(f"{name}: complex numbers, expected real ones")
    if array.dtype.kind in "USmMV":
        kind = "text" if array.dtype.kind in "US" else str(array.dtype)
        raise InputError(f"{name} holds {kind}, expected numbers")
    if array.dtype.kind == "O":
        text = next((k for k, value in enumerate(array.flat) if isinstance(value, (str, bytes))), None)
        if text is not None:
            place = ", ".join(map(str, np.unravel_index(text, array.shape)))
            raise InputError(f"{name} holds text ({array.flat[text]!r:.40} at {place}), expected numbers")
        missing = next((k for k, value in enumerate(array.flat) if is_na(value)), None)
        if missing is not None:
            at = zip(("row", "column"), np.unravel_index(missing, array.shape), strict=False)
            where = ", ".join(f"{what} {k}" for what, k in at)
            raise InputError(f"{name}: {where} is missing ({array.flat[missing]}), expected a number")
    try:
        with np.errstate(over="ignore"):  # longer floats become infinite, which is refused
            return np.asarray(array, np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}; expected numbers") from error


def _check_length(name: str, length: int, rows: int) -> None:
    if length != rows:
        raise InputError(f"{name} has {length} entries, X has {rows} rows")
