"""Checks of targets: the one place that refuses labels, numbers and weights that no loss can take.

Rows of weight 0 count as absent everywhere: their targets are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.label_types import is_whole, shown_label
from bmrm.data.labels import LabelSets
from bmrm.problem import InputError, Summary, Targets, Vector

SHOWN = 5
"""Labels listed in a message before it goes on with '...'."""


def checked_weights(targets: Targets, loss: str) -> Vector | None:
    """The weights as a contiguous float64 array, or None where all are 1; InputError for a negative or nan one."""
    if targets.weights is None:
        return None
    weights = np.array(targets.weights, np.float64)
    if weights.shape != (targets.rows,):
        raise InputError(f"{loss}: weights have shape {weights.shape}, expected ({targets.rows},)")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if bad.size:
        raise InputError(f"{loss}: the weight of row {bad[0]} is {weights[bad[0]]:g}, expected a finite number >= 0")
    return None if bool(np.all(weights == 1.0)) else weights


def refuse_weights(targets: Targets, loss: str) -> None:
    """InputError where some weight is not 1, for losses over whole samples that give weights no meaning."""
    if targets.weights is None:
        return
    other = np.flatnonzero(np.asarray(targets.weights) != 1.0)
    if other.size:
        raise InputError(
            f"{loss}: the weight of row {other[0]} is {targets.weights[other[0]]:g}, but this loss is no sum over rows "
            "and gives weights no meaning; repeat rows instead"
        )


def summary_of_rows(targets: Targets, loss: str) -> Summary:
    """Number of rows and sum of weights, without labels."""
    rows, weights = targets.rows, checked_weights(targets, loss)
    if weights is None:
        return Summary(rows, float(rows))
    with np.errstate(over="ignore"):  # inf stands for a sum beyond float64
        return Summary(rows, float(weights.sum()))


def summary_of_labels(targets: Targets, loss: str) -> Summary:
    """As `summary_of_rows`, with the distinct labels in sort order and the rows that have each."""
    rows = summary_of_rows(targets, loss)
    known, many = _counted(_present(_flat_labels(targets, loss), targets))
    if targets.classes:
        found = dict.fromkeys(targets.classes, 0) | dict(zip(known, many, strict=True))
        known = tuple(sorted(found, key=lambda label: (label,)))
        many = tuple(found[label] for label in known)
    return Summary(rows.rows, rows.weight, known, many, dtype=targets.dtype)


def _counted(labels: NDArray[Any]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The different ones in sort order, and how many there are of each."""
    if labels.size and labels.dtype.kind != "U":
        ends = labels.min(), labels.max()
        counts = [int(np.count_nonzero(labels == end)) for end in ends]
        if ends[0] < ends[1] and sum(counts) == labels.size:  # two comparisons take a tenth of a sort
            return tuple(end.item() for end in ends), tuple(counts)
    found, sizes = np.unique(labels, return_counts=True)
    return tuple(found.tolist()), tuple(sizes.tolist())


def label_positions(targets: Targets, labels: Sequence[float | str], loss: str) -> NDArray[np.int64]:
    """For each row the position of its label in `labels`, (rows,) int64; InputError for any other label."""
    y = _flat_labels(targets, loss)
    if not len(labels) or not targets.rows:
        return np.zeros(targets.rows, np.int64)
    known = np.array(labels)
    if (known.dtype.kind == "U") != (y.dtype.kind == "U"):
        raise InputError(
            f"{loss}: the label {shown_label(y[0].item(), targets.dtype)} is not among {listed(labels, targets.dtype)}"
        )
    if len(known) == 2:  # a comparison takes a tenth of a search
        found: NDArray[np.int64] = (y == known[1]).astype(np.int64)
    else:
        order = np.argsort(known)
        found = order[np.minimum(np.searchsorted(known, y, sorter=order), len(known) - 1)]
    strange = _present(y, targets)[_present(known[found] != y, targets)]
    if strange.size:
        raise InputError(
            f"{loss}: the label {shown_label(strange[0].item(), targets.dtype)} is not among"
            f" {listed(labels, targets.dtype)}"
        )
    return found.astype(np.int64, copy=False)


def numbers(targets: Targets, loss: str) -> Vector:
    """The targets as a new contiguous float64 array of shape (rows,); InputError where one is no finite number."""
    y = targets.y
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "fiub":
        kind = "text" if isinstance(y, np.ndarray) and y.dtype.kind in "US" else "no numbers"
        example = f" ({y[0]!s:.40})" if isinstance(y, np.ndarray) and y.size else ""
        raise InputError(f"{loss}: the targets are {kind}{example}, expected one number per row")
    if y.ndim != 1:
        raise InputError(f"{loss}: the targets have shape {y.shape}, expected one number per row")
    values = np.array(y, np.float64)
    bad = (~np.isfinite(values)).nonzero()[0]
    if bad.size:
        raise InputError(f"{loss}: the target of row {bad[0]} is {values[bad[0]]}, expected a finite number")
    return values


def grades(targets: Targets, loss: str) -> Vector:
    """As `numbers`; text is refused by saying how it gets an order."""
    if isinstance(targets.y, np.ndarray) and targets.y.dtype.kind == "U" and targets.y.size:
        raise InputError(
            f"{loss}: the targets are text ({targets.y[0]!s:.40}), which has no order of its own; expected numbers, or "
            "bmrm.OrdinalClassifier, whose `classes` say the order"
        )
    return numbers(targets, loss)


def vectors(targets: Targets, loss: str) -> NDArray[np.float64]:
    """The targets as a new contiguous float64 array (rows, targets per row); InputError where one is not finite."""
    y = targets.y
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "fiub" or y.ndim not in (1, 2):
        kind = "text" if isinstance(y, np.ndarray) and y.dtype.kind in "US" else "no numbers"
        raise InputError(f"{loss}: the targets are {kind}, expected the same number of numbers per row")
    values = np.array(y if y.ndim == 2 else y[:, None], np.float64, order="C")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        row, column = bad[0]
        raise InputError(f"{loss}: target {column} of row {row} is {values[row, column]}, expected a finite number")
    return values


def label_sets(targets: Targets, loss: str) -> LabelSets:
    """The sets of labels; InputError where the targets are something else."""
    y: Any = targets.y
    if isinstance(y, LabelSets):
        return y
    if isinstance(y, np.ndarray) and y.ndim == 2:
        try:
            return replace(LabelSets.from_matrix(y), dtype=targets.dtype)
        except InputError as error:
            raise InputError(f"{loss}: {error}") from error
    shape = getattr(y, "shape", None)
    raise InputError(f"{loss}: expected a set of labels per row, found {type(y).__name__} of shape {shape}")


def listed(labels: Sequence[float | str], dtype: str = "") -> str:
    """The first few labels for a message: `1, 2, 3, ...`; `dtype` is their type."""
    shown = ", ".join(
        f"{label:g}" if isinstance(label, float) and not dtype else shown_label(label, dtype)
        for label in labels[:SHOWN]
    )
    return shown + (", ..." if len(labels) > SHOWN else "")


def _flat_labels(targets: Targets, loss: str) -> NDArray[Any]:
    """The labels as float64, int64 or strings, (rows,)."""
    y = targets.y
    if not isinstance(y, np.ndarray) or y.ndim != 1:
        shape = getattr(y, "shape", None)
        raise InputError(f"{loss}: expected one label per row, found {type(y).__name__} of shape {shape}")
    if y.dtype.kind == "O":
        y = np.array(y.tolist())
        if y.ndim != 1:
            raise InputError(f"{loss}: expected one label per row, found sequences")
    if y.dtype.kind == "U":
        return y
    if y.dtype.kind not in "fiub":
        raise InputError(f"{loss}: labels of type {y.dtype}, expected numbers or text")
    if y.dtype.kind in "ib" or is_whole(targets.dtype):
        return y.astype(np.int64)
    y = y.astype(np.float64)
    bad = (~np.isfinite(y)).nonzero()[0]
    if bad.size:
        raise InputError(f"{loss}: the label of row {bad[0]} is {y[bad[0]]}, expected a finite number or text")
    return y


def _present(array: NDArray[Any], targets: Targets) -> NDArray[Any]:
    """The entries of rows whose weight is not 0."""
    return array if targets.weights is None else array[np.asarray(targets.weights) != 0.0]
