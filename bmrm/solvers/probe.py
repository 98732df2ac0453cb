"""PROBE, the Periodic Random Orbiter: Smith, Kim & Wilbur, AAAI 2012, Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from bmrm.problem import IncompatibleError, InputError, State, Vector, ability, shown
from bmrm.problem.abilities import ActiveSet, RowSubsets
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.instead import refuse_bounds
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps

QUIET, LEAST, MOST = 10, 5, 15
"""Consecutive steps with slope 0 after which a row becomes dormant, and the least and largest number of steps that it
stays so."""
STATE = ("point", "before", "cycles")
"""Keys of the saved state."""
PATIENCE = 1000
"""Steps without a new minimum after which a run counts as stalled; many cycles may pass without one."""


@register(
    "probe",
    problem="any convex risk bounded below; any regularizer",
    needs="value and subgradient; RowSubsets to leave rows out",
    certificate="planes of all rows, mixed",
    cost="1 pass over the active rows, and the rest at a new minimum",
    refuses=("bounds",),
    source="Smith, Kim & Wilbur 2012",
    accuracy=0.05,
    rule="phi < epsilon",
    vectors=11,
)
@dataclass(frozen=True)
class Probe(IterativeSolver):
    """Subgradient steps whose length follows from an estimate of the minimum, which is tested in cycles.

    With `f_min` the least J so far and `phi` the estimated share of it above the minimum, each step is
    `w <- w - (J(w) - (1 - phi) f_min) / ||g||^2 g`, values counted from the infimum of the risk (0 in the paper). A
    cycle ends after `upticks` rises of J. If a normal cycle brought no new minimum, a test cycle tries `gamma phi`
    and a retest cycle `phi` again; `gamma phi` is kept if it lowered `f_min` at least as fast per step. The run ends
    with OWN_RULE when `phi < epsilon`, or earlier at `tolerance` (with 0 only the rule ends it).

    Rows whose slope was 0 in 10 steps become dormant for 5 to 15 steps. With `minimum: exact` they are evaluated, too,
    before a new minimum is accepted. With `partial`, as in the paper, `f_min` is of the rows evaluated at its step,
    which may be too low; its point is evaluated on all rows at the end, once, and returned if it is better than those
    evaluated so before. Either way `objective` is exact. Rows become dormant only where slopes are 0 (hinge-like
    losses), and save the more time the longer rows are.

    `details` has, for each step, `value` (J, dormant rows left out), `phi`, `cycle` (0 normal, 1 test, 2 retest) and
    `active` (share of the rows). With `diagnostics` also `distance` to the reference, and for the idealised PROBE*
    (which knows the minimum) and IDEAL (which knows the minimiser) from the same start `probe_star_distance`,
    `probe_star_value`, `ideal_distance`, `ideal_value`: figures 1 and 2 of the paper. Callbacks get w_t as `iterate`,
    for figure 3.

    Memory: 64 dim + 32 rows bytes; the rows only where they may become dormant.

    Parameters
    ----------
    gamma : factor of phi, and its first value.
    ccf : rises of J that end a cycle.
    epsilon : phi below which the run ends.
    dormant : whether rows become dormant, where the risk has `RowSubsets`.
    minimum : `exact` or `partial`: what counts as `f_min` where rows are dormant.
    diagnostics : `{reference: w}`, w the minimiser or an approximation of it; null for none.
    seed : of the random lengths of dormancy; null = that of the config, 0 from Python.

    Raises
    ------
    IncompatibleError
        The infimum of the risk is unknown.
    """

    gamma: float = parameter(2.0 / 3.0, above=0.0, below=1.0, doc="factor of phi", example=0.5)
    ccf: int = parameter(2, least=1, doc="rises of J that end a cycle", example=1)
    epsilon: float = parameter(0.05, above=0.0, below=1.0, doc="phi that ends the run", example=0.5)
    dormant: bool = parameter(True, doc="leave out rows that have not mattered for a while", example=False)
    minimum: str = parameter(
        "exact",
        doc="of all rows, or of those evaluated",
        choices=("exact", "partial"),
        example="partial",
        beside={"dormant": True, "tolerance": 0.0},
    )
    diagnostics: Mapping[str, tuple[float, ...]] | None = parameter(
        None,
        doc="{reference: w} records distances to w, and runs PROBE* and IDEAL",
        example={"reference": (0.0,) * 6},
    )
    seed: int | None = parameter(None, doc="of the random lengths of dormancy; null = the config's", least=0, example=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.diagnostics is not None and set(self.diagnostics) != {"reference"}:
            raise InputError(f"Probe: diagnostics has {shown(sorted(self.diagnostics))}, expected reference")

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        refuse_bounds(run, self.name)
        if not math.isfinite(run.risk.infimum):
            raise IncompatibleError("probe needs a risk whose infimum is known; use solver bundle")
        reference = None if self.diagnostics is None else np.array(self.diagnostics["reference"], np.float64)
        if reference is not None and reference.shape != (run.risk.dim,):
            raise InputError(f"probe: the reference has shape {reference.shape}, expected ({run.risk.dim},)")
        return _Run(self, run, reference).go()


@dataclass
class _Run:
    """The state of PROBE."""

    options: Probe
    run: Monitor
    reference: Vector | None
    trace: dict[str, list[float]] = field(default_factory=dict)
    active_set: ActiveSet | None = field(init=False)
    lowest: tuple[float, Vector] | None = None
    """The least J of the rows evaluated, and where: with `minimum: partial`, while it is below that of all rows."""

    def __post_init__(self) -> None:
        subsets = ability(self.run.risk, RowSubsets) if self.options.dormant else None
        self.active_set = None if subsets is None else subsets.active_set(QUIET, LEAST, MOST, self.options.seed or 0)
        self.certificate = Certificate(self.run.regularizer, self.run.risk.infimum)
        self.run.patience = PATIENCE

    def go(self) -> Steps:
        """Algorithm 1."""
        run, floor = self.run, self.run.risk.infimum
        run.finish = self._finish
        cycles = Cycles(self.options.gamma, self.options.ccf)
        w, before = run.start, UNSEEN
        saved = None if run.earlier is None else run.earlier.state_of("probe", *STATE)
        if saved is not None:
            self._evaluate(w)
            w, before = self._resume(saved, cycles)
        while True:
            run.state, run.iterate = partial(self._state, w, before, cycles.numbers()), w
            value, g, active = self._evaluate(w)
            least = run.objective if self.lowest is None else self.lowest[0]
            least = least - floor if math.isfinite(least) else UNSEEN
            rose = value > before
            cycles.step(rose, least)
            self._note(value, cycles, active, w)
            yield Step.ITERATION
            if cycles.phi < self.options.epsilon:
                return "phi is below epsilon"
            before = value
            with np.errstate(over="ignore", invalid="ignore"):  # a gradient too steep for its square is no guide
                square = float(g @ g)
            if not (math.isfinite(value) and math.isfinite(square)):
                w = 0.5 * (run.w + w)
            elif square == 0.0:
                yield Step.STALLED
                return None
            else:
                step = (value - floor - (1.0 - cycles.phi) * least) / square * g
                w = np.subtract(w, step, out=step)

    def _finish(self) -> dict[str, Any]:
        if self.lowest is not None:
            self._evaluate_all(self.lowest[1])
        details: dict[str, Any] = {key: np.array(values) for key, values in self.trace.items()}
        if self.reference is not None:
            details |= self._idealised(self.run.start, self.reference, len(self.trace.get("value", [])))
        return details

    def _state(self, w: Vector, before: float, numbers: list[float]) -> State:
        lowest = {} if self.lowest is None else {"lowest": self.lowest[1]}
        return {"point": w, "before": np.array(before), "cycles": np.array(numbers), **lowest}

    def _resume(self, state: State, cycles: Cycles) -> tuple[Vector, float]:
        """The next point, and the value at the one before; the cycles, too."""
        w = np.array(state["point"], np.float64)
        if w.shape != self.run.start.shape or state["cycles"].shape != (len(cycles.numbers()),):
            raise InputError("the state of probe to go on from has another shape")
        cycles.resume(state["cycles"].tolist())
        if "lowest" in state:
            self._evaluate_all(np.array(state["lowest"], np.float64))
        return w, float(state["before"])

    def _evaluate(self, w: Vector) -> tuple[float, Vector, float]:
        """J and a subgradient at `w`, and the share of rows evaluated, which is 1 where J is an exact new minimum."""
        run = self.run
        if self.active_set is None:
            return *self._evaluate_all(w), 1.0
        penalty = run.regularizer.value(w)
        risk, a, active = self.active_set.step(w)
        value = risk + penalty
        if active < 1.0 and value < (run.objective if self.lowest is None else self.lowest[0]):
            if self.options.minimum == "partial":
                self.lowest = value, w
            else:
                rest, more = self.active_set.rest(w)
                risk, a, active = risk + rest, a + more, 1.0
                value = risk + penalty
        if active == 1.0:
            self._take(w, risk, a)
        return value, a + run.regularizer.subgradient(w), active

    def _evaluate_all(self, w: Vector) -> tuple[float, Vector]:
        """J and a subgradient at `w`, of all rows."""
        risk, a = self.run.risk.value_and_subgradient(w)
        self._take(w, risk, a)
        return risk + self.run.regularizer.value(w), a + self.run.regularizer.subgradient(w)

    def _take(self, w: Vector, risk: float, a: Vector) -> None:
        """R(w) and a subgradient, of all rows."""
        run = self.run
        objective = risk + run.regularizer.value(w)
        run.improve(w, objective, fresh=True)
        run.take_plane(self.certificate, w, risk, a)
        if self.lowest is not None and objective <= self.lowest[0]:
            self.lowest = None

    def _note(self, value: float, cycles: Cycles, active: float, w: Vector) -> None:
        line = {"value": value, "phi": cycles.phi, "cycle": float(cycles.kind), "active": active}
        if self.reference is not None:
            line["distance"] = float(np.linalg.norm(w - self.reference))
        for key, number in line.items():
            self.trace.setdefault(key, []).append(number)

    def _idealised(self, start: Vector, reference: Vector, steps: int) -> dict[str, Any]:
        """Distances and values of PROBE* and IDEAL for as many steps."""
        risk, regularizer = self.run.given, self.run.regularizer
        minimum = risk.value_and_subgradient(reference)[0] + regularizer.value(reference)
        table: dict[str, Any] = {}
        for name in ("probe_star", "ideal"):
            w, distances, values = start, np.zeros(steps), np.zeros(steps)
            for t in range(steps):
                value, a = risk.value_and_subgradient(w)
                values[t] = value + regularizer.value(w)
                distances[t] = np.linalg.norm(w - reference)
                g = a + regularizer.subgradient(w)
                square = float(g @ g)
                gain = values[t] - minimum if name == "probe_star" else float(g @ (w - reference))
                w = w - (gain / square if square > 0.0 else 0.0) * g
            table |= {f"{name}_distance": distances, f"{name}_value": values}
        return table


UNSEEN = 1e100
"""Value of f before the first step, as in the paper."""


class CycleKind(IntEnum):
    """The kind of a cycle."""

    NORMAL = 0
    TEST = 1
    RETEST = 2


class Cycles:
    """phi, and the current cycle.

    Parameters
    ----------
    gamma : factor of phi.
    ccf : rises of f that end a cycle.
    """

    def __init__(self, gamma: float, ccf: int) -> None:
        self.gamma, self.ccf = gamma, ccf
        self.phi = gamma
        self.kind = CycleKind.NORMAL
        self._rises = 0
        self._steps = 0
        self._least_before = UNSEEN
        self._average_before = 0.0

    def numbers(self) -> list[float]:
        """The state from which another one can continue."""
        known = self.phi, self.kind, self._rises, self._steps, self._least_before, self._average_before
        return [float(number) for number in known]

    def resume(self, numbers: Sequence[float]) -> None:
        """Restore such a state."""
        self.phi, kind, rises, steps, self._least_before, self._average_before = (float(one) for one in numbers)
        self.kind, self._rises, self._steps = CycleKind(int(kind)), int(rises), int(steps)

    def step(self, rose: bool, least: float) -> None:
        """Record a step: whether f rose in it, and the least f so far."""
        self._steps += 1
        self._rises += rose
        if self._rises < self.ccf:
            return
        average = (self._least_before - least) / self._steps
        _ENDS[self.kind](self, least, average)
        self._rises = self._steps = 0
        self._least_before = least

    def _end_normal(self, least: float, average: float) -> None:
        if least == self._least_before:
            self.phi *= self.gamma
            self.kind = CycleKind.TEST

    def _end_test(self, least: float, average: float) -> None:
        self.phi /= self.gamma
        self._average_before = average
        self.kind = CycleKind.RETEST

    def _end_retest(self, least: float, average: float) -> None:
        if average <= self._average_before:
            self.phi *= self.gamma
        self.kind = CycleKind.NORMAL


_ENDS = {CycleKind.NORMAL: Cycles._end_normal, CycleKind.TEST: Cycles._end_test, CycleKind.RETEST: Cycles._end_retest}
