"""Every candidate trained on every fold's rows, and judged by those that the fold holds out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from bmrm.app.model import Model
from bmrm.app.path import Asked, solve_path
from bmrm.app.pipeline.judge import judged
from bmrm.app.pipeline.several import solve_any
from bmrm.app.pipeline.solve import ModelOf, Problem, Watch, unwatched
from bmrm.app.progress import Told
from bmrm.app.shares import rows_of_labels
from bmrm.data.dataset import Dataset
from bmrm.losses._core.per_column import PerColumn
from bmrm.metrics import ScoredRows, evaluate
from bmrm.mpi.group import Alone, Group, OtherRankError, together
from bmrm.problem import Callback, InputError, Iteration, Solution, Status
from bmrm.search._core.candidates import LAMBDA, Candidate
from bmrm.search._core.folds import AskedFolds, Folds, Split
from bmrm.search._core.held_out import Judged, joined
from bmrm.search._core.kept import Kept, key_of, packed, unpacked

USELESS = Status.NON_FINITE, Status.NOT_CONVEX
"""Ends of a training whose weights say nothing."""


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
    rounds : trainings on each fold, one from where the last one ended.
    dropped : whether it was left before a last training to the tolerance.
    """

    values: Mapping[str, Any]
    lam: float
    by_fold: Mapping[str, tuple[float | None, ...]]
    pooled: Mapping[str, float | None]
    facts: tuple[Mapping[str, Any], ...]
    rounds: int = 1
    dropped: bool = False

    @property
    def passes(self) -> float:
        """Of all trainings."""
        return float(sum(one["passes"] for one in self.facts))

    @property
    def converged(self) -> bool:
        """Whether all trainings have reached the tolerance."""
        return all(one["status"] == "CONVERGED" for one in self.facts)


@dataclass(frozen=True)
class Source:
    """Rows to train on and rows to judge by, made when they are wanted.

    Attributes
    ----------
    name : of the fold.
    repeat : of which division of the rows it is a part, from 0.
    rows : collective: makes both.
    """

    name: str
    repeat: int
    rows: Callable[[], tuple[Dataset, Dataset]]

    @classmethod
    def of_validation(cls, train: Dataset, validation: Dataset) -> Source:
        """All training rows, judged by the validation rows."""
        return cls("validation", 0, lambda: (train, validation))


Mapped = Callable[[Dataset, Dataset], tuple[Dataset, Dataset]]
"""Collective: from the rows of a fold to others, by what those that are trained on say alone."""


def sources_of(
    asked: AskedFolds, data: Dataset, problem: Problem, group: Group, mapped: Mapped | None = None
) -> tuple[Folds, list[Source]]:
    """Collective: the folds of the rows, and their rows; those of shares once for each label.

    Parameters
    ----------
    asked : what folds are wanted.
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : its loss, and whether the rows are shares.
    group : the ranks.
    mapped : what becomes of the rows of a fold before anything else; None for nothing.
    """
    folds = Folds.prepared(asked, data, problem.loss, group)
    each = len(folds.splits) // folds.numbers.shape[1]

    def rows(split: Split) -> tuple[Dataset, Dataset]:
        train, held = split.rows(data, split.train), split.rows(data, split.held)
        if mapped is not None:
            train, held = mapped(train, held)
        if problem.shares:
            return rows_of_labels(train, problem.loss), rows_of_labels(held, problem.loss)
        return train, held

    return folds, [Source(split.name, k // each, partial(rows, split)) for k, split in enumerate(folds.splits)]


@dataclass
class Trials:
    """Trainings on folds, one after another; folds outside, so that the rows of a fold are copied once.

    Candidates that differ in lambda alone are walked from the largest lambda down, each from the solution of the last.

    Attributes
    ----------
    sources : the folds, with their rows.
    group : the ranks.
    measures : names.
    watch : surrounds each training.
    told : hears of progress, on rank 0.
    kept : where trainings are kept, and found again; None for nowhere.
    across : ranks that share out the folds, each of which has all rows; `group` is then one process. None for ranks
        that share out the rows.
    """

    sources: Sequence[Source]
    group: Group
    measures: Sequence[str]
    watch: Watch = unwatched
    told: Told | None = None
    kept: Kept | None = None
    across: Group | None = None
    done: int = field(default=0, init=False)
    held: list[list[ScoredRows | None]] = field(default_factory=list, init=False)
    """On rank 0, by candidate and fold, the rows held out."""
    starts: dict[tuple[str, str], Any] = field(default_factory=dict, init=False)
    """On rank 0, by fold and candidate, where a further training begins."""

    def of(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Collective: all of them, in order; [] but on rank 0."""
        return self._of(candidates, walks(candidates), None, False)

    def further(self, candidates: Sequence[Candidate], budget: float | None) -> list[Trial]:
        """Collective: as `of`, but each goes on from its last training by this object, not from another candidate's.

        Parameters
        ----------
        candidates : what is trained.
        budget : passes after which each training is stopped; None for the tolerance.
        """
        return self._of(candidates, [[k] for k in range(len(candidates))], budget, True)

    def _of(
        self, candidates: Sequence[Candidate], ways: Sequence[Sequence[int]], budget: float | None, again: bool
    ) -> list[Trial]:
        sources, found = list(self.sources), [list[Judged]() for _ in candidates]
        if self.across is not None:
            sources = sources[self.across.rank :: self.across.size]
        total, self.done = len(candidates) * len(sources), 0
        with together(self.across or Alone()):
            for source in sources:
                train, held = source.rows()
                for walk in ways:
                    some = self._walk([candidates[k] for k in walk], source, train, held, budget, again)
                    for place, one in zip(walk, some):
                        self.done += 1
                        if one is not None:
                            found[place].append(one)
                            if self.told is not None:
                                self.told(self.done, total)
        if self.across is not None:
            found = of_all_ranks(found, self.across)
        if (self.across or self.group).rank != 0:
            return []
        self.held = [[one.rows for one in line] for line in found]
        return [self._trial(candidate, line) for candidate, line in zip(candidates, found)]

    def _walk(
        self,
        walk: Sequence[Candidate],
        source: Source,
        train: Dataset,
        held: Dataset,
        budget: float | None,
        again: bool,
    ) -> Iterator[Judged | None]:
        """Collective: each candidate of the walk on one fold; None but on rank 0."""
        key, known = "", None
        if self.kept is not None:
            key = key_of(walk, train, held, budget, self.group)
            known = self.kept.find(key) if self.group.rank == 0 else None
            if self.group.broadcast(known is not None):
                for k, candidate in enumerate(walk):
                    one = None if known is None else known[k]
                    self._remember(source, candidate, one)
                    yield one
                return
        found: list[Judged] = []
        for candidate, model in self._models(walk, source, train, budget, again):
            rows = None
            status = self.group.broadcast(None if model is None else model.solution.status.name)
            if Status[status] not in USELESS:
                part = f"the rows of fold {source.name}"
                rows = judged(model, candidate.problem, held, self.group, part)
            one = None
            if model is not None:
                one = Judged(rows, facts_of_solution(model), model.solution.w if again else None)
                found.append(one)
                self._remember(source, candidate, one)
            if self.kept is None:
                yield one
        if self.kept is not None:  # whole walks are kept, so that one that was cut off begins where it began
            if self.group.rank == 0:
                self.kept.put(key, found)
            yield from found if found else itertools.repeat(None, len(walk))

    def _remember(self, source: Source, candidate: Candidate, one: Judged | None) -> None:
        if one is not None and one.w is not None:
            self.starts[source.name, repr(candidate.values)] = one.w

    def _models(
        self, walk: Sequence[Candidate], source: Source, train: Dataset, budget: float | None, again: bool
    ) -> Iterator[tuple[Candidate, Model | None]]:
        """Collective: the models of a walk; an interrupt ends all, but not the end of a budget."""
        stopped = Budget(budget)
        if again:
            start = self.starts.get((source.name, repr(walk[0].values)))
            model = solve_any(train, walk[0].problem, self.group, stopped.around(self.watch), start=start)
            pairs: Iterator[tuple[Candidate, Model | None]] = iter([(walk[0], model)])
        else:
            pairs = trained(walk, train, self.group, self.watch)
        for candidate, model in pairs:
            status = self.group.broadcast(None if model is None else model.solution.status.name)
            if status == Status.INTERRUPTED.name and not self.group.broadcast(stopped.ended):
                raise _interrupted(self.group)
            yield candidate, model

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
        found: list[dict[str, float | None]] = []
        for repeat in sorted({source.repeat for source in self.sources}):
            these = [one for one, source in zip(rows, self.sources) if source.repeat == repeat]
            parts = [one for one in these if one is not None]
            whole = joined(parts) if len(parts) == len(these) else None
            found.append(dict.fromkeys(self.measures) if whole is None else evaluate(self.measures, whole))
        return {name: mean([one[name] for one in found]) for name in self.measures}


def of_all_ranks(found: Sequence[Sequence[Judged]], across: Group) -> list[list[Judged]]:
    """Collective: by candidate what ranks have found of their folds, in the order of these; [] but on rank 0.

    Raises
    ------
    InputError
        For labels or parameters of a loss that cannot be sent.
    """
    content = b""
    with together(across):
        try:
            content = packed([one for line in found for one in line])
        except TypeError as error:
            raise InputError(f"parallel: folds: a rank cannot send what it has found ({error}); take rows") from error
    told = across.gather_bytes(np.frombuffer(content, np.uint8))
    if told is None:
        return []
    parts = [unpacked(part.tobytes()) for part in told]
    each = [len(part) // len(found) for part in parts]
    return [
        [parts[k % len(parts)][line * each[k % len(parts)] + k // len(parts)] for k in range(sum(each))]
        for line in range(len(found))
    ]


class Budget:
    """Ends a training after so many passes; None for none."""

    def __init__(self, passes: float | None) -> None:
        self._passes = passes
        self.ended = False

    def around(self, watch: Watch) -> Watch:
        """The `Watch` that also ends it."""
        if self._passes is None:
            return watch

        @contextmanager
        def limited(model_of: ModelOf) -> Iterator[Callback]:
            with watch(model_of) as callback:
                yield lambda line: self._told(line, callback)

        return limited

    def _told(self, line: Iteration, callback: Callback | None) -> bool:
        if callback is not None and callback(line):
            return True
        assert self._passes is not None
        self.ended = line.passes >= self._passes
        return self.ended


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
