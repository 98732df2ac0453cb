"""Index arrays of sparse matrices, checked before compiled code follows them, be it ours or that of scipy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError


def check_compressed(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    shape: tuple[int, int],
    name: str,
    line: str = "row",
    entry: str = "column index",
) -> bool:
    """Whether indices rise strictly within every line.

    Parameters
    ----------
    indptr, indices : the entries of line i are those at the positions `indptr[i]` to `indptr[i + 1]` of `indices`.
    shape : (lines, number of indices).
    name : of the matrix, for messages; `line` and `entry` likewise.

    Raises
    ------
    InputError
        For positions that fall or lie outside, and for indices outside the shape, naming the first.
    """
    from bmrm.kernels.products.structure import survey

    lines, width = shape
    for array, what in ((indptr, "indptr"), (indices, "indices")):
        if not isinstance(array, np.ndarray):
            raise InputError(f"{name}: {what} is a {type(array).__name__}, expected an array of integers")
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(f"{name}: {what} holds {array.dtype} of shape {array.shape}, expected a list of integers")
    if indptr.shape[0] != lines + 1:
        many = "rows of blocks" if line == "row of blocks" else f"{line}s"
        raise InputError(f"{name}: indptr has {indptr.shape[0]} entries, expected {lines + 1} for {lines} {many}")
    positions = np.ascontiguousarray(indptr, np.int64)
    numbers = np.ascontiguousarray(indices, np.int32 if indices.dtype == np.int32 else np.int64)
    if not 0 <= positions[0] <= positions[-1] <= numbers.shape[0]:
        raise InputError(
            f"{name}: indptr goes from {positions[0]} to {positions[-1]}, expected from 0 to at most "
            f"{numbers.shape[0]}, the number of stored entries"
        )
    falling, largest, rising = survey(positions, numbers.view(f"u{numbers.itemsize}"))
    if falling >= 0:
        raise InputError(
            f"{name}: indptr falls from {positions[falling]} to {positions[falling + 1]} at {line} {falling}, "
            "expected positions that never fall"
        )
    if positions[0] < positions[-1] and int(largest) >= width:
        held = numbers[positions[0] : positions[-1]]
        place = int(np.argmax((held < 0) | (held >= width)))
        at = int(np.searchsorted(positions, positions[0] + place, side="right")) - 1
        counted = " (indices count from 0)" if held[place] == width else ""
        raise InputError(f"{name}: {line} {at} has the {entry} {held[place]}, expected 0 to {width - 1}{counted}")
    return bool(rising)


def is_sparse(X: Any) -> bool:
    """Whether `X` is a sparse matrix, of scipy or alike; its own members are not asked, which may be damaged."""
    return hasattr(type(X), "tocsr") and hasattr(type(X), "nnz")


def check_sparse(matrix: Any, name: str = "X") -> None:
    """Raise InputError where a matrix of scipy refers to entries that it does not have; others are not looked at."""
    format = getattr(matrix, "format", None)
    if isinstance(format, str) and format in _CHECKS and len(matrix.shape) == 2:
        try:
            _CHECKS[format](matrix, name)
        except InputError:
            raise
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise damaged(format, name, error) from error


def damaged(format: str, name: str, error: Exception) -> InputError:
    """What is said of a matrix whose parts are not those of its format."""
    return InputError(f"{name}: the {format} matrix is damaged ({str(error).splitlines()[0]:.80})")


def check_csr(matrix: Any, name: str) -> bool:
    """As `check_compressed`, of a scipy CSR matrix."""
    _check_compressed_arrays(matrix, name)
    return check_compressed(matrix.indptr, matrix.indices, matrix.shape, name)


def _check_lengths(indices: NDArray[Any], data: NDArray[Any], name: str, dimensions: int = 1) -> None:
    for array, what in ((indices, "indices"), (data, "values")):
        if not isinstance(array, np.ndarray):
            raise InputError(f"{name}: {what} are a {type(array).__name__}, expected an array")
    if data.ndim != dimensions:
        raise InputError(f"{name}: the values have shape {data.shape}, expected {dimensions} dimensions")
    if indices.shape[:1] != data.shape[:1]:
        raise InputError(f"{name}: {len(indices)} indices and {len(data)} values, expected as many of both")


def _check_compressed_arrays(matrix: Any, name: str, dimensions: int = 1) -> None:
    _check_lengths(matrix.indices, matrix.data, name, dimensions)
    if len(matrix.indptr) and matrix.indptr[0] > 0:  # scipy would leave entries of the result as they happen to be
        raise InputError(f"{name}: indptr begins with {matrix.indptr[0]}, expected 0")


def _check_csc(matrix: Any, name: str) -> None:
    _check_compressed_arrays(matrix, name)
    check_compressed(matrix.indptr, matrix.indices, matrix.shape[::-1], name, "column", "row index")


def _check_bsr(matrix: Any, name: str) -> None:
    _check_compressed_arrays(matrix, name, 3)
    height, width = matrix.data.shape[1:]
    rows, columns = matrix.shape
    if not (height and width) or rows % height or columns % width:
        raise InputError(f"{name}: blocks of shape {(height, width)} in a matrix of shape {matrix.shape}")
    blocks = rows // height, columns // width
    check_compressed(matrix.indptr, matrix.indices, blocks, name, "row of blocks", "column index of a block")


def _check_coo(matrix: Any, name: str) -> None:
    for numbers, size, what in zip((matrix.row, matrix.col), matrix.shape, ("row", "column"), strict=True):
        _check_lengths(numbers, matrix.data, name)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise InputError(f"{name}: {what} indices are {numbers.dtype}, expected a list of integers")
        if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < size):
            entry = int(np.argmax((numbers < 0) | (numbers >= size)))
            raise InputError(
                f"{name}: entry {entry} is at row {matrix.row[entry]}, column {matrix.col[entry]}, "
                f"outside the shape {matrix.shape}"
            )


def _check_lil(matrix: Any, name: str) -> None:
    rows, data = matrix.rows, matrix.data
    if rows.shape != data.shape or rows.shape != (matrix.shape[0],):
        raise InputError(f"{name}: lists of {len(rows)} rows, expected {matrix.shape[0]}")
    for k, (columns, values) in enumerate(zip(rows, data, strict=True)):
        if len(columns) != len(values):
            raise InputError(f"{name}: row {k} has {len(columns)} column indices and {len(values)} values")
    _refuse_others(list(chain.from_iterable(rows)), list(chain.from_iterable(data)), name)


def _check_dok(matrix: Any, name: str) -> None:
    places = dict(matrix.items())
    for place in places:
        if not all(0 <= index < size for index, size in zip(place, matrix.shape, strict=True)):
            raise InputError(f"{name}: an entry is at {place}, outside the shape {matrix.shape}")
    _refuse_others(list(chain.from_iterable(places)), list(places.values()), name)


def _refuse_others(indices: Collection[Any], values: Collection[Any], name: str) -> None:
    """Raise InputError for indices that are no integers and values that are no numbers."""
    if indices and np.array(indices).dtype.kind not in "iu":
        other = next((index for index in indices if not isinstance(index, (int, np.integer))), max(indices))
        raise InputError(f"{name}: an index is {other!r:.40}, expected integers")
    if values and np.array(values).dtype.kind not in "fiub":
        other = next(value for value in values if np.array(value).dtype.kind not in "fiub")
        raise InputError(f"{name}: an entry is {other!r:.40}, expected a number")


def _check_dia(matrix: Any, name: str) -> None:
    if np.ndim(matrix.data) != 2 or matrix.offsets.shape != matrix.data.shape[:1]:
        raise InputError(f"{name}: {len(matrix.offsets)} offsets and {len(matrix.data)} diagonals, expected as many")


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "csr": check_csr,
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "lil": _check_lil,
    "dia": _check_dia,
    "dok": _check_dok,
}
"""Checks by the `format` of scipy."""
