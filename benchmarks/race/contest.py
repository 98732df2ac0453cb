"""One problem: every competitor climbs its ladder once, then the settings that count run in alternated rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.race.competitor import Competitor, Rung
from benchmarks.race.problem import Task
from benchmarks.race.worker import Outcome, Worker, compile_once

BRIEF = 0.2
"""Seconds below which a rung is climbed twice, the better time counting: the choice of a setting is no lottery."""

COLD = 60.0
"""Seconds, at least, for our untimed runs, which may have to compile."""
STANDING, NEARER = 2, 0.7
"""A peer stops after so many rungs that did not bring its suboptimality down to such a share of its best."""


@dataclass(frozen=True)
class Rules:
    """How a contest is held.

    Attributes
    ----------
    accuracies : relative suboptimalities to be reached.
    repetitions : alternated rounds.
    limit : seconds that one run may take.
    patience : a peer may take so many times as long as we did, within [1 s, limit]; beyond, its time-out is recorded.
    hopeless : a peer stops climbing at a rung that took so many times as long as the fastest peer to the tightest
        accuracy: it cannot win any more.
    near : peers within this factor of the fastest peer take part in the rounds; the others keep their first time.
    beaten : our other solvers may take so many times as long as the first did, and BRIEF at least; a slower one is
        no rival of it, and that is all that is asked of them.
    budget : seconds for all rounds of one problem; fewer rounds where it does not suffice, but at least 3.
    seed : of the order of the runs.
    clock : "wall", or "cpu": the time that the process had a core, for machines that do other work, too.
    """

    accuracies: tuple[float, ...] = (1e-3, 1e-6)
    repetitions: int = 9
    limit: float = 60.0
    patience: float = 12.0
    hopeless: float = 10.0
    near: float = 1.5
    beaten: float = 3.0
    budget: float = 60.0
    seed: int = 0
    clock: str = "wall"


@dataclass
class Entrant:
    """A competitor in one contest: what it did at each rung, and in the rounds."""

    competitor: Competitor
    worker: Worker
    ours: bool
    climbed: list[Outcome] = field(default_factory=list)
    rounds: dict[str, list[Outcome]] = field(default_factory=dict)
    """By rung."""

    def best(self, accuracy: float, minimum: float) -> Outcome | None:
        """The fastest first run that is within the accuracy."""
        return min(self.reached(accuracy, minimum), key=lambda one: one.seconds, default=None)

    def reached(self, accuracy: float, minimum: float) -> list[Outcome]:
        """The first runs that are within the accuracy; of a certifying competitor only the one that promised it."""
        return [one for one in self.climbed if self._within(one, accuracy, self.minimum(minimum))]

    def minimum(self, minimum: float) -> float:
        """What its suboptimality is measured from: that of all, unless it works in a space of its own."""
        own = getattr(self.competitor, "own_space", False)
        return min([one.objective for one in self.climbed], default=math.inf) if own else minimum

    def runs(self, outcome: Outcome) -> list[Outcome]:
        """The rounds at the rung of a first run, or that run alone where there were none, or one failed."""
        again = self.rounds.get(outcome.rung, [])
        return again if again and all(run.status == "ok" for run in again) else [outcome]

    def _within(self, outcome: Outcome, accuracy: float, minimum: float) -> bool:
        if outcome.status != "ok" or suboptimality(outcome.objective, minimum) > accuracy:
            return False
        return outcome.details.get("target", accuracy) == accuracy


def suboptimality(objective: float, minimum: float) -> float:
    """(J - J*) / |J*|; inf where one of them is not finite."""
    if not (math.isfinite(objective) and math.isfinite(minimum)):
        return math.inf
    return max(0.0, objective - minimum) / max(abs(minimum), 1e-300)


def climb(entrant: Entrant, limit: float, enough: float, minimum: float, longest: float = math.inf) -> float:
    """Run the rungs from the loosest on, until one is near the best objective known, fails or takes too long.

    Near is within a suboptimality of `enough`, long above `longest` seconds; STANDING long rungs one after another that
    are not nearer than those before them are the end, too (a limit of its own was reached, or that of its rounding).
    Returns the best objective known then.
    """
    nearest, standing = math.inf, 0
    for rung in entrant.competitor.ladder(entrant.worker.task):
        outcome = entrant.worker.run(rung, limit)
        if outcome.status == "ok" and outcome.seconds < BRIEF:
            again = entrant.worker.run(rung, limit)
            outcome = again if again.status == "ok" and again.seconds < outcome.seconds else outcome
        if rung.target is not None:
            outcome.details["target"] = rung.target
        entrant.climbed.append(outcome)
        own = getattr(entrant.competitor, "own_space", False)
        off = abs(outcome.objective - minimum)  # one that is better than all so far may get better still
        near = rung.target is None and not own and off <= enough * abs(minimum) < math.inf
        minimum = min(minimum, outcome.objective)
        standing = standing + 1 if outcome.seconds > BRIEF and off > NEARER * nearest else 0
        nearest = min(nearest, off)
        failed = outcome.status in ("time-out", "error", "unfit")
        if near or failed or standing == STANDING or outcome.seconds > longest:
            break
    return minimum


def hold(task: Task, ours: Sequence[Competitor], peers: Sequence[Competitor], rules: Rules) -> dict[str, Any]:
    """The contest on one problem, as a record for JSON."""
    task.share()
    us = [Entrant(one, Worker(one, task, rules.clock), True) for one in ours]
    rivals = task.problem.rivals
    fit = [one for one in peers if (not rivals or one.family in rivals) and not one.missing() and one.serves(task)]
    for one in fit:
        compile_once(one, task)
    them = [Entrant(one, Worker(one, task, rules.clock), False) for one in fit]
    try:
        reference = _reference(us[0], task, rules)
        minimum = reference.objective
        for entrant in us:
            limit = rules.limit if entrant is us[0] else _limit(us[0], rules, rules.beaten, BRIEF)
            minimum = climb(entrant, limit, 0.0, minimum)
        tightest = min(rules.accuracies)
        for entrant in them:
            fastest = min([_seconds(one, tightest, minimum) for one in them], default=math.inf)
            limit = min(_limit(us[0], rules, rules.patience, 1.0), max(1.0, 2.0 * rules.hopeless * fastest))
            minimum = climb(entrant, limit, 0.1 * tightest, minimum, rules.hopeless * fastest)
            if entrant.best(max(rules.accuracies), minimum) is None:
                entrant.worker.close()
        _rounds(us, them, minimum, rules)
    finally:
        for entrant in us + them:
            entrant.worker.close()
    record: dict[str, Any] = finite(_record(task, us, them, minimum, reference, rules))
    return record


def _reference(entrant: Entrant, task: Task, rules: Rules) -> Outcome:
    """Our tightest run, untimed, after one at each rung: it tells where the minimum is, and all of them warm up.

    On a few rows `auto` may choose other solvers, so only runs on all rows fill a cold cache of kernels.
    """
    limit = max(3.0 * rules.limit, COLD)
    for rung in entrant.competitor.ladder(task):
        entrant.worker.run(rung, limit)
    return entrant.worker.run(Rung("reference", {"tolerance": 0.01 * min(rules.accuracies)}, 0.0), limit)


def _seconds(entrant: Entrant, accuracy: float, minimum: float) -> float:
    """Of its best first run to an accuracy; inf without."""
    found = entrant.best(accuracy, minimum)
    return math.inf if found is None else found.seconds


def _limit(first: Entrant, rules: Rules, times: float, least: float) -> float:
    """For the others: so many times the slowest run of the first, within [least, rules.limit]."""
    slowest = max((one.seconds for one in first.climbed if one.status == "ok"), default=math.inf)
    return float(min(max(least, times * slowest), rules.limit))


def _rounds(us: list[Entrant], them: list[Entrant], minimum: float, rules: Rules) -> None:
    """Run ours and the nearest peers at their best settings, each once a round, in a new random order every round."""
    chosen: dict[tuple[int, str], tuple[Entrant, Rung, float]] = {}
    everyone = us + them
    for accuracy in rules.accuracies:
        for group in (us, them):
            found = [(each, each.best(accuracy, minimum)) for each in group]
            times = [one.seconds for _, one in found if one is not None]
            for each, one in found:
                if one is not None and (one.seconds <= rules.near * min(times) or each is us[0]):
                    ladder = each.competitor.ladder(each.worker.task)
                    rung = next(rung for rung in ladder if rung.label == one.rung)
                    chosen[everyone.index(each), one.rung] = (each, rung, one.seconds)
    once = sum(seconds for _, _, seconds in chosen.values())
    rounds = max(min(3, rules.repetitions), min(rules.repetitions, int(rules.budget / max(once, 1e-9))))
    rng = np.random.default_rng(rules.seed)
    entries = list(chosen.values())
    for _ in range(rounds):
        for place in rng.permutation(len(entries)):
            each, rung, _ = entries[place]
            outcome = each.worker.run(rung, 3.0 * rules.limit)
            each.rounds.setdefault(rung.label, []).append(outcome)


def _record(
    task: Task, us: list[Entrant], them: list[Entrant], minimum: float, reference: Outcome, rules: Rules
) -> dict[str, Any]:
    problem = task.problem
    bounds = [one.details.get("bound", -math.inf) for each in us for one in each.climbed]
    bound = max([reference.details.get("bound", -math.inf), *bounds])
    return {
        "name": problem.name,
        "kind": problem.kind,
        "data": problem.data,
        "loss": problem.loss,
        "options": dict(problem.options),
        "l1": problem.l1,
        "l2": problem.l2,
        "rows": task.rows,
        "features": task.features,
        "nnz": task.dataset.nnz,
        "minimum": minimum,
        "bound": bound,
        "accuracies": list(rules.accuracies),
        "reference": reference.as_dict() | {"details": {}},
        "chosen": _chosen(us[0]),
        "entrants": [_entrant(each, minimum, rules, each is us[0]) for each in us + them],
    }


def _chosen(ours: Entrant) -> str:
    """The solver that our tightest run says it used."""
    return str(ours.climbed[-1].details.get("solver", "")).split(" (")[0].split(":")[0] if ours.climbed else ""


def _entrant(each: Entrant, minimum: float, rules: Rules, drawn: bool) -> dict[str, Any]:
    """What a competitor did: its ladder, the setting that counts for each accuracy, the times of the rounds.

    The history is kept where it will be drawn.
    """
    if not drawn:
        for one in each.climbed:
            one.details.pop("history", None)
    best: dict[str, Any] = {}
    base = each.minimum(minimum)
    for accuracy in rules.accuracies:
        reached = each.reached(accuracy, minimum)
        if reached:
            runs = [each.runs(one) for one in reached]
            fair = [many for many in runs if len(many) > 1] or runs
            many = min(fair, key=lambda many: float(np.median([run.seconds for run in many])))
            best[f"{accuracy:g}"] = {
                "rung": many[0].rung,
                "seconds": [run.seconds for run in many],
                "in_rounds": many[0] is not reached[runs.index(many)],
            }
    ladder = [one.as_dict() | {"suboptimality": suboptimality(one.objective, base)} for one in each.climbed]
    return {
        "name": each.competitor.name,
        "family": each.competitor.family,
        "ours": each.ours,
        "own_space": bool(getattr(each.competitor, "own_space", False)),
        "nearest": min((line["suboptimality"] for line in ladder), default=math.inf),
        "ladder": ladder,
        "best": best,
    }


def finite(value: Any) -> Any:
    """For JSON: None for a number that is not finite, at any depth."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
