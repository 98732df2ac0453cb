"""Every candidate trained on every fold's rows, and judged by those that the fold holds out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from bmrm.app.model import Model
from bmrm.app.path import Asked, solve_path
from bmrm.app.pipeline.several import solve_any
from bmrm.app.pipeline.solve import Watch, unwatched
from bmrm.app.progress import Told
from bmrm.app.shares import rows_of_labels
from bmrm.data.dataset import Dataset
from bmrm.losses._core.per_column import PerColumn
from bmrm.metrics import ScoredRows, evaluate
from bmrm.mpi.group import Group, OtherRankError
from bmrm.problem import Callback, Solution, Status
from bmrm.search._core.candidates import LAMBDA, Candidate
from bmrm.search._core.folds import Folds, Split
from bmrm.search._core.held_out import joined, judged

USELESS = Status.NON_FINITE, Status.NOT_CONVEX
"""Ends of a training whose weights say nothing."""


@dataclass(frozen=True)
class Judged:
    """A candidate on one fold, on rank 0.

    Attributes
    ----------
    rows : those held out, with the scores of the model; None where it is not usable.
    facts : of the solution: status, objective, lower_bound, passes, seconds.
    """

    rows: ScoredRows | None
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """A candidate on all folds.

    Attributes
    ----------
    values : of the fields that are searched.
    lam : the lambda of its regularizer.
    by_fold : by measure its values in the folds, in their order; None where it is not defined.
    pooled : by measure its value over the rows of all folds together; with repeats the mean of these.
    facts : of the trainings, in the order of the folds.
    """

    values: Mapping[str, Any]
    lam: float
    by_fold: Mapping[str, tuple[float | None, ...]]
    pooled: Mapping[str, float | None]
    facts: tuple[Mapping[str, Any], ...]

    @property
    def passes(self) -> float:
        """Of all trainings."""
        return float(sum(one["passes"] for one in self.facts))

    @property
    def converged(self) -> bool:
        """Whether all trainings have reached the tolerance."""
        return all(one["status"] in ("CONVERGED", "SETTLED") for one in self.facts)


@dataclass
class Trials:
    """Trainings on folds, one after another; folds outside, so that the rows of a fold are copied once.

    Candidates that differ in lambda alone are walked from the largest lambda down, each from the solution of the last.

    Attributes
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    folds : their divisions.
    group : the ranks.
    measures : names.
    shares : whether the rows stand for shares of labels.
    watch : surrounds each training.
    told : hears of progress, on rank 0.
    kept : trainings of an earlier run that was interrupted; they are added to.
    """

    data: Dataset
    folds: Folds
    group: Group
    measures: Sequence[str]
    shares: bool = False
    watch: Watch = unwatched
    told: Told | None = None
    kept: Any = None
    done: int = field(default=0, init=False)
    held: list[list[ScoredRows | None]] = field(default_factory=list, init=False)
    """On rank 0, by candidate and fold, the rows held out."""

    def of(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Collective: all of them, in order; [] but on rank 0."""
        found: list[list[Judged]] = [[] for _ in candidates]
        total = len(candidates) * len(self.folds.splits)
        for split in self.folds.splits:
            train, held = split.rows(self.data, split.train), split.rows(self.data, split.held)
            for walk in walks(candidates):
                for place, one in zip(walk, self._walk([candidates[k] for k in walk], split, train, held)):
                    self.done += 1
                    if one is not None:
                        found[place].append(one)
                        if self.told is not None:
                            self.told(self.done, total)
        if self.group.rank != 0:
            return []
        self.held = [[one.rows for one in line] for line in found]
        return [self._trial(candidate, line) for candidate, line in zip(candidates, found)]

    def _walk(self, walk: Sequence[Candidate], split: Split, train: Dataset, held: Dataset) -> Iterator[Judged | None]:
        """Collective: each candidate of the walk on one fold; None but on rank 0."""
        loss = walk[0].problem.loss
        if self.shares:
            train, held = rows_of_labels(train, loss), rows_of_labels(held, loss)
        for candidate, model in trained(walk, train, self.group, self.watch):
            status = self.group.broadcast(None if model is None else model.solution.status.name)
            if status == Status.INTERRUPTED.name:
                raise _interrupted(self.group)
            rows = None
            if Status[status] not in USELESS:
                rows = judged(model, candidate.problem, held, self.group, f"the rows of fold {split.name}")
            yield None if model is None else Judged(rows, facts_of_solution(model))

    def _trial(self, candidate: Candidate, line: Sequence[Judged]) -> Trial:
        undefined = dict.fromkeys(self.measures)
        values = [undefined if one.rows is None else evaluate(self.measures, one.rows) for one in line]
        by_fold = {name: tuple(one[name] for one in values) for name in self.measures}
        return Trial(
            candidate.values,
            candidate.lam,
            by_fold,
            self.pooled([one.rows for one in line]),
            tuple(one.facts for one in line),
        )

    def pooled(self, rows: Sequence[ScoredRows | None]) -> dict[str, float | None]:
        """Measures of the rows of all folds together; of several repeats the mean."""
        repeats = self.folds.numbers.shape[1]
        each = len(rows) // repeats
        found: list[dict[str, float | None]] = []
        for k in range(repeats):
            parts = [one for one in rows[k * each : (k + 1) * each] if one is not None]
            whole = joined(parts) if len(parts) == each else None
            found.append(dict.fromkeys(self.measures) if whole is None else evaluate(self.measures, whole))
        return {name: mean([one[name] for one in found]) for name in self.measures}


def mean(values: Sequence[float | None]) -> float | None:
    """Their mean; None where one of them is not defined."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def walks(candidates: Sequence[Candidate]) -> list[list[int]]:
    """Numbers of candidates that differ in lambda alone, from the largest down."""
    found: dict[str, list[int]] = {}
    for k, one in enumerate(candidates):
        others = {name: value for name, value in one.values.items() if name != LAMBDA}
        found.setdefault(repr(sorted(others.items(), key=lambda pair: pair[0])), []).append(k)
    return [sorted(line, key=lambda k: (-candidates[k].lam, k)) for line in found.values()]


def trained(
    walk: Sequence[Candidate], rows: Dataset, group: Group, watch: Watch = unwatched
) -> Iterator[tuple[Candidate, Model | None]]:
    """Collective: a model of each candidate, down a path where there are several; the models are None but on rank 0.

    Parameters
    ----------
    walk : candidates that differ in lambda alone, from the largest down.
    rows : of this rank.
    group : the ranks.
    watch : surrounds the trainings.
    """
    lambdas = [one.lam for one in walk]
    several = len(walk) > 1 and all(a > b for a, b in itertools.pairwise(lambdas))
    if not several or isinstance(walk[0].problem.loss, PerColumn):
        yield from _one_after_another(walk, rows, group, watch)
        return
    problem = walk[0].problem
    asked = Asked(lambda lam: replace(problem.regularizer, lam=lam), lambdas)  # type: ignore[type-var]
    with watch(_no_model) if group.rank == 0 else nullcontext() as callback:
        found = solve_path(rows, problem, asked, group, None if callback is None else _pointless(callback))
    models: Sequence[Model | None] = [] if found is None else found.models
    if group.broadcast(len(models)) < len(walk):  # a callback has ended it
        raise _interrupted(group)
    for k, candidate in enumerate(walk):
        yield candidate, models[k] if models else None


def _one_after_another(
    walk: Sequence[Candidate], rows: Dataset, group: Group, watch: Watch
) -> Iterator[tuple[Candidate, Model | None]]:
    start: Model | None = None
    for candidate in walk:
        start = solve_any(rows, candidate.problem, group, watch, start=start)
        yield candidate, start


def _no_model(solution: Solution) -> Model:
    raise AssertionError("no checkpoint is written of a fold")


def _pointless(callback: Callback) -> Callback:
    """The callback, told of no point: none is that of all rows."""
    return lambda line: callback(replace(line, w=None, iterate=None))


def _interrupted(group: Group) -> BaseException:
    if group.rank != 0:
        return OtherRankError("rank 0 was interrupted")
    return KeyboardInterrupt("interrupted in a training of the folds")


def facts_of_solution(model: Model) -> dict[str, Any]:
    """What is told of a training."""
    s = model.solution
    return {
        "status": s.status.name,
        "objective": s.objective,
        "lower_bound": s.lower_bound,
        "passes": s.passes,
        "iterations": s.iterations,
        "seconds": s.seconds,
    }
