"""Pegasos: Shalev-Shwartz, Singer & Srebro, ICML 2007; variants: Ryu & Choi, "Variants of Pegasos" (2009)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import norm
from bmrm.problem import (
    Callback,
    IncompatibleError,
    InputError,
    Regularizer,
    Risk,
    RowSubsets,
    Solution,
    State,
    Status,
    StronglyConvex,
    Vector,
    ability,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.monitor import IterativeSolver, Monitor

Rows = NDArray[np.int64]


class Sampler:
    """Samples of `size` of the rows 0, ..., rows - 1, each without repetition.

    Parameters
    ----------
    rows, size, seed : as named.
    count : number of bad steps after which a row is removed (`TwoOut`).
    decay : factor of a row's sampling weight for every bad step (`Probability`).
    """

    judges: ClassVar[bool] = False
    """Whether steps must be compared, to find the rows of bad steps."""

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        self.rows, self.size, self.count, self.decay = rows, size, count, decay
        self.random = np.random.default_rng(seed)

    def draw(self) -> Rows:
        """The rows of the next step; none when none is left."""
        return self._of(self.rows)

    def blame(self, rows: Rows) -> None:
        """These rows took part in a bad step."""

    def details(self) -> Mapping[str, Any]:
        """What the variant has recorded of the rows."""
        return {}

    def state(self) -> State:
        """The state from which another one can continue."""
        return {"random": np.array(json.dumps(self.random.bit_generator.state))}

    def resume(self, state: State) -> None:
        """Restore such a state; InputError if it is of another variant."""
        try:
            self.random.bit_generator.state = json.loads(str(state["random"]))
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(f"the state of the random numbers to go on from is another one: {error}") from error

    def _of(self, rows: int) -> Rows:
        if self.size >= rows:
            return np.arange(rows)
        return self.random.choice(rows, self.size, replace=False, shuffle=False)


class Undo(Sampler):
    """As `Sampler`; only steps are reverted, rows are not penalised."""

    judges = True


class TwoOut(Sampler):
    """A row is removed permanently after its `count`-th bad step."""

    judges = True

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        super().__init__(rows, size, seed, count, decay)
        self._left: Rows = np.arange(rows)
        self._blames = np.zeros(rows, np.int64)

    def draw(self) -> Rows:
        return self._left[self._of(self._left.size)]

    def blame(self, rows: Rows) -> None:
        self._blames[rows] += 1
        if np.any(self._blames[rows] >= self.count):
            self._left = np.flatnonzero(self._blames < self.count)

    def state(self) -> State:
        return {**super().state(), "rows_blames": self._blames}

    def resume(self, state: State) -> None:
        super().resume(state)
        if "rows_blames" in state:
            self._blames = np.array(state["rows_blames"], np.int64)
            self._left = np.flatnonzero(self._blames < self.count)

    def details(self) -> Mapping[str, Any]:
        return {"removed": np.flatnonzero(self._blames >= self.count)}


class Probability(Sampler):
    """A row's sampling weight is 1 at first, and is multiplied by `decay` for every bad step."""

    judges = True

    def __init__(self, rows: int, size: int, seed: int, count: int, decay: float) -> None:
        super().__init__(rows, size, seed, count, decay)
        self._logs = np.zeros(rows)

    def draw(self) -> Rows:
        if self.size >= self.rows:
            return np.arange(self.rows)
        # the largest of log chance + Gumbel noise: a sample without repetition, each next row by its chance
        keys = self._logs + self.random.gumbel(size=self.rows)
        return np.sort(np.argpartition(keys, self.rows - self.size)[self.rows - self.size :])

    def blame(self, rows: Rows) -> None:
        self._logs[rows] += np.log(self.decay)

    def state(self) -> State:
        return {**super().state(), "rows_logs": self._logs}

    def resume(self, state: State) -> None:
        super().resume(state)
        if "rows_logs" in state:
            self._logs = np.array(state["rows_logs"], np.float64)

    def details(self) -> Mapping[str, Any]:
        return {"chance": np.exp(self._logs)}


VARIANTS: Mapping[str, type[Sampler]] = {
    "plain": Sampler,
    "undo": Undo,
    "two_out": TwoOut,
    "probability": Probability,
}


LIMIT = 1e150
"""Weights beyond which squares overflow."""
PATIENCE = 1000
"""Evaluations without progress after which a run counts as stalled; it is large because steps are random."""


STATE = ("last", "mean", "counts", "radius", "random")
"""Names in the saved state."""
TWO_OUT = {"variant": "two_out", "sample": 5}
CHANCE = {"variant": "probability", "sample": 5}
"""Settings under which the options of the variants have an effect."""


@register(
    "pegasos",
    problem="sums over rows; strongly convex regularizers such as l2",
    needs="RowSubsets; a strongly convex regularizer",
    certificate="planes at the evaluated points, mixed",
    cost="an epoch of small samples, and 1 pass to evaluate",
    source="Shalev-Shwartz, Singer & Srebro 2007; Ryu & Choi 2009",
    abilities=("RowSubsets",),
    refuses=("not strongly convex",),
    accuracy=0.05,
)
@dataclass(frozen=True)
class Pegasos(IterativeSolver):
    """Stochastic subgradient steps of length 1 / (lambda t) on random samples of the rows.

    `w <- w - (Omega'(w) + a) / (lambda t)`, with `a` a subgradient of the mean loss of `sample` rows drawn without
    repetition; for l2 this is `(1 - 1/t) w - a / (lambda t)`. An iteration is a round of `evaluate_every` epochs and
    one evaluation of J, whose plane is used for the lower bound. The error falls as 1 / (lambda t): good for a rough
    solution of a large problem, not for a small gap.

    The variants detect outliers: a step is bad if J rises (the note's eq. 1), which costs a pass per step, or if J on
    the sample rises (eq. 3). `undo` reverts bad steps. `two_out` removes rows that took part in `count` bad steps,
    `probability` draws the rows of bad steps less often. `details` has `steps`, `bad_steps`, `removed` (rows) and
    `chance` (each row's factor).

    Memory: 56 dim + 32 rows bytes, with the variant `plain` and a small `sample` 56 dim.

    Parameters
    ----------
    sample : rows per step; null, or the number of rows, for all: then this is subgradient descent.
    projection : project w to `||w||^2 <= (R(0) - inf R) / lambda`, where the solution lies (1 / lambda for the hinge
        loss; the note misprints the radius). True since `R(0) >= R(w*) + <a*, -w*>` and `a* = -lambda w*`. Losses whose
        slopes grow without bound, such as `least_squares`, diverge at first without it.
    averaging : evaluate and return the mean of all w so far instead of the last; one more pass a round.
    variant : `plain`, `undo`, `two_out` or `probability`.
    count : bad steps after which `two_out` removes a row (the note: 2, 4 is too many).
    decay : factor by which `probability` multiplies the sampling weight of rows in a bad step.
    take_back : whether `two_out` and `probability` also revert bad steps: yes in section 2.2 of the note, no in
        sections 3.2 and 3.3.
    judge : which value decides whether a step is bad: `objective` or `sample`.
    epochs : stop with OWN_RULE after this many; null for no limit.
    evaluate_every : epochs between evaluations of J.
    seed : of the samples; null = that of the config, 0 from Python.

    Raises
    ------
    IncompatibleError
        A risk that is not a sum over rows, or a regularizer that is not strongly convex.
    """

    sample: int | None = parameter(100, least=1, doc="rows of a step; null for all", example=1)
    projection: bool = parameter(True, doc="keep w in the ball of the solution", example=False)
    averaging: bool = parameter(False, doc="return the mean of all w", example=True)
    variant: str = parameter("plain", doc="what is done about outliers", choices=tuple(VARIANTS), example="undo")
    count: int = parameter(2, least=1, doc="bad steps until two_out removes a row", example=1, beside=TWO_OUT)
    decay: float = parameter(
        0.5, above=0.0, below=1.0, doc="factor of the chance after a bad step", example=0.1, beside=CHANCE
    )
    take_back: bool = parameter(False, doc="two_out, probability: take bad steps back", example=True, beside=TWO_OUT)
    judge: str = parameter(
        "objective", doc="what calls a step bad", choices=("objective", "sample"), example="sample", beside=TWO_OUT
    )
    epochs: int | None = parameter(None, least=1, doc="epochs at most", example=1)
    evaluate_every: int = parameter(1, least=1, doc="epochs between evaluations", example=2)
    seed: int | None = parameter(
        None, doc="of the samples; null = the config's", least=0, example=1, beside={"sample": 5}
    )

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        if not (isinstance(regularizer, StronglyConvex) and regularizer.modulus > 0.0):
            raise IncompatibleError(
                f"pegasos needs a strongly convex regularizer, which {type(regularizer).__name__} is not; use l2, or"
                " solver bundle"
            )
        with self.monitor(risk, regularizer, start, callback) as run:
            subsets = ability(run.risk, RowSubsets)
            if subsets is None and self.sample is not None:
                raise IncompatibleError(
                    "pegasos needs a risk with the ability RowSubsets (a loss that is a sum over rows, no free"
                    " intercept); use sample: null, or solver bundle"
                )
            return _Run(self, run, regularizer.modulus, subsets).go(self.name)


@dataclass
class _Run:
    """What changes while Pegasos runs."""

    options: Pegasos
    run: Monitor
    modulus: float
    subsets: RowSubsets | None
    steps: int = 0
    bad_steps: int = 0
    radius: float = math.inf
    epochs: int = 0
    sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        rows = 1 if self.subsets is None else self.subsets.rows
        o = self.options
        size = rows if o.sample is None else min(o.sample, rows)
        self.sampler = VARIANTS[o.variant](rows, size, o.seed or 0, o.count, o.decay)
        self.takes_back = o.variant == "undo" or o.take_back
        self.steps_a_round = o.evaluate_every * max(1, math.ceil(rows / size))
        self.certificate = Certificate(self.run.regularizer, self.run.risk.infimum)

    def go(self, name: str) -> Solution:
        """Rounds of steps until a rule or a limit is met."""
        run, rule = self.run, ""
        run.patience = PATIENCE
        with run.iterating():
            rule = self._rounds()
        details = {"steps": self.steps, "bad_steps": self.bad_steps, **self.sampler.details()}
        named = f"{name}: {rule}" if run.status is Status.OWN_RULE else name
        return run.solution(named, details=details)

    def _rounds(self) -> str:
        """Returns the rule."""
        run, options, rule = self.run, self.options, ""
        w = run.start
        mean = w
        value = self._evaluate(w)
        if options.projection:
            self.radius = self._radius(value, w)
        done = run.record()
        saved = None if run.earlier is None else run.earlier.state_of("pegasos", *STATE)
        if saved is not None:
            w, mean = self._resume(saved)
        epochs = self.epochs
        while not done:
            for _ in range(self.steps_a_round):
                rows = self.sampler.draw()
                if not rows.size:
                    rule = "every row has been removed"
                    break
                w = self._step(w, rows)
                self.steps += 1
                mean = mean + (w - mean) / self.steps
            epochs = self.epochs = epochs + options.evaluate_every
            run.state = partial(self._state, w, mean)
            self._evaluate(w, mean if options.averaging else None)
            done = run.record()
            if not done and options.epochs is not None and epochs >= options.epochs:
                rule = f"{epochs} epochs"
            if not done and rule:
                run.finish_by_rule()
                done = True
        return rule

    def _state(self, w: Vector, mean: Vector) -> State:
        counts = np.array([self.steps, self.bad_steps, self.epochs])
        return {"last": w, "mean": mean, "counts": counts, "radius": np.array(self.radius), **self.sampler.state()}

    def _resume(self, state: State) -> tuple[Vector, Vector]:
        """The last w and the mean of all, with the counts and the state of the sampler."""
        w, mean = (np.array(state[name], np.float64) for name in ("last", "mean"))
        if w.shape != self.run.start.shape or mean.shape != w.shape or state["counts"].shape != (3,):
            raise InputError("the state of pegasos to go on from has another shape")
        self.steps, self.bad_steps, self.epochs = (int(count) for count in state["counts"])
        self.radius = float(state["radius"])
        self.sampler.resume(state)
        return w, mean

    def _step(self, w: Vector, rows: NDArray[np.int64]) -> Vector:
        run = self.run
        value, a = self._sampled(rows, w)
        direction = run.regularizer.subgradient(w) + a
        if not (math.isfinite(value) and np.all(np.isfinite(direction))):
            return 0.5 * (w + run.w)
        with np.errstate(over="ignore"):
            after: Vector = w - direction / (self.modulus * (self.steps + 1))
        largest = float(np.abs(after).max(initial=0.0))
        length = largest * norm(after / largest) if 0.0 < largest < math.inf else largest  # squares may overflow
        if length > self.radius and math.isfinite(largest):
            after *= self.radius / length
        elif not length < LIMIT:
            return 0.5 * (w + run.w)
        if self.sampler.judges and self._value(rows, after, None) > self._value(rows, w, value):
            self.bad_steps += 1
            self.sampler.blame(rows)
            return w if self.takes_back else after
        return after

    def _sampled(self, rows: NDArray[np.int64], w: Vector) -> tuple[float, Vector]:
        if self.subsets is None or rows.size == self.subsets.rows:
            return self.run.risk.value_and_subgradient(w)
        return self.subsets.value_and_subgradient_of(rows, w)

    def _value(self, rows: NDArray[np.int64], w: Vector, sampled: float | None) -> float:
        """J, or J on the sample, whose risk may have been computed already."""
        if self.options.judge == "objective":
            risk = self._known(w)
        else:
            risk = self._sampled(rows, w)[0] if sampled is None else sampled
        return risk + self.run.regularizer.value(w)

    _last: tuple[Vector, float] | None = None

    def _known(self, w: Vector) -> float:
        """R(w), kept for the next step."""
        if self._last is None or not np.array_equal(self._last[0], w):
            self._last = w, self.run.risk.value_and_subgradient(w)[0]
        return self._last[1]

    def _evaluate(self, w: Vector, mean: Vector | None = None) -> float:
        """R(w), its plane for the bound, and J at `w`, or at `mean` (planes at the mean hardly differ)."""
        run = self.run
        value, a = run.risk.value_and_subgradient(w)
        run.take_plane(self.certificate, w, value, a)
        if mean is None:
            run.improve(w, value + run.regularizer.value(w), fresh=True)
        else:
            value_there = run.risk.value_and_subgradient(mean)[0]
            run.improve(mean, value_there + run.regularizer.value(mean), fresh=True)
        return value

    def _radius(self, value: float, w: Vector) -> float:
        at_zero = self.run.risk.value_and_subgradient(np.zeros_like(w))[0] if np.any(w) else value
        return math.sqrt(max(0.0, at_zero - self.run.risk.infimum) / self.modulus)
