"""Writing of data sets to files, atomically; reading them back gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.archives import write_arrays
from bmrm.data.dataset import Dataset
from bmrm.data.files import compressed_like_its_name, whole_file
from bmrm.data.label_types import restored_rows
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets

_ROWS_AT_A_TIME = 4096


def write_svmlight(path: str | PathLike[str], data: Dataset, *, one_based: bool = True) -> None:
    """Write `label [qid:group] index:value ...` lines, compressed if the name ends in .gz, .bz2 or .xz.

    Zeros of dense rows are omitted. The file does not show trailing columns of zeros (give the reader `features`), nor
    that indices count from 0 unless the first column is used (give it `one_based=False`).

    Raises
    ------
    InputError
        Where the format cannot hold the data (text labels, several numbers per row, sample weights, a row with neither
        labels nor entries), or the file cannot be written.
    """
    targets = data.targets
    if targets.weights is not None:
        raise InputError(f"{path}: svmlight text holds no sample weights; write them to a file of their own")
    y = targets.y
    if y.labels.dtype.kind == "U" if isinstance(y, LabelSets) else (y.dtype.kind == "U" or y.ndim != 1):
        raise InputError(f"{path}: svmlight text holds one number per row or sets of labels, not text or vectors")
    with compressed_like_its_name(path) as file:
        for start in range(0, data.rows, _ROWS_AT_A_TIME):
            part = data.part(start, min(start + _ROWS_AT_A_TIME, data.rows))
            file.write("".join(_lines(part, int(one_based), path)).encode("ascii"))


def _lines(data: Dataset, first: int, path: str | PathLike[str]) -> Iterator[str]:
    groups = data.targets.groups
    rows = _sparse_rows(data.X) if isinstance(data.X, Csr) else _dense_rows(data.X)
    for row, (indices, values) in enumerate(rows):
        tokens = [f"{index + first}:{_text(value)}" for index, value in zip(indices, values, strict=True)]
        if groups is not None:
            tokens.insert(0, f"qid:{groups[row]}")
        label = _label(data.targets.y, row)
        if not label and not tokens:
            raise InputError(f"{path}: a row without labels and entries cannot be written as svmlight text")
        yield " ".join([label, *tokens] if label else tokens) + "\n"


def _label(y: Any, row: int) -> str:
    if isinstance(y, LabelSets):
        return ",".join(_text(label) for label in y.labels[y.indptr[row] : y.indptr[row + 1]].tolist())
    return _text(y[row].item())


def _sparse_rows(X: Csr) -> Iterator[tuple[list[int], list[float]]]:
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        values = [1.0] * (stop - start) if X.values is None else X.values[start:stop].tolist()
        yield X.indices[start:stop].tolist(), values


def _dense_rows(X: NDArray[Any]) -> Iterator[tuple[list[int], list[float]]]:
    for row in X:
        used = np.flatnonzero(row)
        yield used.tolist(), row[used].tolist()


def _text(value: float) -> str:
    """The shortest text that `float` reads back to the same bits."""
    return repr(value).removesuffix(".0")


def write_npz(path: str | PathLike[str], data: Dataset) -> None:
    """Write the archive that `bmrm.data.readers.npz` describes; InputError where the file cannot be written."""
    arrays: dict[str, NDArray[Any]] = {}
    targets = data.targets
    if isinstance(data.X, Csr):
        X = data.X.own
        arrays |= {"indptr": X.indptr, "indices": X.indices, "shape": np.array(X.shape)}
        arrays |= {} if X.values is None else {"values": X.values}
    else:
        arrays["X"] = data.X
    if data.feature_names is not None:
        arrays["names"] = np.array(data.feature_names, np.str_)
    arrays |= label_arrays(targets) if data.labelled else {}
    arrays |= {key: array for key in ("weights", "groups", "offset") if (array := getattr(targets, key)) is not None}
    with whole_file(path) as file:
        write_arrays(file, arrays)


def label_arrays(targets: Targets) -> dict[str, NDArray[Any]]:
    """The labels of rows as arrays, by the names that they have in files."""
    y: Any = targets.y
    if not isinstance(y, LabelSets):
        return {"y": restored_rows(y, targets.dtype)}
    if y.form != "sets":
        return {"y": y.indicator(y.classes()).astype(y.dtype)}
    return {"label_indptr": y.own.indptr, "labels": restored_rows(y.own.labels, y.dtype)}
