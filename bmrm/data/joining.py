"""Rows of several data sets one after another, and rows as bytes, so that they can travel."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.label_types import is_whole
from bmrm.data.labels import LabelSets, joined
from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import InputError, Targets
from bmrm.problem.loss import common_type

Bytes = NDArray[np.uint8]
ALIGNED = 8
"""Alignment of arrays, in bytes."""


def join_matrices(matrices: Sequence[Matrix], origin: str, numbered: bool) -> Matrix:
    """All rows; columns that have numbers may be missing at the end of some."""
    widths = [X.shape[1] for X in matrices]
    if not numbered and len(set(widths)) > 1:
        raise InputError(f"{origin}: the files have {min(widths)} to {max(widths)} features, expected the same number")
    sparse = [X.own for X in matrices if isinstance(X, Csr)]
    dense = [X for X in matrices if not isinstance(X, Csr)]
    if dense and sparse:
        raise InputError(f"{origin}: some files are dense and some sparse, expected files of one kind")
    if dense:
        return np.concatenate(dense)
    offsets = np.cumsum([0, *(X.nnz for X in sparse)])
    indptr = [X.indptr[1:] + offset for X, offset in zip(sparse, offsets, strict=False)]
    values: NDArray[Any] | None = None
    if any(X.values is not None for X in sparse):
        values = np.concatenate([np.ones(X.nnz, np.float32) if X.values is None else X.values for X in sparse])
    indices = np.concatenate([X.indices for X in sparse])
    return Csr(np.concatenate([np.zeros(1, np.int64), *indptr]), indices, values, max(widths))


def join_targets(targets: Sequence[Targets], origin: str) -> Targets:
    """All targets; weights and groups where all have some."""
    kinds = {
        "sets" if isinstance(t.y, LabelSets) else "text" if t.y.dtype.kind == "U" else t.y.shape[1:] for t in targets
    }
    if len(kinds) > 1:
        raise InputError(f"{origin}: labels of different kinds (numbers, text, several numbers) in different files")
    sets: list[Any] = [t.y for t in targets if isinstance(t.y, LabelSets)]
    y: Any = joined(sets) if sets else _joined_labels(targets)
    dtypes = [t.dtype for t in targets if t.rows]
    dtype = functools.reduce(common_type, dtypes) if dtypes else ""
    weights, groups, structure, offset = (
        _join_all([getattr(t, name) for t in targets]) for name in ("weights", "groups", "structure", "offset")
    )
    return Targets(y, weights, groups, dtype, structure=structure, offset=offset)


def _joined_labels(targets: Sequence[Targets]) -> NDArray[Any]:
    """The labels one after another, int64 where some are and all are whole."""
    kinds = {t.y.dtype.kind for t in targets}
    whole = "i" in kinds and all(t.y.dtype.kind == "i" or is_whole(t.dtype) for t in targets)
    return np.concatenate([t.y.astype(np.int64) if whole else t.y for t in targets])


def _join_all(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """The joined arrays where every file has one, else None."""
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def join_rows(parts: Sequence[Dataset], origin: str) -> Dataset:
    """The rows of parts of one data set, some of which may have none; what describes them is that of the first."""
    some = [part for part in parts if part.rows] or list(parts[:1])
    weighted = any(part.targets.weights is not None for part in some)
    targets = [part.targets for part in some]
    if weighted:
        targets = [t if t.weights is not None else replace(t, weights=np.ones(t.rows)) for t in targets]
    X = join_matrices([part.X for part in some], origin, numbered=False)
    return replace(some[0], X=X, targets=join_targets(targets, origin), layout=parts[0].layout, sources=())


# -- bytes: the length of a text, the text (JSON, which describes the arrays), the arrays -----------


def packed(data: Dataset) -> Bytes:
    """The rows as bytes, without what describes them all (`Dataset.layout`)."""
    arrays: dict[str, NDArray[Any]] = {}
    t = data.targets
    if isinstance(data.X, Csr):
        X = data.X.own
        arrays |= {"indptr": X.indptr, "indices": X.indices}
        if X.values is not None:
            arrays["values"] = X.values
    else:
        arrays["X"] = data.X
    about: dict[str, Any] = {"columns": data.features, "dtype": t.dtype, "labelled": data.labelled}
    if isinstance(t.y, LabelSets):
        sets = t.y.own
        arrays |= {"ends": sets.indptr, "labels": sets.labels}
        about |= {"form": sets.form, "sets": sets.dtype}
        if sets.known is not None:
            arrays["known"] = sets.known
    else:
        arrays["y"] = t.y
    beside = {"weights": t.weights, "groups": t.groups, "structure": t.structure, "offset": t.offset}
    arrays |= {name: one for name, one in beside.items() if one is not None}
    return _written(about, arrays)


def unpacked(content: Bytes) -> Dataset:
    """The inverse of `packed`."""
    about, arrays = _read(content)
    X: Matrix
    if "X" in arrays:
        X = arrays["X"]
    else:
        X = Csr(arrays["indptr"], arrays["indices"], arrays.get("values"), about["columns"])
    y: Any = arrays.get("y")
    if y is None:
        y = LabelSets(arrays["ends"], arrays["labels"], about["sets"], about["form"], arrays.get("known"))
    structure, offset = arrays.get("structure"), arrays.get("offset")
    targets = Targets(
        y, arrays.get("weights"), arrays.get("groups"), about["dtype"], structure=structure, offset=offset
    )
    return Dataset(X, targets, None, about["labelled"])


def _written(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Bytes:
    about["arrays"] = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps(about).encode()
    sizes = [8, len(text), *(array.nbytes for array in arrays.values())]
    content = np.zeros(sum(map(_whole, sizes)), np.uint8)
    pieces: list[Any] = [np.array([len(text)], np.int64), np.frombuffer(text, np.uint8), *arrays.values()]
    place = 0
    for size, piece in zip(sizes, pieces, strict=True):
        if size:
            content[place : place + size] = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
        place += _whole(size)
    return content


def _read(content: Bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    length = int(content[:8].view(np.int64)[0])
    about = json.loads(content[8 : 8 + length].tobytes())
    arrays, place = {}, 8 + _whole(length)
    for name, dtype, shape in about["arrays"]:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        arrays[name] = content[place : place + size].view(dtype).reshape(shape) if size else np.zeros(shape, dtype)
        place += _whole(size)
    return about, arrays


def _whole(size: int) -> int:
    """Up to where the next array begins."""
    return -(-size // ALIGNED) * ALIGNED
