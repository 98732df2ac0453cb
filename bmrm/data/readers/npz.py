"""NumPy archives of arrays.

Keys: `X` (rows, features), or `indptr` (rows + 1,), `indices`, `values` (absent: all 1) and `shape` (rows, features)
of sparse rows; `y` (rows,) or (rows, outputs), numbers or text, or `label_indptr` and `labels` of label sets; and
optionally `weights` and `groups` (rows,), `offset` (rows,) or (rows, scores), and `names` (features,) of the columns.
Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.archives import read_arrays
from bmrm.data.dataset import Dataset
from bmrm.data.files import HEAD, about, in_zip, open_bytes
from bmrm.data.index_arrays import check_compressed
from bmrm.data.label_types import stored
from bmrm.data.labels import LabelSets
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import MOST_COLUMNS, Csr
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.problem import InputError, shown
from bmrm.registry import parameter

_SPARSE = ("indptr", "indices", "values", "shape")
_KEYS = ("X", *_SPARSE, "names", "y", "label_indptr", "labels", "weights", "groups", "offset")
_SCIPY = {"data": "values", "indices": "indices", "indptr": "indptr", "shape": "shape"}
"""Our names of the arrays of `scipy.sparse.save_npz`, besides `format`."""


@formats.register("npz")
@dataclass(frozen=True)
class Npz:
    """A NumPy archive with `X` or the arrays of sparse rows, `y`, `weights` and `groups`."""

    ignore: tuple[str | int, ...] | None = parameter(
        None, doc="columns of `names` that are left out; null: none", example=("b",)
    )

    suffixes: ClassVar[tuple[str, ...]] = (".npz",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the content is a zip archive."""
        return head.startswith(b"PK")

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file."""
        data = read_npz(path)
        data = replace(data, layout=replace(data.layout or Layout(), format=formats.describe(self)))
        raw = Raw(data, str(path)).without(self.ignore or (), alike)
        return raw.share(part, parts)


def read_npz(path: str | Path) -> Dataset:
    """Read an archive; InputError names the file and the key."""
    path = Path(path)
    arrays = _load(path)
    with about(path):
        X: Any = _sparse(arrays) if "indptr" in arrays else arrays.get("X")
        if X is None:
            raise InputError("neither X nor indptr is there")
        y: Any = arrays.get("y")
        if "labels" in arrays:
            y = label_sets(arrays)
        weights, groups, offset = (arrays.get(name) for name in ("weights", "groups", "offset"))
        data = Dataset.from_arrays(X, y, weights, groups, offset=offset)
        layout = Layout(formats.describe(Npz()), data.features, _names(arrays, data.features))
    if data.rows == 0:
        raise InputError(f"{path}: the file has no rows")
    return replace(data, layout=layout)


def _load(path: Path) -> Mapping[str, NDArray[Any]]:
    with open_bytes(path) as file:
        if file.read(2) != b"PK":
            raise InputError(f"{path}: not a NumPy archive (.npz)")
        file.seek(0)
        with about(f"{path}: not an archive of plain arrays"):
            arrays = read_arrays(file)
    if not arrays:
        with open_bytes(path) as file:
            raise InputError(f"{path}: {in_zip(file.read(HEAD))}")
    if "format" in arrays and "data" in arrays:
        arrays = _of_scipy(arrays, path)
    strange = next((key for key in arrays if key not in _KEYS), None)
    if strange is not None:
        raise InputError(f"{path}: unknown array {shown(strange)}, expected some of {', '.join(_KEYS)}")
    return arrays


def _of_scipy(arrays: Mapping[str, NDArray[Any]], path: Path) -> Mapping[str, NDArray[Any]]:
    """The arrays of a file of `scipy.sparse.save_npz` under the names here."""
    form = arrays["format"].tobytes().decode("ascii", "replace").replace("\0", "")
    if form != "csr" or not _SCIPY.keys() <= arrays.keys():
        raise InputError(f"{path}: a scipy matrix in the form {form!r:.20}, expected csr (save_npz(path, X.tocsr()))")
    found = {name: arrays[key] for key, name in _SCIPY.items()}
    indptr, indices, values = found["indptr"], found["indices"], found["values"]
    fits = indptr.ndim == indices.ndim == 1 and indptr.dtype.kind == indices.dtype.kind == "i" and indptr.size
    if fits and indptr[0] == 0 and indptr[-1] == indices.size and np.all(np.diff(indptr) >= 0):
        order = np.lexsort((indices, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))))  # scipy need not sort
        found["indices"] = indices[order]
        found["values"] = values[order] if values.shape == indices.shape else values
    return found


def _sparse(arrays: Mapping[str, NDArray[Any]]) -> Csr:
    for key in ("indices", "shape"):
        if key not in arrays:
            raise InputError(f"indptr is there, but {key} is missing")
    indptr, indices, values = _integers(arrays, "indptr"), _integers(arrays, "indices"), arrays.get("values")
    shape = _integers(arrays, "shape")
    if shape.shape != (2,) or indptr.shape != (shape[0] + 1,):
        raise InputError(f"shape is {shape.tolist()} and indptr has {indptr.size} entries, expected rows + 1 of them")
    rows, columns = map(int, shape)
    if not 0 <= columns <= MOST_COLUMNS:
        raise InputError(f"shape has {columns} columns, expected at most {MOST_COLUMNS}")
    if indptr[0] != 0 or indptr[-1] != indices.size:
        raise InputError(
            f"indptr goes from {indptr[0]} to {indptr[-1]}, expected from 0 to {indices.size}, the entries"
        )
    check_compressed(indptr, indices, (rows, columns), "X")
    if values is not None:
        if values.shape != indices.shape or values.dtype.kind not in "fiub":
            raise InputError(f"values are {values.dtype} of shape {values.shape}, expected {indices.size} numbers")
        values = np.ascontiguousarray(values, np.float32 if values.dtype == np.float32 else np.float64)
    return Csr(indptr, indices.astype(np.int32), values, columns)


def _names(arrays: Mapping[str, NDArray[Any]], columns: int) -> tuple[str, ...] | None:
    if "names" not in arrays:
        return None
    names = arrays["names"]
    if names.dtype.kind != "U" or names.shape != (columns,):
        raise InputError(f"names are {names.dtype} of shape {names.shape}, expected {columns} texts")
    return tuple(names.tolist())


def label_sets(arrays: Mapping[str, NDArray[Any]]) -> LabelSets:
    """The sets of `label_indptr` and `labels`; InputError where these are none."""
    if "label_indptr" not in arrays:
        raise InputError("labels is there, but label_indptr is missing")
    indptr, labels = _integers(arrays, "label_indptr"), arrays["labels"]
    if labels.ndim != 1 or labels.dtype.kind not in "fiubU":
        raise InputError(f"labels are {labels.dtype} of shape {labels.shape}, expected a list of numbers or texts")
    if indptr.size == 0 or indptr[0] != 0 or np.any(np.diff(indptr) < 0) or indptr[-1] != labels.size:
        raise InputError(f"label_indptr does not rise from 0 to the {labels.size} labels")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("labels: a label is not finite")
    return LabelSets.from_ends(indptr, *stored(labels, "labels"))


def _integers(arrays: Mapping[str, NDArray[Any]], key: str) -> NDArray[np.int64]:
    array = arrays[key]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{key} is {array.dtype} of shape {array.shape}, expected a list of integers")
    return array.astype(np.int64)
