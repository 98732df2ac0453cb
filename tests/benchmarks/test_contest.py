"""Ladders, limits and failures, with competitors that are made up."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.contest import Entrant, Rules, climb, hold, suboptimality
from benchmarks.race.ours import Ours
from benchmarks.race.problem import Problem, Task
from benchmarks.race.summary import compare
from benchmarks.race.worker import Outcome, Worker

pytestmark = pytest.mark.nightly

PROBLEM = Problem("regression", "tiny-regression", "least_squares", l2=0.1)
RULES = Rules(repetitions=3, limit=5.0, budget=2.0)


def solution(task: Task) -> np.ndarray:
    X, m = task.X, task.rows
    return np.linalg.solve(X.T @ X / m + 0.1 * np.eye(X.shape[1]), X.T @ task.y / m)


@dataclass(frozen=True)
class Fake:
    """Returns the solution times 1 + tol after `naps` of each rung; misbehaves at the rung `bad`."""

    name: str = "fake"
    family: str = "fakes"
    nap: float = 0.0
    bad: float = -1.0
    how: str = "raise"

    def missing(self) -> str:
        return ""

    def serves(self, task: Task) -> bool:
        return task.loss == "least_squares"

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("tol", (1e-1, 1e-3, 1e-5, 1e-7, 1e-9))

    def prepare(self, task: Task) -> Prepared:
        found = solution(task)

        def trial(rung: Rung) -> Trial:
            tol = rung.options["tol"]

            def train() -> None:
                time.sleep(self.nap)
                if tol == self.bad:
                    {"raise": _raise, "die": _die, "sleep": lambda: time.sleep(60.0)}[self.how]()

            return Trial(train, lambda: found * (1.0 + tol))

        return trial


def _raise() -> None:
    raise ValueError("no luck")


def _die() -> None:
    os._exit(3)


@pytest.fixture
def task() -> Task:
    return Task.of(PROBLEM)


def climbed(fake: Fake, task: Task, limit: float = 5.0, longest: float = math.inf) -> list[Outcome]:
    entrant = Entrant(fake, Worker(fake, task), False)
    try:
        climb(entrant, limit, 1e-7, math.inf, longest)
    finally:
        entrant.worker.close()
    return entrant.climbed


def test_the_ladder_ends_where_the_minimum_is_reached(task: Task) -> None:
    from benchmarks.race.judge import objective

    entrant = Entrant(Fake(), Worker(Fake(), task), False)
    minimum = objective(task, solution(task))
    climb(entrant, 5.0, 1e-7, minimum)
    entrant.worker.close()
    assert [one.rung for one in entrant.climbed] == ["tol=0.1", "tol=0.001", "tol=1e-05"]
    best = entrant.best(1e-3, minimum)
    assert best is not None
    assert best.rung in ("tol=0.001", "tol=1e-05")
    assert entrant.best(1e-12, minimum) is None or entrant.best(1e-12, minimum).rung == "tol=1e-05"


@pytest.mark.parametrize(("how", "status", "message"), [("raise", "error", "no luck"), ("die", "error", "died")])
def test_failures_are_recorded(task: Task, how: str, status: str, message: str) -> None:
    outcomes = climbed(Fake(bad=1e-3, how=how), task)
    assert [one.status for one in outcomes] == ["ok", status]
    assert message in outcomes[-1].message


def test_a_run_beyond_the_limit_is_ended(task: Task) -> None:
    begin = time.perf_counter()
    outcomes = climbed(Fake(bad=1e-3, how="sleep"), task, limit=0.3)
    assert time.perf_counter() - begin < 5.0
    assert [one.status for one in outcomes] == ["ok", "time-out"]


def test_who_cannot_win_stops_climbing(task: Task) -> None:
    assert len(climbed(Fake(nap=0.05), task, longest=0.01)) == 1


def test_a_contest_finds_the_fastest_setting(task: Task) -> None:
    record = hold(task, [Ours(targets=RULES.accuracies)], [Fake(nap=0.02), Fake("broken", bad=0.1)], RULES)
    names = {entrant["name"]: entrant for entrant in record["entrants"]}
    assert set(names) == {"bmrm auto", "fake", "broken"}
    assert names["broken"]["best"] == {}
    assert names["broken"]["ladder"][0]["status"] == "error"
    best = names["fake"]["best"]["1e-06"]
    assert best["rung"] in ("tol=0.001", "tol=1e-05")
    assert len(best["seconds"]) == 3
    assert min(best["seconds"]) >= 0.02
    figure = compare(record, 1e-3)
    assert figure.other == "fake"
    assert figure.seconds is not None
    assert figure.ratio.middle == pytest.approx(figure.seconds / figure.other_seconds, rel=1e-9)
    assert record["bound"] <= record["minimum"] * (1.0 + 1e-12)


def test_own_space_is_measured_from_its_own_minimum(task: Task) -> None:
    class Smaller(Fake):
        own_space = True

    entrant = Entrant(Smaller(), Worker(Smaller(), task), False)
    entrant.climbed = [Outcome("a", "ok", 1.0, 2.0), Outcome("b", "ok", 2.0, 1.9)]
    assert entrant.best(1e-3, 1.0).rung == "b"
    assert Entrant(Fake(), Worker(Fake(), task), False, entrant.climbed).best(1e-3, 1.0) is None


def test_suboptimality() -> None:
    assert suboptimality(1.1, 1.0) == pytest.approx(0.1)
    assert suboptimality(-0.9, -1.0) == pytest.approx(0.1)
    assert suboptimality(0.9, 1.0) == 0.0
    assert suboptimality(math.inf, 1.0) == suboptimality(1.0, math.inf) == math.inf
