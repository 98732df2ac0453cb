"""The laws that a sample tries, and the sentence about the first that is broken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bmrm.checks import convex, losses, plug_in, regularizers, risks
from bmrm.checks.cases import Case, Rows
from bmrm.checks.convex import Array, Function
from bmrm.checks.laws import BrokenLawError, NotOfferedError, Violation
from bmrm.checks.plug_in import name_of
from bmrm.data.dataset import plain_numbers
from bmrm.problem import BmrmError, InputError, Summary, Targets, Vector

SECONDS = 5e-3
"""Seconds of a sample of checks if an evaluation is slow; one evaluation is always made."""
QUICK = 5e-4
"""Seconds of an evaluation below which a sample, at most some hundred of them, is complete."""
COARSE = 1e-9
"""Relative accuracy of a sample of checks: it finds mistakes, and must not refuse a risk whose inner iteration is
inexact."""
ROWS, BEGIN = 3, 10_000
"""Rows or groups that are tried, and rows among which groups are chosen."""
REACH = 2.0
"""Size of the scores that are tried."""


class _SpentError(BmrmError):
    """The time is over."""


def refuse_undeclared(kind: str, one: Any) -> None:
    """Raise InputError where a class is no dataclass, or lacks a method."""
    members = {"loss": losses.members, "regularizer": regularizers.members}[kind]
    found = next(members(one), None) or next(plug_in.declared(one), None)
    if found is not None:
        raise InputError(f"{kind} {found.message}")


def refuse(kind: str, one: Any, violations: Iterator[Violation]) -> None:
    """Raise InputError about the first of these."""
    try:
        with np.errstate(all="ignore"):
            found = next(violations, None)
    except BrokenLawError as broken:
        found = broken.violation
        if broken.__cause__ is not None and found.law == "runs":
            raise InputError(_sentence(kind, one, found)) from broken.__cause__
    except (_SpentError, NotOfferedError):
        return
    if found is not None:
        raise InputError(_sentence(kind, one, found))


def _sentence(kind: str, one: Any, found: Violation) -> str:
    if found.law == "members":
        return f"{kind} {found.message}"
    return (
        f"{kind} {name_of(one)} breaks a law that solvers and their bounds rest on: {found}"
        f" (bmrm.extend.check_{kind} tries all of them)"
    )


def of_loss(loss: Any, targets: Targets, summary: Summary) -> Iterator[Violation]:
    """Of a few rows or groups."""
    rows = _few(loss, targets)
    if not rows.size:
        return
    case = Case(loss, replace(targets.take(rows), weights=None), bound_to=summary, numbers=rows)
    yield from losses.arrays_of_rows(case)
    limit = _Limit()
    for rows in case.terms()[:ROWS]:
        function = limit.on(case.function(rows, coarse=COARSE))
        rng = np.random.default_rng(int(rows[0]))
        points = [np.zeros(function.shape), *(REACH * rng.normal(size=function.shape) for _ in range(3))]
        yield from _of_function(function, points)


def _few(loss: Any, targets: Targets) -> Rows:
    """Some rows that are present, of different targets; some groups; all rows where the loss is no sum."""
    present = np.arange(targets.rows)
    if targets.weights is not None:
        present = present[np.asarray(targets.weights) != 0.0]
    if loss.decomposes == "no" or not present.size:
        return present
    if loss.decomposes == "groups" and targets.groups is not None:
        begin = targets.groups[:BEGIN]
        names = list(dict.fromkeys(begin.tolist()))
        whole = names[:-1] if targets.rows > BEGIN and len(names) > 1 else names
        return np.flatnonzero(np.isin(begin, whole[:ROWS]))
    rows = present[np.linspace(0, present.size - 1, min(present.size, 16 * ROWS)).astype(np.int64)]
    y = targets.y[rows]
    if isinstance(y, np.ndarray) and y.ndim == 1:
        rows = rows[np.sort(np.unique(y, return_index=True)[1])]
    return rows[:ROWS]


def of_regularizer(regularizer: Any, dim: int) -> Iterator[Violation]:
    """Of a regularizer of vectors (dim,)."""
    case = regularizers.RegularizerCase(regularizer, dim, each=1, coarse=COARSE)
    function = _Limit().on(case.function)
    yield from _of_function(function, case.points)
    for point in case.points[-2:]:
        if not np.isfinite(function.at(point).value):
            yield function.violation("finite", point, np.inf, "the value is inf, expected a finite number")
    yield from regularizers.conjugates(case)


def of_risk(risk: Any, start: Any) -> Iterator[Violation]:
    """Around `start`, zero where None."""
    yield from risks.members(risk)
    at = np.zeros(risk.dim) if start is None else np.array(plain_numbers(start, "start"))
    if at.shape != (risk.dim,) or not np.isfinite(at).all():
        return  # the solver says so
    case = risks.RiskCase(risk, at, coarse=COARSE)
    function = _Limit().on(case.function)
    yield from _of_function(function, [case.points[k] for k in (0, 1, 3, 5)])


def _of_function(function: Function, points: list[Vector]) -> Iterator[Violation]:
    """Shapes first, then what needs few evaluations, then the others."""
    places = [function.at(point) for point in points]
    yield from convex.keeps_inputs(function, points[:2])
    yield from convex.infimum(function, places, function.infimum)
    rng = np.random.default_rng(1)
    for place in places[1:3]:
        step = np.ones(1) if place.x.size == 1 else rng.normal(size=place.x.shape)
        yield from convex.slopes(function, place, [step], (1e-4,))
    yield from convex.segments(function, places, (0.5,))
    yield from convex.supports(function, places)
    yield from convex.is_determined(function, points[1:2])


class _Limit:
    """What all evaluations of a sample together may take, reckoned by the fastest of them: one may have compiled."""

    def __init__(self) -> None:
        self._calls, self._fastest = 0, 0.0

    def on(self, function: Function) -> Function:
        """`function`, which ends the sample when the time is over."""
        return replace(function, call=self._timed(function.call))

    def _timed(self, call: Callable[[Array], Any]) -> Callable[[Array], Any]:
        def timed(x: Array) -> Any:
            if self._fastest > QUICK and self._calls * self._fastest > SECONDS:
                raise _SpentError
            begin = time.perf_counter()
            result = call(x)
            self._calls += 1
            seconds = time.perf_counter() - begin
            self._fastest = min(self._fastest, seconds) if self._calls > 1 else seconds
            return result

        return timed
