"""Link completion: each feature in turn is the target, and each row's most likely missing ones are kept.

Komarek, "Logistic regression for data mining and high-dimensional classification", 2004, `multilc`; Goldenberg,
Kubica, Komarek, Moore & Schneider, "A comparison of statistical and machine learning algorithms on the task of link
completion", 2003.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.asked import check_choices, regularizer_of, solver_of
from bmrm.app.defaults import default_bias
from bmrm.app.measure import scores_of
from bmrm.app.model import Model
from bmrm.app.pipeline.solve import Problem, lambda_of_rows, solve
from bmrm.app.progress import Told
from bmrm.data.dataset import Dataset
from bmrm.data.layout import aligned
from bmrm.data.matrix import Csr, with_columns
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError, Loss, Regularizer, Solver, Targets, Vector, facts_of
from bmrm.registry import Range, checked_value

NOTHING = -1
"""In place of a feature where a row has no more candidates."""


@dataclass(frozen=True, eq=False)
class Completion:
    """What is likely missing in each row.

    Attributes
    ----------
    features : (rows, top) numbers of features, the likeliest first; -1 where there are no more.
    values : (rows, top) their probabilities, or scores where the loss has no probabilities; nan beside -1.
    trained : features that were targets.
    constant : features that all training rows have, or none, so that nothing is learned of them.
    converged : of those trained, how many reached the tolerance.
    probabilities : whether `values` are probabilities.
    names : of the features; None where they have none.
    """

    features: NDArray[np.int64]
    values: NDArray[np.float64]
    trained: int
    constant: int
    converged: int
    probabilities: bool
    names: tuple[str, ...] | None = None

    def row(self, number: int) -> list[tuple[Any, float]]:
        """The candidates of a row: (name or number, value), the likeliest first.

        Parameters
        ----------
        number : of the row, from 0.
        """
        found = zip(self.features[number].tolist(), self.values[number].tolist())
        return [(k if self.names is None else self.names[k], value) for k, value in found if k != NOTHING]


def complete(
    X: Any,
    new: Any,
    *,
    top: int = 10,
    loss: str | Mapping[str, Any] | Loss = "logistic",
    regularizer: str | Mapping[str, Any] | Regularizer | None = None,
    lam: float | None = None,
    solver: str | Mapping[str, Any] | Solver = "auto",
    tolerance: float | None = None,
    max_iterations: int | None = None,
    seed: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    bias: str | None = None,
    threads: int | None = None,
    progress: Told | None = None,
) -> Completion:
    """Rank, for each new row, the features that it lacks by how likely they belong to it.

    A row is the set of its features that are not 0, such as the words of a text or the people of a meeting. For each
    feature a model is trained whose target is whether a row has it, and which sees the other features alone.

    Parameters
    ----------
    X : (rows, features), complete rows: array, scipy.sparse matrix, data frame or `Dataset`, whose targets are ignored.
    new : (rows, features), the rows to be completed.
    top : features that are kept for each of these.
    loss : a loss of two classes; `logistic` gives probabilities.
    regularizer, lam : those of `bmrm.fit`.
    solver, tolerance, max_iterations, seed, solver_options : those of `bmrm.fit`, of each training.
    bias : "free", "regularized" or "none"; None for what the loss has.
    threads : largest number of threads; None for the usable cores.
    progress : called after each training with how many there were, and how many there are.

    Returns
    -------
    Completion
        `row(i)` lists what row i most likely lacks.

    Raises
    ------
    InputError
        For rows of other features, and other options.
    """
    check_choices(bias=bias)
    threads = checked_value("threads", threads, (int, NoneType), Range(least=1))
    top = checked_value("top", top, (int,), Range(least=1))
    given = solver_of(solver, {"tolerance": tolerance, "max_iterations": max_iterations}, seed, solver_options)
    made: Any = LOSSES.instance(loss)
    train = X if isinstance(X, Dataset) else Dataset.from_arrays(X)
    rows = new if isinstance(new, Dataset) else Dataset.from_arrays(new)
    problem = Problem(
        loss=made,
        regularizer=regularizer_of(train, regularizer, lam)[0],
        solver=given,
        bias=default_bias(made) if bias is None else bias,
        threads=threads,
    )
    found = completed(train, rows, problem, top, Alone(), progress)
    assert found is not None
    return found


def completed(
    train: Dataset, new: Dataset, problem: Problem, top: int, group: Group, told: Told | None = None
) -> Completion | None:
    """Collective: what is likely missing, on rank 0; each rank has all rows, and trains for some of the features.

    Parameters
    ----------
    train, new : all rows, on every rank.
    problem : of two classes; the solver is that of every rank.
    top : features that are kept for each row.
    group : the ranks.
    told : hears of progress, on rank 0, of its own share.

    Raises
    ------
    InputError
        For a loss of another task, rows of other features, rows without any feature that some have and some have not.
    """
    kept, counts = Kept.of(new.rows, top), np.zeros(3)
    has_probabilities = False
    with together(group):
        task = facts_of(problem.loss).task
        if task != "binary":
            raise InputError(f"a feature is there or not: expected a loss of two classes, not {problem.loss.title}")
        rows = _like(train, new)
        problem = replace(_with_lambda(problem, train), threads=problem.threads or group.cores_per_rank)
        links = Links(train)
        wanted = links.learnable[group.rank :: group.size]
        counts[1] = len(links.learnable) if group.rank == 0 else 0
        for done, k in enumerate(wanted.tolist(), 1):
            model = solve(links.without(k), problem, Alone())
            assert model is not None
            has_probabilities, found = _values(model, rows, problem)
            kept.offer(k, np.where(_has(rows, k), -np.inf, found))
            counts[0] += model.solution.converged
            if told is not None and group.rank == 0:
                told(done, len(wanted))
    converged, learnable, _ = group.sum(counts)
    probabilities = group.max(np.array([float(has_probabilities)]))[0] > 0.0
    features, values = group.gather_array(kept.features), group.gather_array(kept.values)
    if features is None or values is None:
        return None
    shape = (group.size, new.rows, top)
    beside = (np.concatenate(part.reshape(shape), axis=1) for part in (features, values))
    whole = Kept(*beside).first(top)
    return Completion(
        whole.features,
        np.where(whole.features == NOTHING, np.nan, whole.values),
        int(learnable),
        train.features - int(learnable),
        int(converged),
        bool(probabilities),
        train.feature_names,
    )


def _with_lambda(problem: Problem, train: Dataset) -> Problem:
    """The lambda of the training rows, once for all features."""
    if problem.relative is None:
        return problem
    lam = lambda_of_rows(problem, train, Alone())
    return replace(problem, relative=None, regularizer=replace(problem.regularizer, lam=lam))  # type: ignore[type-var]


def _like(train: Dataset, new: Dataset) -> Dataset:
    """The new rows with the features of the others; InputError for more of them."""
    X = aligned(new.X, new.feature_names, train.feature_names, "the rows to be completed")
    if X.shape[1] > train.features:
        raise InputError(f"the rows to be completed have {X.shape[1]} features, expected at most {train.features}")
    return replace(new, X=with_columns(X, train.features))


class Links:
    """Training rows, one copy of them, in which the entries of one feature at a time are 0."""

    def __init__(self, train: Dataset) -> None:
        own = train.X.own if isinstance(train.X, Csr) else None
        self._data = train
        if own is None:
            self._table: NDArray[Any] = np.array(train.X)
            self._sparse = None
            present = (self._table != 0.0).sum(axis=0)
        else:
            values = np.ones(len(own.indices)) if own.values is None else own.values.copy()
            self._sparse = Csr(own.indptr, own.indices, values, own.columns)
            self._order = np.argsort(own.indices, kind="stable")
            self._ends = np.concatenate([[0], np.cumsum(np.bincount(own.indices, minlength=own.columns))])
            self._row = np.repeat(np.arange(train.rows), np.diff(own.indptr))
            present = np.bincount(own.indices[values != 0.0], minlength=own.columns)
        self.learnable = np.flatnonzero((present > 0) & (present < train.rows))
        """Features that some rows have and some have not."""
        if not self.learnable.size:
            raise InputError("no feature that some of the training rows have and some have not: nothing can be learned")
        self._last: tuple[Any, NDArray[Any]] | None = None

    def without(self, k: int) -> Dataset:
        """The rows without feature k, and whether they have it as targets; those of the call before are gone."""
        stored: NDArray[Any]
        if self._sparse is None:
            stored, place = self._table, (slice(None), k)
        else:
            assert self._sparse.values is not None
            stored, place = self._sparse.values, self._order[self._ends[k] : self._ends[k + 1]]  # type: ignore[assignment]
        if self._last is not None:
            stored[self._last[0]] = self._last[1]
        self._last = place, np.array(stored[place])
        y = np.zeros(self._data.rows)
        if self._sparse is None:
            y[self._last[1] != 0.0] = 1.0
        else:
            y[self._row[place][self._last[1] != 0.0]] = 1.0  # type: ignore[index]
        stored[place] = 0.0
        targets = Targets(y, self._data.targets.weights, dtype="int64")
        return replace(
            self._data, X=self._table if self._sparse is None else self._sparse, targets=targets, labelled=True
        )


def _has(rows: Dataset, k: int) -> NDArray[np.bool_]:
    """Which rows have feature k."""
    X = rows.X
    if not isinstance(X, Csr):
        found: NDArray[np.bool_] = np.asarray(X[:, k] != 0.0)
        return found
    own = X.own
    hit = np.flatnonzero(own.indices == k)
    if own.values is not None:
        hit = hit[own.values[hit] != 0.0]
    found = np.zeros(rows.rows, np.bool_)
    found[np.searchsorted(own.indptr, hit, side="right") - 1] = True
    return found


def _values(model: Model, rows: Dataset, problem: Problem) -> tuple[bool, Vector]:
    """Whether there are probabilities, and these, or scores, of each row."""
    scores = scores_of(rows, model.weights, model.intercept, problem.threads or 1)
    try:
        return True, model.probabilities_of_scores(scores)[:, -1]
    except InputError:
        return False, scores


@dataclass(frozen=True, eq=False)
class Kept:
    """The best candidates of each row so far.

    Attributes
    ----------
    features, values : (rows, top); NOTHING and -inf where there are fewer.
    """

    features: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, rows: int, top: int) -> Kept:
        """No candidates yet."""
        return cls(np.full((rows, top), NOTHING, np.int64), np.full((rows, top), -np.inf))

    def offer(self, feature: int, values: Vector) -> None:
        """A candidate takes the place of the least one in each row where it is larger; of equal ones the last goes."""
        worst = self.values.min(axis=1)
        least = np.where(self.values == worst[:, None], self.features, NOTHING - 1).argmax(axis=1)
        rows = np.flatnonzero(values > worst)
        self.features[rows, least[rows]], self.values[rows, least[rows]] = feature, values[rows]

    def first(self, top: int) -> Kept:
        """The largest of each row in falling order; of equal ones the smaller number first."""
        by_number = np.argsort(self.features, axis=1, kind="stable")
        features = np.take_along_axis(self.features, by_number, axis=1)
        values = np.take_along_axis(self.values, by_number, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :top]
        return Kept(np.take_along_axis(features, order, axis=1), np.take_along_axis(values, order, axis=1))


def lines_of(found: Completion, first: int) -> Iterator[str]:
    """A line for each row: `feature value` pairs with commas between, as the thesis' program writes them.

    Parameters
    ----------
    found : what is likely missing.
    first : the number of the first feature where they have no names.
    """
    for number in range(len(found.features)):
        pairs = found.row(number)
        yield ",".join(f"{name + first if found.names is None else name} {value:.6g}" for name, value in pairs)
