"""Targets that are shares of labels: each row becomes one for every label that has a share, of that weight.

A negative log likelihood is linear in the targets: -(t log p + (1 - t) log(1 - p)) is that of a row of label 1 and
weight t and one of label 0 and weight 1 - t. So whatever serves rows with labels and weights serves shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.defaults import kinds_of
from bmrm.data.dataset import Dataset
from bmrm.data.label_types import is_whole
from bmrm.data.labels import LabelSets
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError, facts_of

Array = NDArray[np.float64]
ROUNDING = 1e-5
"""By how much the shares of a row may miss a sum of 1: they may have been float32."""


def are_shares(data: Dataset, loss: Any, group: Group | None = None) -> bool:
    """Collective: whether the targets of the rows of all ranks are shares of labels, not labels.

    For a loss with probabilities they are where each row has several numbers; for two classes also where there are more
    than two different numbers and some are not whole.

    Parameters
    ----------
    data : the rows of this rank.
    loss : the loss.
    group : the ranks; None for this process alone.
    """
    group, facts, found = Alone() if group is None else group, facts_of(loss), False
    if not facts.takes_shares:
        return False
    told = group.gather({} if group.size == 1 and _labels(data) else kinds_of(data))
    with together(group):
        if told is not None:
            found = any("shape" in one for one in told)
            if not found and facts.task == "binary" and any(one.get("floats") and not one["whole"] for one in told):
                found = len({value for one in told for value in one.get("values", ())}) > 2
    return bool(group.broadcast(found))


def _labels(data: Dataset) -> bool:
    """Whether the targets are labels by their type alone."""
    y = data.targets.y
    return isinstance(y, LabelSets) or (y.ndim == 1 and (y.dtype.kind != "f" or is_whole(data.targets.dtype)))


def rows_of_labels(data: Dataset, loss: Any, part: str = "") -> Dataset:
    """Rows with labels and weights for rows with shares: 0 and 1, or the columns of the targets from 0.

    Parameters
    ----------
    data : with targets (rows,) in [0, 1], or (rows, 2) successes and trials, for two classes; (rows, classes) for more.
    loss : the loss.
    part : what the rows are, for messages.

    Raises
    ------
    InputError
        Naming the row: a share outside [0, 1], more successes than trials, shares that do not sum to 1.
    """
    targets = data.targets
    said = f"{part}: " if part else ""
    if not data.labelled and data.rows:
        raise InputError(f"{said}no labels (y), expected shares")
    if isinstance(targets.y, LabelSets) or targets.y.dtype.kind not in "fiub":
        raise InputError(f"{said}the targets are no numbers, expected shares of labels")
    table = _table(np.asarray(targets.y, np.float64), facts_of(loss).task == "binary", data, said)
    rows, labels = np.nonzero(table)
    own = np.ones(data.rows) if targets.weights is None else np.asarray(targets.weights, np.float64)
    chosen = data.select(rows)
    classes = tuple(range(table.shape[1]))
    y = labels.astype(np.int64)
    found = replace(chosen.targets, y=y, weights=own[rows] * table[rows, labels], dtype="int64", classes=classes)
    return replace(chosen, targets=found)


def _table(y: Array, two: bool, data: Dataset, said: str) -> Array:
    """(rows, labels), the weight of each label in each row."""
    if two and y.ndim == 1:
        _refuse((y < 0.0) | (y > 1.0), y, data, said, "expected a share in [0, 1]")
        return np.stack((1.0 - y, y), axis=1)
    if y.ndim != 2:
        raise InputError(f"{said}y has shape {y.shape}, expected a share for each class, (rows, classes)")
    if two:
        if y.shape[1] != 2:
            raise InputError(f"{said}y has shape {y.shape}, expected shares (rows,), or successes and trials (rows, 2)")
        _refuse((y[:, 0] < 0.0) | (y[:, 0] > y[:, 1]), y, data, said, "expected 0 <= successes <= trials")
        return np.stack((y[:, 1] - y[:, 0], y[:, 0]), axis=1)
    wrong = (y < 0.0).any(axis=1) | (np.abs(y.sum(axis=1) - 1.0) > ROUNDING)
    _refuse(wrong, y, data, said, "expected shares >= 0 that sum to 1")
    return y


def _refuse(wrong: NDArray[np.bool_], y: Array, data: Dataset, said: str, expected: str) -> None:
    if data.targets.weights is not None:
        wrong = wrong & (np.asarray(data.targets.weights) != 0.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        shown = ", ".join(f"{value:.6g}" for value in np.atleast_1d(y[row])[:5])
        raise InputError(f"{said}{data.source_of(row)} has the targets {shown}, {expected}")


def parts_of_labels(parts: Mapping[str, Dataset], loss: Any, group: Group) -> dict[str, Dataset]:
    """Collective: `rows_of_labels` of every part."""
    found = {}
    for part, data in parts.items():
        with together(group):
            found[part] = rows_of_labels(data, loss, f"data.{part}")
    return found
