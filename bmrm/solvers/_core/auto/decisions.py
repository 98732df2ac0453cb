"""Which solver for which problem: a table of measured times, and the nearest measurements to a problem.

The table, decisions.jsonl beside this file, is written by `python -m benchmarks.decisions` and holds nothing but
measurements: for problems of known size and lambda the seconds that each solver took to a certified gap. A
measurement is a line of its own, so that a process parses those of its kind of problem only.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import (
    DualBlocks,
    Elastic,
    HasConjugate,
    ProblemSize,
    Regularizer,
    Risk,
    Scored,
    ScoreFunction,
    ability,
    provides,
)
from bmrm.solvers._core.auto.portfolio import CHAINED

TABLE = Path(__file__).with_name("decisions.jsonl")
NEIGHBOURS = 16
"""Measurements that are asked."""
APART = 4.0
"""How far one process is from several, in squares of powers of ten; how many these are matters little."""
MOST_RANK = 1e4
"""A larger effective rank counts as this: of some rows that hardly overlap it is a rough guess."""
BY_RANKS = ("dual_coordinate",)
"""Solvers whose steps change where ranks share the rows: measurements of one process do not tell of them there."""
NEAR, STEEP = 0.1, 2.0
"""A measurement counts by (distance + NEAR) to the power -STEEP."""
HARD = 1.5
"""Exponent on the log of the time ratio: large losses of time are to be avoided."""
UNREACHED = math.log(30.0)
"""What counts for a solver that did not fit or did not reach the gap: the logarithm of its time over the best."""


@dataclass(frozen=True)
class Case:
    """What decides the choice.

    Attributes
    ----------
    kind : what risk and regularizer can do, as `kind_of` names it.
    place : logarithms to base 10 of rows, dim, entries per row, effective rank of the features, scaled lambda,
        tolerance. The scaled lambda is that of the regularizer for rows of features of length 1, times rows.
    shared : whether the rows are on several ranks.
    """

    kind: str
    place: tuple[float, ...]
    shared: bool = False


@dataclass(frozen=True)
class Measured:
    """A line of the table.

    Attributes
    ----------
    place, shared : as of `Case`.
    seconds : by solver; None where the gap was not reached.
    """

    place: tuple[float, ...]
    shared: bool
    seconds: Mapping[str, float | None]


class Lines:
    """All lines of one kind, as arrays.

    Parameters
    ----------
    measured : the lines; at least one.
    """

    def __init__(self, measured: Sequence[Measured]) -> None:
        self.measured = tuple(measured)
        self._places = np.array([line.place for line in self.measured])
        self._low, self._high = self._places.min(axis=0), self._places.max(axis=0)
        self._shared = np.array([line.shared for line in self.measured], bool)
        self.names = sorted({name for line in self.measured for name in line.seconds})
        """Solvers that were measured anywhere."""
        self._known: NDArray[np.bool_] = np.array(
            [[name in line.seconds for name in self.names] for line in self.measured], bool
        )
        self._behind: NDArray[np.float64] = np.array([self._penalties(line) for line in self.measured])

    @cached_property
    def of_one_process(self) -> Lines | None:
        """Those that were not measured over ranks; None if there are none."""
        lines = [line for line in self.measured if not line.shared]
        return Lines(lines) if lines else None

    @cached_property
    def over_ranks(self) -> Lines:
        """All, without those times of one process that say nothing of several."""
        return Lines([line if line.shared else _without(line, BY_RANKS) for line in self.measured])

    def penalties(self, case: Case) -> dict[str, float]:
        """By solver, how far behind the best it was on the lines near the case, which count by their nearness."""
        distances = self._distances(case)
        near = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        total = (distances[near] + NEAR) ** -STEEP @ self._behind[near]
        known = np.any(self._known[near], axis=0)
        return {name: float(total[k]) for k, name in enumerate(self.names) if known[k]}

    def _distances(self, case: Case) -> NDArray[np.float64]:
        """Of every line from the case, in squares of powers of ten.

        The case is moved to the edge of what was measured first: how far beyond it lies says nothing of what is near.
        """
        place = np.minimum(np.maximum(case.place, self._low), self._high)
        apart = APART * (self._shared != case.shared)
        return apart + ((self._places - place) ** 2).sum(axis=1)  # type: ignore[no-any-return]

    def _penalties(self, line: Measured) -> list[float]:
        times = [line.seconds.get(name) for name in self.names]
        best = min((time for time in times if time is not None), default=1.0)
        return [(UNREACHED if time is None else math.log(time / best)) ** HARD for time in times]


def _without(line: Measured, names: Sequence[str]) -> Measured:
    """The line without the times of solvers and chains in which one of `names` has a part."""
    seconds = {name: None if set(name.split(CHAINED)) & set(names) else time for name, time in line.seconds.items()}
    return dataclasses.replace(line, seconds=seconds)


def kind_of(risk: Risk, regularizer: Regularizer) -> str:
    """Smoothness, shape of the scores, and regularizer, in words."""
    scored = ability(risk, Scored)
    if scored is None:
        return "no scores"
    phi = scored.of_rows
    words = [
        "smooth" if scored.phi.facts.smooth else "one kinked maximum" if phi.facts.structured_max else "kinked",
        "one score" if phi.facts.scores_per_row == 1 else "several scores",
        _unit(risk, phi),
        "free intercept" if scored.intercept is not None else "",
    ]
    if not provides(regularizer, HasConjugate):
        words.append("no conjugate")
    elif provides(regularizer, Elastic):
        words.append("l1 and l2" if regularizer.l1 > 0.0 and regularizer.l2 > 0.0 else "l1" if regularizer.l1 else "l2")
    else:
        words.append("smooth regularizer" if regularizer.smooth else "kinked regularizer")
    return ", ".join(word for word in words if word)


def _unit(risk: Risk, phi: ScoreFunction) -> str:
    """What the risk is a sum over, as far as solvers can use it."""
    steps = ability(risk, DualBlocks)
    if steps is not None and steps.grouped:
        return "by groups"
    return "by rows" if phi.facts.separable or phi.facts.prox or steps is not None else ""


def case_of(risk: Risk, regularizer: Regularizer, tolerance: float) -> Case | None:
    """None where the size of the data or lambda is not known."""
    size = ability(risk, ProblemSize)
    if size is None or not provides(regularizer, Elastic):
        return None
    length = math.sqrt(size.square or 1.0)  # features times c and weights divided by c are the same problem
    scaled_lambda = size.rows * (regularizer.l2 / length**2 or regularizer.l1 / length)
    rank = min(size.effective_rank, MOST_RANK)
    place = (size.rows, risk.dim, size.entries / max(1, size.rows), rank, scaled_lambda, tolerance)
    logarithms = tuple(math.log10(max(number, 1e-16)) for number in place)
    return Case(kind_of(risk, regularizer), logarithms, size.ranks > 1)


def ranked(case: Case, table: Lines | None = None) -> list[str]:
    """Solvers (or chains such as `a > b`) from the presumably fastest to the slowest; [] for an unmeasured kind.

    `table` has the lines of this kind, None for those of the file.
    """
    lines = _measurements(case.kind) if table is None else table
    if lines is not None:
        lines = lines.over_ranks if case.shared else lines.of_one_process
    if lines is None:
        return []
    penalties = lines.penalties(case)
    return sorted(penalties, key=lambda name: (penalties[name], name))


def measured_of(line: Mapping[str, Any]) -> Measured:
    """A line of the file."""
    return Measured(tuple(line["place"]), line.get("ranks", 1) > 1, line["seconds"])


@cache
def _measurements(kind: str) -> Lines | None:
    """Those of a kind; None without any."""
    if not TABLE.exists():
        return None
    mark = json.dumps({"kind": kind})[1:-1]  # parsing all would take longer than many a problem
    with TABLE.open(encoding="utf-8") as file:
        found = [measured_of(json.loads(line)) for line in file if mark in line]
    return Lines(found) if found else None
