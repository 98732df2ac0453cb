"""A loss of one score for each of several columns of targets: as many problems, whose scores make one model.

The columns are the classes of one label a row (each against the rest), the labels of rows that have several, or the
outputs of a regression. What is minimised of each column is the loss itself; these classes say how targets become
columns, and how the scores of all columns become one prediction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array
from bmrm.losses.multilabel_hinge import MultilabelHinge
from bmrm.problem import InputError, LossFacts, Summary, Targets, facts_of, provides
from bmrm.problem.loss import HasProbabilities

Labels = Sequence[float | str]
BOTH = (0.0, 1.0)
"""Labels of a column of two classes: of which rows have the label, and which do not, there may be none."""


@dataclass(frozen=True)
class PerColumn(ABC):
    """A loss of one score, for each column of targets by itself.

    Parameters
    ----------
    loss : of a column.
    """

    loss: Any

    kind: ClassVar[str] = ""
    """Name in configs and model files."""
    task: ClassVar[str] = ""
    metrics: ClassVar[tuple[str, ...]] = ()
    of: ClassVar[str] = ""
    """The task of the loss."""
    what: ClassVar[str] = ""
    """What a column is of."""

    def __post_init__(self) -> None:
        if self._facts.task != self.of:
            kind = {"binary": "two classes", "regression": "regression"}[self.of]
            raise InputError(f"{self._facts.title}: {self.kind} is for losses of {kind}")

    @property
    def _facts(self) -> LossFacts:
        return facts_of(self.loss)

    name: ClassVar[str] = ""
    """None is registered."""

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self._facts.title} ({self.kind})"

    @property
    def decomposes(self) -> str:
        """As of the loss."""
        return self._facts.decomposes

    @property
    def weighted(self) -> bool:
        """As of the loss."""
        return self._facts.weighted

    @property
    def no_free_intercept(self) -> str:
        """As of the loss."""
        return self._facts.no_free_intercept

    @property
    def instead_of_intercept(self) -> str:
        """As of the loss."""
        return self._facts.instead_of_intercept

    def columns(self, targets: Targets, summary: Summary) -> Iterator[Targets]:
        """The targets of each column, for the loss.

        Parameters
        ----------
        targets : of the rows of this rank.
        summary : of all rows.
        """
        for k, y in enumerate(self._tables(targets, summary)):
            offset = targets.offset if targets.offset is None or targets.offset.ndim == 1 else targets.offset[:, k]
            classes = BOTH if self.of == "binary" else ()
            yield replace(targets, y=y, dtype="", classes=classes, offset=offset)

    @abstractmethod
    def _tables(self, targets: Targets, summary: Summary) -> Iterator[NDArray[np.float64]]:
        """The targets of each column, (rows,)."""

    def _each(self, f: Array) -> NDArray[Any]:
        """What the loss predicts of each column, (rows, columns): of two classes whether it is the second."""
        labels: Sequence[Any] = [False, True] if self.of == "binary" else []
        return np.stack([self.loss.predict(np.ascontiguousarray(column), labels) for column in f.T], axis=1)


class OneVsRest(PerColumn):
    """A label a row: each class against all others; the class of the largest score is predicted."""

    kind = "one_vs_rest"
    task = "multiclass"
    metrics = ("accuracy", "macro_f1")
    of = "binary"
    what = "class"

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        return domain.summary_of_labels(targets, self.title)

    def _tables(self, targets: Targets, summary: Summary) -> Iterator[NDArray[np.float64]]:
        place = domain.label_positions(targets, summary.labels, self.title)
        for k in range(len(summary.labels)):
            yield (place == k).astype(np.float64)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The label of the largest score, (rows,).

        Parameters
        ----------
        f : (rows, labels).
        labels : in the order of scores.
        """
        chosen: NDArray[Any] = np.array(labels)[np.argmax(f, axis=1)]
        return chosen


class LikelyOneVsRest(OneVsRest):
    """`OneVsRest` of a loss with probabilities."""

    def probabilities(self, f: Array) -> Array:
        """Those of each class against the rest, divided by their sum, (rows, labels).

        Parameters
        ----------
        f : (rows, labels).
        """
        each = _second(self.loss, f)
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, each / np.where(total > 0.0, total, 1.0), 1.0 / each.shape[1])


class EachLabel(PerColumn):
    """A set of labels a row: a problem for each label, whether a row has it."""

    kind = "each"
    task = "multilabel"
    metrics = ("label_average_precision", "macro_f1", "micro_f1")
    of = "binary"
    what = "label"

    def summarise(self, targets: Targets) -> Summary:
        """The labels of these rows and how many have each.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        return MultilabelHinge().summarise(targets)

    def measured(self, targets: Targets, labels: Labels, part: str) -> Array:
        """1.0 where a row has a label, (rows, labels).

        Parameters
        ----------
        targets : of the rows of this rank.
        labels : of the model.
        part : what the rows are, for messages.
        """
        return MultilabelHinge().measured(targets, labels, part)

    def _tables(self, targets: Targets, summary: Summary) -> Iterator[NDArray[np.float64]]:
        table = self.measured(targets, summary.labels, "")
        for k in range(len(summary.labels)):
            yield np.ascontiguousarray(table[:, k])

    def predict(self, f: Array, labels: Labels) -> NDArray[np.bool_]:
        """Whether each row has each label, (rows, labels).

        Parameters
        ----------
        f : (rows, labels).
        labels : in the order of scores.
        """
        return self._each(f).astype(np.bool_)


class LikelyEachLabel(EachLabel):
    """`EachLabel` of a loss with probabilities."""

    def probabilities(self, f: Array) -> Array:
        """That each row has each label, (rows, labels).

        Parameters
        ----------
        f : (rows, labels).
        """
        return _second(self.loss, f)


def _second(loss: Any, f: Array) -> Array:
    """The probability of the second label by each column of scores, (rows, columns)."""
    return np.stack([loss.probabilities(np.ascontiguousarray(column))[:, 1] for column in f.T], axis=1)


class EachOutput(PerColumn):
    """Several numbers a row: a regression for each."""

    kind = "outputs"
    task = "multivariate"
    metrics = ("r2", "mse", "mae")
    of = "regression"
    what = "output"

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows, their weight, and the outputs of each.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        summary = domain.summary_of_rows(targets, self.title)
        outputs = domain.vectors(targets, self.title).shape[1] if targets.rows else 0
        return replace(summary, outputs=outputs)

    def _tables(self, targets: Targets, summary: Summary) -> Iterator[NDArray[np.float64]]:
        table = domain.vectors(targets, self.title) if targets.rows else np.zeros((0, summary.outputs))
        if table.shape[1] != summary.outputs:
            raise InputError(f"{self.title}: {table.shape[1]} targets per row, expected {summary.outputs}")
        for k in range(summary.outputs):
            yield np.ascontiguousarray(table[:, k])

    def predict(self, f: Array, labels: Labels) -> Array:
        """What the loss predicts of each output, (rows, outputs).

        Parameters
        ----------
        f : (rows, outputs).
        labels : none.
        """
        return self._each(f).astype(np.float64)


KINDS: Mapping[str, type[PerColumn]] = {cls.kind: cls for cls in (OneVsRest, EachLabel, EachOutput)}
"""By their names in model files."""
LIKELY: Mapping[str, type[PerColumn]] = {cls.kind: cls for cls in (LikelyOneVsRest, LikelyEachLabel)}
"""Likewise, where the loss has probabilities."""


def per_column(kind: str, loss: Any) -> PerColumn:
    """The loss for each column of targets.

    Parameters
    ----------
    kind : one of `KINDS`.
    loss : of a column.

    Raises
    ------
    InputError
        For a loss of another task.
    """
    likely = LIKELY if provides(loss, HasProbabilities) else {}
    return likely.get(kind, KINDS[kind])(loss)
