"""Probabilities for a trained model: curves are fitted to scores of rows that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bmrm.app.calibration.asked import FOLDS, Calibrate, refuse_without_classes
from bmrm.app.calibration.curves import Calibration
from bmrm.app.model import Model
from bmrm.app.pipeline.judge import judged
from bmrm.app.pipeline.several import solve_any
from bmrm.app.pipeline.solve import Problem
from bmrm.data.dataset import Dataset
from bmrm.data.digest import digests
from bmrm.data.label_types import shown_label
from bmrm.mpi.dealing import gather_targets
from bmrm.mpi.group import Group, together
from bmrm.problem import InputError, Status, Targets

if TYPE_CHECKING:
    from bmrm.metrics import ScoredRows

USELESS = Status.NON_FINITE, Status.NOT_CONVEX, Status.INTERRUPTED
"""Ends of a run whose weights say nothing of what others would be."""


PART = "the rows of calibrate"


@dataclass(frozen=True)
class Calibrating:
    """A calibration that is prepared before the model is trained.

    Attributes
    ----------
    asked : for what.
    train : this rank's rows; `data.scale: unit_norm` has been applied to them.
    fold : of each of them, (rows,); None where the validation rows are used.
    validation : likewise, or None.
    group : the ranks.
    """

    asked: Calibrate
    train: Dataset
    fold: NDArray[np.int64] | None
    validation: Dataset | None
    group: Group

    @classmethod
    def prepared(
        cls, asked: Calibrate, train: Dataset, validation: Dataset | None, problem: Problem, group: Group
    ) -> Calibrating:
        """Collective: decide on the rows, as they were read.

        Raises
        ------
        IncompatibleError
            For a loss without classes.
        InputError
            For folds of which some would lack a class.
        """
        with together(group):
            refuse_without_classes(problem.loss)
        if asked.folds is None and validation is not None:
            return cls(asked, train, None, validation, group)
        return cls(asked, train, folds_of(train, asked.folds or FOLDS, group, problem.shares), None, group)

    def of_features(self, parts: Mapping[str, Dataset]) -> Calibrating:
        """The same rows with other features; those of a map are rounded otherwise on other ranks."""
        return replace(self, train=parts["train"], validation=None if self.validation is None else parts["validation"])

    def of(self, model: Model | None, problem: Problem) -> Model | None:
        """Collective: the model with its curves, on rank 0.

        Models for folds start from 0: one that started from the model of all rows would know those left out.
        """
        group = self.group
        if group.broadcast(model is None or model.solution.status in USELESS):
            return model
        if self.fold is None:
            assert self.validation is not None
            known = judged(model, problem, self.validation, group, PART)
            return _with_curves(model, self.asked.method, [known], "validation")
        if problem.relative is not None:  # the same lambda as that of all rows
            lam = group.broadcast(None if model is None else model.header["regularizer"]["lambda"])
            problem = replace(problem, regularizer=replace(problem.regularizer, lam=lam), relative=None)  # type: ignore[type-var]
        problem, count = replace(problem, follow=None), self.asked.folds or FOLDS
        parts: list[ScoredRows | None] = []
        for k in range(count):
            rows = self.train.select(np.flatnonzero(self.fold != k))
            fitted = solve_any(rows, problem, group)
            status = group.broadcast(None if fitted is None else fitted.solution.status.name)
            if Status[status] in USELESS:
                why = f"not calibrated: the training without fold {k + 1} of {count} ended {status}"
                return None if model is None else uncalibrated(model, why)
            held = self.train.select(np.flatnonzero(self.fold == k))
            parts.append(judged(fitted, problem, held, group, PART))
        return _with_curves(model, self.asked.method, parts, f"{count} folds")


def _with_curves(model: Model | None, method: str, parts: Sequence[ScoredRows | None], rows: str) -> Model | None:
    known = [part for part in parts if part is not None]
    if model is None or not known:
        return model
    scores, y = np.concatenate([part.scores for part in known]), np.concatenate([part.y for part in known])
    weights = [part.weights for part in known if part.weights is not None]
    mass = np.concatenate(weights) if weights else None
    found = Calibration.fitted(method, scores, y.astype(np.int64), mass, len(model.labels), rows)
    return replace(model, calibration=found)


def uncalibrated(model: Model, why: str) -> Model:
    """The model, whose message says why it has no curves."""
    solution = model.solution
    return replace(model, _solution=replace(solution, message="; ".join(filter(None, (solution.message, why)))))


def folds_of(data: Dataset, count: int, group: Group, shares: bool = False) -> NDArray[np.int64]:
    """Collective: the fold of each row of this rank, by class in turn; rows are ordered by their content.

    So folds do not depend on the order of rows and on how ranks share them. The rows that stand for the shares of one
    are in one fold.

    Raises
    ------
    InputError
        For a class with one row, which some fold would be trained without.
    """
    counts = group.broadcast(group.gather(data.rows))
    targets = gather_targets(data.targets, group)
    content = group.gather_array(digests(_without_targets(data) if shares else data).view(np.int64))
    folds: NDArray[np.float64] | None = None
    with together(group):
        if targets is not None and content is not None:
            folds = _turns(content) if shares else _turns_by_label(content, targets, count)
            folds %= count
    before = sum(counts[: group.rank])
    return group.broadcast_array(folds)[before : before + data.rows].astype(np.int64)


def _without_targets(data: Dataset) -> Dataset:
    return replace(data, targets=replace(data.targets, y=np.zeros(data.rows), weights=None))


def _turns(content: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rows of one content in one turn."""
    return np.unique(content, return_inverse=True)[1].astype(np.float64)


def _turns_by_label(content: NDArray[np.int64], targets: Targets, count: int) -> NDArray[np.float64]:
    """The place of each row among those of its label."""
    labels, place, sizes = np.unique(targets.y, return_inverse=True, return_counts=True)
    lone = np.flatnonzero(sizes < 2)
    if lone.size:
        label = shown_label(labels[lone[0]].item(), targets.dtype)
        raise InputError(f"calibrate: the label {label} has one row, expected two or more for {count} folds")
    order = np.lexsort((content, place))
    turns = np.empty(len(order))
    turns[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return turns
