"""Pegasos: Shalev-Shwartz, Singer & Srebro, ICML 2007; variants: Ryu & Choi, "Variants of Pegasos" (2009)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import careful_norm
from bmrm.problem import IncompatibleError, InputError, State, Vector, ability
from bmrm.problem.abilities import RowSubsets
from bmrm.problem.regularizer import StronglyConvex
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.instead import instead, name_of, refuse_bounds
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps

Rows = NDArray[np.int64]


class TwoOut:
    """Rows are removed permanently after their `count`-th bad step."""

    def __init__(self, rows: int, count: int) -> None:
        self.count = count
        self.left: Rows = np.arange(rows)
        self._blames = np.zeros(rows, np.int64)

    def blame(self, rows: Rows) -> None:
        """These rows took part in a bad step."""
        self._blames[rows] += 1
        if np.any(self._blames[rows] >= self.count):
            self.left = np.flatnonzero(self._blames < self.count)

    def details(self) -> Mapping[str, Any]:
        """The rows removed."""
        return {"removed": np.flatnonzero(self._blames >= self.count)}

    def state(self) -> State:
        """The bad steps of each row."""
        return {"rows_blames": self._blames}

    def resume(self, state: State) -> None:
        """Restore such a state."""
        if "rows_blames" in state:
            self._blames = np.array(state["rows_blames"], np.int64)
            self.left = np.flatnonzero(self._blames < self.count)


class Probability:
    """A row's sampling weight is 1 at first, and is multiplied by `decay` for every bad step."""

    def __init__(self, rows: int, decay: float) -> None:
        self.decay = decay
        self.logs = np.zeros(rows)

    def blame(self, rows: Rows) -> None:
        """These rows took part in a bad step."""
        self.logs[rows] += math.log(self.decay)

    def details(self) -> Mapping[str, Any]:
        """Each row's factor."""
        return {"chance": np.exp(self.logs)}

    def state(self) -> State:
        """The logarithms of the weights."""
        return {"rows_logs": self.logs}

    def resume(self, state: State) -> None:
        """Restore such a state."""
        if "rows_logs" in state:
            self.logs = np.array(state["rows_logs"], np.float64)


class Sampler:
    """Samples of `size` of the rows 0, ..., rows - 1, each without repetition.

    Parameters
    ----------
    rows, size, seed : as named.
    two_out, probability : what the variants of these names do to the rows of bad steps; None without.
    """

    def __init__(
        self,
        rows: int,
        size: int,
        seed: int,
        two_out: TwoOut | None = None,
        probability: Probability | None = None,
    ) -> None:
        self.rows, self.size = rows, size
        self.two_out, self.probability = two_out, probability
        self._rules = tuple(rule for rule in (two_out, probability) if rule is not None)
        self.random = np.random.default_rng(seed)

    def draw(self) -> Rows:
        """The rows of the next step; none when none is left."""
        left = None if self.two_out is None else self.two_out.left
        rows = self.rows if left is None else left.size
        if self.size >= rows:
            return np.arange(rows) if left is None else left
        chosen = self._of(rows) if self.probability is None else self._by_chance(self.probability.logs, left)
        return chosen if left is None else left[chosen]

    def _of(self, rows: int) -> Rows:
        return self.random.choice(rows, self.size, replace=False, shuffle=False)

    def _by_chance(self, logs: NDArray[np.float64], left: Rows | None) -> Rows:
        """The largest of log chance + Gumbel noise: a sample without repetition, each next row by its chance."""
        logs = logs if left is None else logs[left]
        keys = logs + self.random.gumbel(size=logs.size)
        return np.sort(np.argpartition(keys, logs.size - self.size)[logs.size - self.size :])

    def blame(self, rows: Rows) -> None:
        """These rows took part in a bad step."""
        for rule in self._rules:
            rule.blame(rows)

    def details(self) -> Mapping[str, Any]:
        """What the variants have recorded of the rows."""
        return {key: found for rule in self._rules for key, found in rule.details().items()}

    def state(self) -> State:
        """The state from which another one can continue."""
        kept = {key: found for rule in self._rules for key, found in rule.state().items()}
        return {"random": np.array(json.dumps(self.random.bit_generator.state)), **kept}

    def resume(self, state: State) -> None:
        """Restore such a state; InputError if it is of another variant."""
        try:
            self.random.bit_generator.state = json.loads(str(state["random"]))
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(f"the state of the random numbers to go on from is another one: {error}") from error
        for rule in self._rules:
            rule.resume(state)


PLAIN, VARIANTS = "plain", ("undo", "two_out", "probability")
"""Pegasos itself, and the variants that may be combined."""
BEST, LAST, MEAN = "best", "last", "mean"
"""What a run may return."""


LIMIT = 1e150
"""Size of weights beyond which squares overflow."""
PATIENCE = 1000
"""Evaluations without progress after which a run counts as stalled; it is large because steps are random."""


STATE = ("last", "mean", "counts", "radius", "random")
"""Keys of the saved state."""
TWO_OUT = {"variant": "two_out", "sample": 5}
CHANCE = {"variant": "probability", "sample": 5}
"""Settings under which the options of the variants have an effect, for tests."""


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
    vectors=9,
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
    `probability` draws the rows of bad steps less often. They combine: section 2.2 of the note is `[undo, two_out]` and
    `[undo, probability]`, sections 3.2 and 3.3 are `two_out` and `probability` alone.

    `details` has `steps`, `bad_steps`, `removed` (rows), `chance` (each row's factor) and, with `trace`, for each step
    `value` and `bad`. Callbacks get w_t as `iterate`.

    Memory: 56 dim + 32 rows bytes, with the variant `plain` and a small `sample` 56 dim; 32 dim more where all rows are
    evaluated at every step; 9 bytes for each step that is traced.

    Parameters
    ----------
    sample : rows per step; null, or the number of rows, for all: then this is subgradient descent.
    projection : project w to `||w||^2 <= (R(0) - inf R) / lambda`, where the solution lies (1 / lambda for the hinge
        loss; the note misprints the radius). True since `R(0) >= R(w*) + <a*, -w*>` and `a* = -lambda w*`. Losses whose
        slopes grow without bound, such as `least_squares`, diverge at first without it.
    averaging : evaluate the mean of all w so far instead of the last; one more pass a round.
    returns : `best` for the evaluated point of least J, which is the start where no other is better; `last` for the w
        of the last round, as the papers return it; `mean` for the mean of all w up to then, with `averaging`. Points
        without a finite J are not returned. The objective is J there, evaluated; CONVERGED becomes OWN_RULE where
        only a better point has met the tolerance.
    variant : `plain`, or one or a list of `undo`, `two_out`, `probability`.
    count : bad steps after which `two_out` removes a row (the note: 2, 4 is too many).
    decay : factor by which `probability` multiplies the sampling weight of rows in a bad step.
    judge : which value decides whether a step is bad: `objective` or `sample`; null: `objective` for `undo` alone, else
        `sample`. About half of all steps on few rows raise J, so that `objective` removes most of the rows within a few
        epochs; `sample` removes few, as in the note (about 80 of 2,144).
    trace : record `sample`, J on the rows of each step at w_t, or `objective`, J(w_t), which costs a pass a step where
        it does not judge; null for neither.
    epochs : stop with OWN_RULE after this many; null for no limit.
    evaluate_every : epochs between evaluations of J.
    seed : of the samples; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        A `variant` that does not exist, or is listed twice.
    IncompatibleError
        A risk that is not a sum over rows, or a regularizer that is not strongly convex; `averaging` where the last
        point is returned, which is then not evaluated.
    """

    sample: int | None = parameter(100, least=1, doc="rows of a step; null for all", example=1)
    projection: bool = parameter(True, doc="keep w in the ball of the solution", example=False)
    averaging: bool = parameter(False, doc="evaluate the mean of all w", example=True)
    returns: str = parameter(
        BEST,
        doc="which point: of least J, of the last round, or the mean of all",
        choices=(BEST, LAST, MEAN),
        example=LAST,
    )
    variant: str | tuple[str, ...] = parameter(
        PLAIN, doc="what is done about outliers", choices=(PLAIN, *VARIANTS), several=VARIANTS, example="undo"
    )
    count: int = parameter(2, least=1, doc="bad steps until two_out removes a row", example=1, beside=TWO_OUT)
    decay: float = parameter(
        0.5, above=0.0, below=1.0, doc="factor of the chance after a bad step", example=0.1, beside=CHANCE
    )
    judge: str | None = parameter(
        None,
        doc="what calls a step bad; null = objective for undo alone, else sample",
        choices=("objective", "sample"),
        example="objective",
        beside=TWO_OUT,
    )
    trace: str | None = parameter(
        None, doc="value of every step to record", choices=("objective", "sample"), example="sample"
    )
    epochs: int | None = parameter(None, least=1, doc="epochs at most", example=1)
    evaluate_every: int = parameter(1, least=1, doc="epochs between evaluations", example=2)
    seed: int | None = parameter(
        None, doc="of the samples; null = the config's", least=0, example=1, beside={"sample": 5}
    )

    @property
    def variants(self) -> frozenset[str]:
        """Those that are combined; empty for `plain`."""
        return frozenset((self.variant,) if isinstance(self.variant, str) else self.variant) - {PLAIN}

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        if self.averaging and self.returns == LAST:
            raise IncompatibleError("pegasos: averaging evaluates means, the last w is none; use returns: mean")
        regularizer = run.regularizer
        refuse_bounds(run, self.name)
        if not (isinstance(regularizer, StronglyConvex) and regularizer.modulus > 0.0):
            raise IncompatibleError(
                f"pegasos needs a strongly convex regularizer, which {name_of(regularizer)} is not; use l2, or"
                f" solver {instead(run)}"
            )
        subsets = ability(run.risk, RowSubsets)
        if subsets is None and self.sample is not None:
            raise IncompatibleError(
                "pegasos draws rows, which needs a loss that is a sum over rows and no free intercept; use bias:"
                f" regularized or none, sample: null (all rows in each step), or solver {instead(run)}"
            )
        return _Run(self, run, regularizer.modulus, subsets).go()


@dataclass
class _Run:
    """The state of Pegasos."""

    options: Pegasos
    run: Monitor
    modulus: float
    subsets: RowSubsets | None
    steps: int = 0
    bad_steps: int = 0
    radius: float = math.inf
    epochs: int = 0
    values: list[float] = field(default_factory=list)
    bad: list[bool] = field(default_factory=list)
    sampler: Sampler = field(init=False)
    returned: Vector | None = None
    """What is returned in place of the best point: that of the last round."""
    _known: tuple[tuple[Vector, float, Vector], ...] = ()
    """The last two points that all rows were evaluated at, with R and a subgradient; the last used is the last."""

    def __post_init__(self) -> None:
        rows = 1 if self.subsets is None else self.subsets.rows
        o = self.options
        size = rows if o.sample is None else min(o.sample, rows)
        variants = o.variants
        two_out = TwoOut(rows, o.count) if "two_out" in variants else None
        probability = Probability(rows, o.decay) if "probability" in variants else None
        self.sampler = Sampler(rows, size, o.seed or 0, two_out, probability)
        self.judges, self.undoes = bool(variants), "undo" in variants
        self.by_objective = (o.judge or ("objective" if variants == {"undo"} else "sample")) == "objective"
        self.remembers = size == rows or o.trace == "objective" or (self.judges and self.by_objective)
        self.averages = o.averaging or o.returns == MEAN
        self.steps_a_round = o.evaluate_every * max(1, math.ceil(rows / size))
        self.certificate = Certificate(self.run.regularizer, self.run.risk.infimum)

    def go(self) -> Steps:
        """Rounds of steps until a rule is met."""
        run, options, rule = self.run, self.options, ""
        run.patience, run.finish = PATIENCE, self._finish
        w = run.start
        mean = w
        run.iterate = w
        value = self._evaluate(w)
        if options.projection:
            self.radius = self._radius(value, w)
        saved = None if run.earlier is None else run.earlier.state_of("pegasos", *STATE)
        if saved is not None:
            w, mean = self._resume(saved)
            self.returned = mean if self.averages else w
        yield Step.ITERATION
        while not rule:
            for _ in range(self.steps_a_round):
                rows = self.sampler.draw()
                if not rows.size:
                    rule = "every row has been removed"
                    break
                w = self._step(w, rows)
                self.steps += 1
                mean = mean + (w - mean) / self.steps
            self.epochs += options.evaluate_every
            run.state, run.iterate = partial(self._state, w, mean), w
            self._evaluate(w, mean if self.averages else None)
            yield Step.ITERATION
            if options.epochs is not None and self.epochs >= options.epochs:
                rule = f"{self.epochs} epochs"
        return rule

    def _finish(self) -> dict[str, Any]:
        """Say which point is returned, and the details."""
        if self.options.returns != BEST and self.returned is not None:
            self.run.settle(self.returned)
        details = {"steps": self.steps, "bad_steps": self.bad_steps, **self.sampler.details()}
        if self.options.trace is not None:
            details |= {"value": np.array(self.values), "bad": np.array(self.bad, bool)}
        return details

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

    def _step(self, w: Vector, rows: Rows) -> Vector:
        run = self.run
        value, a = self._sampled(rows, w)
        direction = run.regularizer.subgradient(w) + a
        self._note(w, value)
        if not (math.isfinite(value) and np.all(np.isfinite(direction))):
            return 0.5 * (w + run.w)
        after = direction
        with np.errstate(over="ignore"):
            after /= self.modulus * (self.steps + 1)
            np.subtract(w, after, out=after)
        length = careful_norm(after)
        if self.radius < length < math.inf:
            after *= self.radius / length
        elif not length < LIMIT:
            return 0.5 * (w + run.w)
        if not (self.judges and self._rises(rows, w, value, after)):
            return after
        self.bad_steps += 1
        self.sampler.blame(rows)
        if self.bad:
            self.bad[-1] = True
        return w if self.undoes else after

    def _note(self, w: Vector, value: float) -> None:
        """For `trace`, at the beginning of a step: R of its sample is `value`."""
        if self.options.trace is None:
            return
        risk = value if self.options.trace == "sample" else self._whole(w)[0]
        self.values.append(risk + self.run.regularizer.value(w))
        self.bad.append(False)

    def _rises(self, rows: Rows, w: Vector, value: float, after: Vector) -> bool:
        """Whether the value that judges, R of the sample at `w` being `value`, is larger at `after`."""
        before = self._whole(w)[0] if self.by_objective else value
        later = self._whole(after)[0] if self.by_objective else self._sampled(rows, after)[0]
        return later + self.run.regularizer.value(after) > before + self.run.regularizer.value(w)

    def _sampled(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        if self.subsets is None or rows.size == self.subsets.rows:
            return self._whole(w)
        return self.subsets.value_and_subgradient_of(rows, w)

    def _whole(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and a subgradient; no pass where `w` is one of the last two points: this step's or the next."""
        found = next((known for known in self._known if known[0] is w), None)
        if found is None:
            found = w, *self.run.risk.value_and_subgradient(w)
        if self.remembers:
            self._known = (*(known for known in self._known[-2:] if known is not found), found)[-2:]
        return found[1:]

    def _evaluate(self, w: Vector, mean: Vector | None = None) -> float:
        """R(w), its plane for the bound, and J at `w`, or at `mean` (planes at the mean hardly differ)."""
        run = self.run
        value, a = self._whole(w)
        run.take_plane(self.certificate, w, value, a)
        point, value_there = (w, value) if mean is None else (mean, run.risk.value_and_subgradient(mean)[0])
        objective = value_there + run.regularizer.value(point)
        run.improve(point, objective, fresh=True)
        if math.isfinite(objective):
            self.returned = point
        return value

    def _radius(self, value: float, w: Vector) -> float:
        at_zero = self.run.risk.value_and_subgradient(np.zeros_like(w))[0] if np.any(w) else value
        return math.sqrt(max(0.0, at_zero - self.run.risk.infimum) / self.modulus)
