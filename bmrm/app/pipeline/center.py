"""A center of the weights, of numbers or of a model file: what it is for these rows, and the scores that it gives.

With w = c + v a regularizer of w - c is one of v, and the scores of c are an offset: solvers see v and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.model import Model, load_model
from bmrm.app.model_file import ROW_SCALES
from bmrm.data.dataset import Dataset
from bmrm.data.label_types import restored
from bmrm.data.layout import Layout, shown_names
from bmrm.kernels.workers import Workers
from bmrm.mpi.group import Group, together
from bmrm.problem import IncompatibleError, InputError, Regularizer, Summary, facts_of, provides
from bmrm.problem.loss import HasParameters, completed
from bmrm.problem.regularizer import Centred, FeatureColumns
from bmrm.risk.linear_map import DataMap
from bmrm.risk.offset import fitting
from bmrm.risk.products import Columns

Array = NDArray[np.float64]
OPTION = "regularizer.center"


@dataclass(frozen=True, eq=False)
class Center:
    """The center of all weights, for features as they were read.

    Attributes
    ----------
    table : (features, scores).
    intercept : (scores,), the center of a constant feature; None where only weights are given.
    said : what of a model file has no counterpart here; empty where all has.
    """

    table: Array
    intercept: Array | None = None
    said: str = ""

    def column(self, k: int) -> Center:
        """That of one score."""
        intercept = None if self.intercept is None else self.intercept[k : k + 1]
        return Center(np.ascontiguousarray(self.table[:, k : k + 1]), intercept, self.said if k == 0 else "")

    def scaled(self, columns: Columns, constant: bool) -> Array:
        """For the inputs of a solver, (inputs, scores).

        Parameters
        ----------
        columns : of the inputs, from features as they were read.
        constant : whether a constant feature follows them.
        """
        known = np.zeros(self.table.shape[1]) if self.intercept is None else self.intercept
        table, intercept = columns.scaled_weights(self.table, known)
        if self.intercept is None:
            intercept = known
        return np.concatenate((table, intercept[None])) if constant else np.array(table)


def plain(regularizer: Any) -> Any:
    """The regularizer without its center, if it has one."""
    return regularizer.without_center() if has_center(regularizer) else regularizer


def has_center(regularizer: Any) -> bool:
    """Whether it has one that is not 0."""
    return provides(regularizer, Centred) and regularizer.center is not None


def path_of(regularizer: Any) -> str | None:
    """The model file that is its center; None where there is none."""
    found = regularizer.center if has_center(regularizer) else None
    return found if isinstance(found, str) else None


def names_of(data: Dataset) -> tuple[str, ...] | None:
    """The names of the features; None where they have none."""
    return _names_in(data.feature_names, data.layout)


def _names_in(names: tuple[str, ...] | None, layout: Layout | None) -> tuple[str, ...] | None:
    text = None if layout is None else layout.text
    return tuple(text.vocabulary.names) or None if names is None and text is not None else names


def resolved(
    regularizer: Any, data: Dataset, loss: Any, summary: Summary, scale: str, group: Group, scores: int | None = None
) -> Center | None:
    """Collective: the center of this problem, on all ranks; None where there is none.

    Parameters
    ----------
    regularizer : as it was asked for.
    data : this rank's rows.
    loss : of the problem.
    summary : of the targets of all ranks, in the order of the scores.
    scale : as of configs.
    group : the ranks.
    scores : of a row; None for those of the loss.

    Raises
    ------
    InputError
        A file that is no model, or whose features, scores or labels are others; numbers for other features or scores.
    IncompatibleError
        For a loss that learns more than weights.
    """
    if not has_center(regularizer):
        return None
    found = None
    with together(group):
        width = _scores_of(loss, data, summary) if scores is None else scores
        if group.rank == 0:
            columns = FeatureColumns(data.features, names_of(data))
            path = path_of(regularizer)
            if path is None:
                found = Center(regularizer.center_of(columns, width))
            else:
                labels = restored(summary.labels, summary.dtype if summary.form in ("", "sets") else "int64")
                found = _of_model(load_model(path), path, columns, width, labels.tolist(), scale)
    table = group.broadcast_array(None if found is None else found.table)
    known, said = group.broadcast(None if found is None else (found.intercept is not None, found.said))
    if not known:
        return Center(table, None, said)
    return Center(table, group.broadcast_array(None if found is None else found.intercept), said)


def _scores_of(loss: Any, data: Dataset, summary: Summary) -> int:
    """How many a row has."""
    facts = facts_of(loss)
    prepared = None if loss.decomposes == "no" else completed(loss.prepare(data.targets, summary))
    own = loss.extra_parameters(len(summary.labels)) if provides(loss, HasParameters) else 0
    if own or (prepared is not None and prepared.extra_dim):
        raise IncompatibleError(
            f"{OPTION}: a center is for losses of scores alone, and {facts.title} learns more than weights; "
            "leave it out"
        )
    return 1 if prepared is None else prepared.scores_per_row


def _of_model(model: Model, path: str, columns: FeatureColumns, scores: int, labels: list[Any], scale: str) -> Center:
    """The weights of a model for these features and scores."""
    title = f"{OPTION}: {path}"
    if model.features is not None:
        raise InputError(f"{title} has weights of features that a map makes, expected those of the columns of the data")
    row_scale = scale if scale in ROW_SCALES else "none"
    if model.row_scale != row_scale:
        raise InputError(f"{title} is of rows with scale {model.row_scale}, these have {row_scale}; expected the same")
    table = model.weights.reshape(len(model.weights), -1)
    rows, said = _places(_names_in(model.feature_names, model.layout), columns, len(table), title)
    scored, more = _score_places(model.labels.tolist(), labels, table.shape[1], scores, title)
    there = np.zeros((len(rows), len(scored)))
    known_rows, known_scores = np.flatnonzero(rows >= 0), np.flatnonzero(scored >= 0)
    there[np.ix_(known_rows, known_scores)] = table[np.ix_(rows[known_rows], scored[known_scores])]
    intercept = np.zeros(len(scored))
    intercept[known_scores] = model.intercept[scored[known_scores]]
    return Center(there, intercept, "; ".join(filter(None, (said, more))))


Places = NDArray[np.int64]
"""For each feature, or score, of the problem its number in the model; -1 where it is not there."""


def _places(theirs: tuple[str, ...] | None, ours: FeatureColumns, count: int, title: str) -> tuple[Places, str]:
    if theirs is None or ours.names is None:
        if count != ours.count:
            raise InputError(
                f"{title} has {count} features, the data have {ours.count}; expected as many, or names in both"
            )
        return np.arange(count), ""
    place = {name: k for k, name in enumerate(theirs)}
    found = np.array([place.get(name, -1) for name in ours.names], np.int64)
    missing = [name for name in ours.names if name not in place]
    if len(missing) == ours.count:
        raise InputError(f"{title} has none of the {shown_names(ours.names, 'feature')}, expected some of them")
    here = set(ours.names)
    unused = [name for name in theirs if name not in here]
    said = [f"has no {shown_names(missing, 'feature')}, whose center is 0"] if missing else []
    said += [f"has {shown_names(unused, 'feature')}, which the data have not"] if unused else []
    return found, f"{title} {' and '.join(said)}" if said else ""


def _score_places(theirs: list[Any], ours: list[Any], count: int, scores: int, title: str) -> tuple[Places, str]:
    if count > 1 and scores > 1 and len(theirs) == count and len(ours) == scores:
        place = {label: k for k, label in enumerate(theirs)}
        missing = [str(label) for label in ours if label not in place]
        if len(missing) == len(ours):
            raise InputError(f"{title} has the labels {theirs!s:.60}, the data {ours!s:.60}; expected some in common")
        said = f"{title} has no {shown_names(missing, 'label')}, whose center is 0" if missing else ""
        return np.array([place.get(label, -1) for label in ours], np.int64), said
    if count != scores:
        raise InputError(f"{title} has {count} scores for a row, the problem has {scores}; expected as many")
    if theirs and ours and theirs != ours:
        raise InputError(f"{title} has the labels {theirs!s:.60}, the data {ours!s:.60}; expected the same")
    return np.arange(scores), ""


def with_scores_of(
    rows: Dataset, center: Array, columns: Columns, constant: bool, loss: Any, threads: int | None
) -> Dataset:
    """The rows of one rank, with the scores of the center in their offset.

    Parameters
    ----------
    rows : as the risk gets them.
    center : (inputs, scores), as of `Center.scaled`.
    columns : what the risk does to the columns of `rows`.
    constant : whether a constant feature follows them.
    loss : of the problem.
    threads : at most so many.
    """
    width = center.shape[1]
    map = DataMap(rows.X, scores_per_row=width, columns=columns, bias=constant, workers=Workers(threads))
    scores, offset = map.matvec(np.ascontiguousarray(center).ravel()), rows.targets.offset
    total = scores if offset is None else scores + fitting(offset, width, facts_of(loss))
    return replace(rows, targets=replace(rows.targets, offset=total))


def check_file(regularizer: Regularizer) -> None:
    """InputError where its center is a file that is no model; before rows are read.

    Parameters
    ----------
    regularizer : as it was asked for.
    """
    path = path_of(regularizer)
    if path is not None:
        load_model(path)
