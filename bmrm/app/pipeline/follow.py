"""Measures of the validation rows while the solver runs (figure 3 of the PROBE paper), for every solver alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.app.measure import check_metrics, scored, scores_of
from bmrm.app.model import Model
from bmrm.app.stopping import Stopping
from bmrm.data.dataset import Dataset
from bmrm.mpi.dealing import gather_targets
from bmrm.mpi.group import Alone, Group
from bmrm.problem import Callback, InputError, Iteration, Risk, Solution, Status, facts_of, provides
from bmrm.problem.loss import HasThreshold

DETAILS = "validation"
"""Key in `Solution.details`."""
ModelOf = Callable[[Solution], Model]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Follow:
    """What is measured of the validation rows, and every how many iterations."""

    metrics: tuple[str, ...]
    every: int = 10
    stop: Stopping | None = None
    """By whose measure, one of the others, the solver is stopped."""

    @classmethod
    def of(cls, metrics: Sequence[str], every: int, stop: Stopping | None) -> Follow | None:
        """With the measure that stops; None where nothing is measured."""
        names = tuple(dict.fromkeys([*metrics, *([] if stop is None else [stop.measure])]))
        return cls(names, every, stop) if names else None


def check_followed(follow: Follow, loss: Any) -> None:
    """Raise InputError for measures that do not fit the loss, or need what is only fitted after training."""
    from bmrm.metrics.core import chosen

    check_metrics(follow.metrics, loss)
    if follow.stop is not None and not chosen(follow.stop.measure)[0].sign:
        raise InputError(f"stop: {follow.stop.measure} has no best value, expected another measure")
    late = [name for name in follow.metrics if chosen(name)[0].of == "predictions"]
    if late and provides(loss, HasThreshold):
        raise InputError(
            f"follow: {', '.join(late)} of {facts_of(loss).title} needs the threshold, which is fitted after training; "
            "follow measures of its rankings"
        )


def refuse_stop(follow: Follow | None, what: str) -> None:
    """InputError where a measure is to stop the solver of what trains several models.

    Parameters
    ----------
    follow : of the problem.
    what : trains them.
    """
    if follow is not None and follow.stop is not None:
        raise InputError(f"solver.stop: {what} has several trainings, each to its tolerance; leave it out")


class ValidationRows:
    """Those of one rank, as rank 0 may ask for their scores."""

    def __init__(self, data: Dataset, threads: int | None) -> None:
        self._data, self._threads = data, threads

    def scores(self, weights: Floats, intercept: Floats) -> Floats:
        """`X weights + intercept`."""
        return scores_of(self._data, weights, intercept, self._threads)


class Follower:
    """Collective to make, before rank 0 leads: it gathers the targets, and scores when it measures, but no features.

    Parameters
    ----------
    follow : what is measured, and how often.
    data : this rank's validation rows; `data.scale: unit_norm` has been applied to them.
    loss : of the problem, which the measures fit.
    group : the ranks.
    risk : that of the training rows, as the ranks share it.
    threads : of this rank; None for the usable cores.
    """

    def __init__(
        self, follow: Follow, data: Dataset, loss: Any, group: Group, risk: Risk, threads: int | None = None
    ) -> None:
        self._follow, self._loss, rows = follow, loss, ValidationRows(data, threads)
        self._targets = gather_targets(data.targets, group)
        self._scores: Callable[[Floats, Floats], Floats] = rows.scores
        if not isinstance(group, Alone):
            from bmrm.mpi.requests import Answer

            ranks = cast(Any, risk).ranks
            ranks.put("validation", rows)
            self._scores = lambda w, b: ranks.array("validation", "scores", w, b, answer=Answer.GATHER)
        self._table: dict[str, list[float]] = {"iteration": [], **{name: [] for name in follow.metrics}}
        self._best: tuple[float, int, Floats] | None = None
        self._stale, self._ended = 0, False

    def beside(self, callback: Callback | None, model_of: ModelOf) -> Callback:
        """The callback that also measures a point every so many iterations: the solver's own, or the best so far."""

        def followed(line: Iteration) -> Any:
            w = line.w if line.iterate is None else line.iterate
            if line.iteration % self._follow.every == 0 and w is not None and math.isfinite(line.objective):
                bound, spent = line.lower_bound, (line.iteration, line.passes, line.seconds)
                self._take(model_of(Solution(w, line.objective, bound, Status.INTERRUPTED, *spent)))
                self._judge(w, line.iteration)
            told = None if callback is None else callback(line)
            return told or self._ended

        return followed

    def _judge(self, w: Floats, iteration: int) -> None:
        """Keep the point if its measure is the best so far; else, after some of these, end the run."""
        stop = self._follow.stop
        if stop is None:
            return
        from bmrm.metrics.core import chosen

        value = chosen(stop.measure)[0].sign * self._table[stop.measure][-1]
        if math.isfinite(value) and (self._best is None or value > self._best[0]):
            self._best, self._stale = (value, iteration, w.copy()), 0
        elif self._best is not None:
            self._stale += 1
            self._ended = self._stale >= stop.patience

    def finished(self, model: Model, model_of: ModelOf, objective_of: Callable[[Floats], float]) -> Model:
        """The model with the table in the details of its solution; the result of the solver is the last line.

        Where a measure stops the solver it is the model of the best measure, with J there and the bound of the end.

        Parameters
        ----------
        model : of the solver's result.
        model_of : makes models.
        objective_of : J, evaluated afresh.
        """
        solution = model.solution
        if math.isfinite(solution.objective):
            self._take(model)
            if solution.status is not Status.INTERRUPTED or self._ended:
                self._judge(solution.w, solution.iterations)
                model = self._kept(model, model_of, objective_of)
                solution = model.solution
        table: dict[str, NDArray[Any]] = {name: np.array(values) for name, values in self._table.items()}
        table["iteration"] = table["iteration"].astype(np.int64)
        return replace(model, _solution=replace(solution, details={**solution.details, DETAILS: table}))

    def _kept(self, model: Model, model_of: ModelOf, objective_of: Callable[[Floats], float]) -> Model:
        """The model of the best measure; that of the end where it is this."""
        stop, best, solution = self._follow.stop, self._best, model.solution
        if stop is None or best is None or best[1] == solution.iterations or np.array_equal(best[2], solution.w):
            return model
        from bmrm.metrics.core import chosen

        value = best[0] * chosen(stop.measure)[0].sign
        said = (
            f"kept is the point of the best {stop.measure} of the validation rows, {value:.6g} at iteration {best[1]} "
            f"of {solution.iterations}, not that of the least objective"
        )
        message = "; ".join(filter(None, (solution.message, said)))
        objective = objective_of(best[2])
        return model_of(replace(solution, w=best[2], objective=objective, status=Status.OWN_RULE, message=message))

    def _take(self, model: Model) -> None:
        """A line of the table: a line of the same iteration is replaced, an undefined measure is nan."""
        from bmrm.metrics import evaluate

        assert self._targets is not None
        scores, arrays = self._scores(model.weights, model.intercept), model.arrays
        rows = scored(scores, self._targets, self._loss, model.label_codes, arrays=arrays, part="data.validation")
        assert rows is not None
        values = evaluate(self._follow.metrics, rows)
        line = {"iteration": float(model.solution.iterations)}
        line |= {name: math.nan if value is None else value for name, value in values.items()}
        again = self._table["iteration"][-1:] == [line["iteration"]]
        for name, value in line.items():
            self._table[name][-1 if again else len(self._table[name]) :] = [value]


def listed(table: Mapping[str, NDArray[Any]]) -> dict[str, list[float | None]]:
    """The table as JSON has it; null for nan."""
    return {name: [None if math.isnan(value) else value for value in column.tolist()] for name, column in table.items()}
