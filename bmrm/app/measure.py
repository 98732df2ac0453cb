"""Measures of a model on rows of many ranks: each scores its own rows, rank 0 evaluates the measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.calibration.asked import TASKS
from bmrm.data.dataset import Dataset, refuse_weightless
from bmrm.data.label_types import is_whole, shown_label
from bmrm.data.labels import LabelSets
from bmrm.kernels.workers import Workers
from bmrm.losses import LOSSES
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError, Targets, facts_of, provides
from bmrm.problem.loss import HasMeasured, HasProbabilities
from bmrm.risk.linear_map import DataMap
from bmrm.risk.offset import fitting

if TYPE_CHECKING:
    from bmrm.app.calibration.curves import Calibration
    from bmrm.metrics import ScoredRows

Labels = Sequence[float | str]


def check_labelled(loss: Any, data: Dataset, part: str) -> None:
    """Raise InputError for rows without the labels or numbers that the loss needs."""
    if not data.labelled and data.rows and facts_of(loss).needs_targets:
        name = facts_of(loss).title
        raise InputError(f"{part}: no labels (y), expected {name_of_targets(loss)} per row for {name}")


def name_of_targets(loss: Any) -> str:
    """What a loss needs for each row, for messages."""
    return {"regression": "a number", "multilabel": "a set of labels"}.get(facts_of(loss).task, "a label")


def codes(targets: Targets, labels: Labels, part: str) -> NDArray[np.float64]:
    """Position of each row's label in `labels`; one more than the last for a label that is not there.

    With two labels another one is refused, as most likely a mistake (1 and 2 for -1 and 1).
    """
    y = targets.y
    if isinstance(y, LabelSets) or y.ndim != 1:
        raise InputError(f"{part}: expected one label per row")
    known: NDArray[Any] = np.array(labels)
    if is_whole(targets.dtype):
        y = y.astype(np.int64)
    if len(y) and (known.dtype.kind == "U") != (y.dtype.kind == "U"):
        label = shown_label(y[0].item(), targets.dtype)
        raise InputError(f"{part}: the label {label} is not among those of the model, {_listed(labels)}")
    order = np.argsort(known)
    found = order[np.minimum(np.searchsorted(known, y, sorter=order), len(known) - 1)]
    strange = known[found] != y if len(y) else np.zeros(0, bool)
    if len(known) == 2 and strange.any():
        label = shown_label(y[strange][0].item(), targets.dtype)
        raise InputError(f"{part}: the label {label} is not among those of the model, {_listed(labels)}")
    return np.where(strange, len(known), found).astype(np.float64)


def _listed(labels: Labels) -> str:
    return ", ".join(repr(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")


def prepared_targets(loss: Any, targets: Targets, labels: Labels, part: str) -> NDArray[np.float64]:
    """What measures compare predictions with, one or several numbers per row; InputError for unsuitable targets.

    A loss may define them by `loss.measured(targets, labels, part)`; otherwise they are the codes of labels, or the
    numbers if the task has no labels.
    """
    if provides(loss, HasMeasured):
        return loss.measured(targets, labels, part)
    if len(labels):
        return codes(targets, labels, part)
    if isinstance(targets.y, LabelSets) or targets.y.dtype.kind == "U":
        raise InputError(f"{part}: the targets are no numbers, which this loss is for")
    return np.asarray(targets.y, np.float64)


def scores_of(
    data: Dataset, weights: NDArray[np.float64], intercept: NDArray[np.float64], threads: int | None = None
) -> NDArray[np.float64]:
    """`X weights + intercept + offset`, (rows,) or (rows, scores); weights are (features,) or (features, scores).

    By at most so many threads; None means the usable cores.
    """
    per_row = 1 if weights.ndim == 1 else weights.shape[1]
    scores = DataMap(data.X, scores_per_row=per_row, workers=Workers(threads)).matvec(weights.ravel())
    scores = scores + (intercept[0] if scores.ndim == 1 else intercept)
    offset = data.targets.offset
    return scores if offset is None else scores + fitting(offset, per_row)


def scored(
    scores: NDArray[np.float64],
    targets: Targets,
    loss: Any,
    labels: Labels,
    group: Group | None = None,
    *,
    arrays: Mapping[str, NDArray[Any]] | None = None,
    calibration: Calibration | None = None,
    part: str = "data",
) -> ScoredRows | None:
    """Collective: the rows of all ranks as measures take them; None but on rank 0.

    Parameters
    ----------
    scores, targets : of this rank's rows.
    labels : of the model, in score order; empty for tasks without.
    arrays : on rank 0, the learned arrays besides weights and intercept.
    calibration : on rank 0, that of the model.
    part : what the rows are, for messages.

    Raises
    ------
    InputError
        For unsuitable targets.
    """
    group = Alone() if group is None else group
    y, names = prepared_targets(loss, targets, labels, part), list(map(str, labels))
    if facts_of(loss).task == "sequence":
        y, more = _told_apart(y, targets, labels, group)
        names += more
    structure = targets.structure if facts_of(loss).by_structure else None
    beside = Targets(y, targets.weights, targets.groups, structure=structure)
    all_rows = gather_rows(Dataset(scores[:, None] if scores.ndim == 1 else scores, beside), group)
    with together(group):
        refuse_weightless(None if all_rows is None else all_rows.targets.weights, "" if part == "data" else part)
    if all_rows is None:
        return None
    from bmrm.metrics import ScoredRows

    given, table = all_rows.targets, np.asarray(all_rows.X)
    all_scores = table[:, 0] if scores.ndim == 1 else table
    all_y = given.y.astype(np.int64) if len(labels) and not provides(loss, HasMeasured) else given.y
    predicted = predictions(loss, all_scores, np.arange(len(labels)), arrays or {}, given.groups, given.structure)
    parameters = {field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)}
    probabilities = None if calibration is None else calibration.probabilities(all_scores)
    kept = given.weights, len(labels), parameters, given.groups, tuple(names), probabilities
    return ScoredRows(all_y, all_scores, predicted, *kept)


def names_of_measures(loss: Any, calibration: Calibration | None) -> tuple[str, ...]:
    """The measures of a model where none are named: those of the loss, and those of calibrated probabilities."""
    facts = facts_of(loss)
    if calibration is None:
        return facts.metrics
    more = ("log_loss", "brier") if facts.task == "binary" else ("log_loss",)
    return tuple(dict.fromkeys((*facts.metrics, *more)))


def without_probabilities(loss: Any) -> str:
    """What to say where a loss has no probabilities."""
    facts = facts_of(loss)
    have = ", ".join(entry.name for entry in LOSSES.all() if issubclass(entry.cls, HasProbabilities))
    other = "; calibrate gives some to any loss of classes" if facts.task in TASKS else ""
    return f"{facts.title} has no probabilities, expected one of {have}{other}"


def _told_apart(
    y: NDArray[np.float64], targets: Targets, labels: Labels, group: Group
) -> tuple[NDArray[np.float64], list[str]]:
    """Collective: the codes with a number of its own for each label that the model does not know, and their names.

    Chunks begin and end by the names of labels, those too.
    """
    strange = y == len(labels)
    mine = targets.y[strange]
    told: list[Any] = group.broadcast(group.gather(np.unique(mine).tolist()))
    unknown = sorted({label for some in told for label in some})
    y = y.copy()
    y[strange] = len(labels) + np.searchsorted(np.array(unknown), mine) if unknown else np.zeros(0)
    return y, list(map(str, unknown))


def check_metrics(names: Sequence[str] | None, loss: Any) -> None:
    """Raise one InputError for measures that are unknown or do not fit the loss; None is for those that it names."""
    if names is not None:
        from bmrm import metrics

        metrics.check_metrics(names, loss)


def predictions(
    loss: Any,
    scores: NDArray[np.float64],
    labels: Any,
    arrays: Mapping[str, NDArray[Any]],
    groups: NDArray[np.int64] | None,
    structure: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    """The predictions of the loss from scores and whatever else it needs."""
    facts = facts_of(loss)
    more = {"groups": groups} if facts.by_group else {}
    more |= {"structure": structure} if facts.by_structure else {}
    predicted: NDArray[Any] = loss.predict(scores, labels, **arrays, **more)
    return predicted
