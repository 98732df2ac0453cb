"""Index arrays of sparse matrices, checked before compiled code follows them, be it ours or that of scipy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(f"{name}: {what} holds {array.dtype} of shape {array.shape}, expected a list of integers")
    if indptr.shape[0] != lines + 1:
        raise InputError(f"{name}: indptr has {indptr.shape[0]} entries, expected {lines + 1} for {lines} {line}s")
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


def check_sparse(matrix: Any, name: str = "X") -> None:
    """Raise InputError where a matrix of scipy refers to entries that it does not have; others are not looked at."""
    format = getattr(matrix, "format", None)
    if isinstance(format, str) and format in _CHECKS and len(matrix.shape) == 2:
        _CHECKS[format](matrix, name)


def check_csr(matrix: Any, name: str) -> bool:
    """As `check_compressed`, of a scipy CSR matrix."""
    _check_lengths(matrix.indices, matrix.data, name)
    return check_compressed(matrix.indptr, matrix.indices, matrix.shape, name)


def _check_lengths(indices: NDArray[Any], data: NDArray[Any], name: str) -> None:
    if indices.shape[:1] != data.shape[:1]:
        raise InputError(f"{name}: {len(indices)} indices and {len(data)} values, expected as many of both")


def _check_csc(matrix: Any, name: str) -> None:
    _check_lengths(matrix.indices, matrix.data, name)
    check_compressed(matrix.indptr, matrix.indices, matrix.shape[::-1], name, "column", "row index")


def _check_bsr(matrix: Any, name: str) -> None:
    _check_lengths(matrix.indices, matrix.data, name)
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


def _check_dia(matrix: Any, name: str) -> None:
    if matrix.data.ndim != 2 or matrix.offsets.shape != matrix.data.shape[:1]:
        raise InputError(f"{name}: {len(matrix.offsets)} offsets and {len(matrix.data)} diagonals, expected as many")


_CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "csr": check_csr,
    "csc": _check_csc,
    "bsr": _check_bsr,
    "coo": _check_coo,
    "lil": _check_lil,
    "dia": _check_dia,
}
"""By `format` of scipy; others are dicts, which scipy checks when they are converted."""
