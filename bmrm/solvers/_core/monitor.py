"""The driver: one loop for all solvers, with limits, callback, history, Ctrl-C; best point and bound: `Best`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any, ClassVar

import numpy as np

from bmrm.data.dataset import plain_numbers
from bmrm.kernels.blas_threads import one_thread
from bmrm.kernels.compiling import COMPILING, working_clock
from bmrm.problem import (
    Callback,
    HasConjugate,
    IncompatibleError,
    InputError,
    Iteration,
    Regularizer,
    Risk,
    SavedPlanes,
    Solution,
    Start,
    State,
    Status,
    Vector,
    ability,
    provides,
    relative_gap,
)
from bmrm.problem.abilities import ProblemSize, Traffic
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.problem.regularizer import HasBounds, space_of
from bmrm.problem.solution import relative_goal
from bmrm.registry import check_parameters, parameter
from bmrm.solvers._core.best import ROUNDING, Best, Evaluated
from bmrm.solvers._core.budget import AgreedBudget, Budget
from bmrm.solvers._core.free_weights import free_proof
from bmrm.solvers._core.instead import name_of
from bmrm.solvers._core.rounding import Proof

COMPLETE = Status.CONVERGED, Status.STALLED
"""Statuses for which the final bound is checked; at a limit the bound is the best so far."""

PROVED = "proved"
"""Key, in the saved state, of the last bound that was recomputed from scratch."""
PATIENCE = 60
"""Iterations without progress of bound or objective beyond rounding after which a run counts as stalled."""

CREEPING = 1e-9
"""Share of the gap that counts as no progress where `PATIENCE` iterations close no more of it."""

SLICED = "auto, bundle, lbfgs and line_search_bundle"
"""The solvers that take slices of w, in words."""

NOTHING = Iteration(0, math.inf, -math.inf, 0.0, 0.0)
"""History of a cold start."""

EARLY_ENDS = Status.STALLED, Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED

LITTLE = 150_000
"""Entries of the data up to which an iteration costs no more than its calls, and less than recording it: measured."""
FALLEN = 0.3
"""Share of the gradient, where a bound was last looked for, at which it is looked for again."""
UNDONE = 8
"""Most restarts after a failed verification; after them the run counts as stalled."""


class Step(Enum):
    """A solver yields one of these after it has reported points, planes and bounds to the run."""

    ITERATION = 0
    """An iteration is complete."""
    STALLED = 1
    """There is no further progress from here."""


Steps = Generator[Step, bool, str | None]
"""A solver at work.

The driver sends True if a verification failed: then the solver continues from `run.w` and recomputes the state that it
updates by differences, such as scores. It returns its own stopping rule that was met, in words or "", else None.
"""


@dataclass(frozen=True)
class IterativeSolver:
    """The options that every solver has.

    Parameters
    ----------
    tolerance : stop when (objective - lower bound) / |objective| is at most this, with CONVERGED.
    absolute_tolerance : stop, too, when objective - lower bound is at most this; 0 for not. The gaps of the papers are
        absolute ones.
    max_iterations : stop after so many iterations, with ITERATION_LIMIT.
    time_limit : stop after so many seconds, with TIME_LIMIT; None for no limit. Compiling kernels, or loading compiled
        ones, is not counted. Within an iteration, as Ctrl-C: but a pass over the data and a Cholesky factor of a matrix
        are finished.
    """

    tolerance: float = parameter(1e-4, least=0.0, doc="relative gap to reach", example=1e-1)
    absolute_tolerance: float = parameter(0.0, least=0.0, doc="gap to reach, in units of J", example=1.0)
    max_iterations: int = parameter(10000, least=1, doc="iterations at most", example=2)
    time_limit: float | None = parameter(None, above=0.0, doc="seconds at most, without compiling", example=1e-9)
    name: ClassVar[str] = ""
    """The registered name; of a class that is not registered that of the class."""
    sliced: ClassVar[bool] = False
    """Whether vectors may be slices of w: all that is decided rests on inner products of the space."""
    superlinear: ClassVar[bool] = False
    """Whether the gap falls faster and faster, so that the first iterations tell little."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        check_parameters(self)

    def goal(self, objective: float) -> float:
        """The relative gap that is wanted, by either tolerance.

        Parameters
        ----------
        objective : where it is this.
        """
        return relative_goal(objective, self.tolerance, self.absolute_tolerance)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
        **given: Any,
    ) -> Solution:
        """Drive the `steps` until a tolerance, a limit or a rule of the solver's own ends the run.

        Parameters
        ----------
        risk : R, with the abilities that the solver asks for.
        regularizer : Omega.
        start : (dim,), or a `Start`, where to begin; None: at zero.
        callback : called with an `Iteration` after each iteration; None for none.
        given : what `steps` takes besides the run.
        """
        options = self.resolved()
        with options.monitor(risk, regularizer, start, callback) as run:
            return run.drive(options.steps(run, **given))

    def steps(self, run: Monitor) -> Steps:
        """The solver at work on `run.risk` and `run.regularizer` from `run.start`; see `Steps`.

        Parameters
        ----------
        run : takes points, planes and bounds.

        Raises
        ------
        IncompatibleError
            Before the first step, where the solver does not fit.
        InputError
            Here, where nothing drives: a solver defines this or `minimize`.
        """
        raise InputError(
            f"solver {type(self).__name__} has neither `steps` nor `minimize` of its own; see *Add a solver*"
        )

    def resolved(self) -> IterativeSolver:
        """The same with every option that is left to a preset filled in."""
        return self

    def monitor(
        self, risk: Risk, regularizer: Regularizer, start: Vector | Start | None, callback: Callback | None
    ) -> Monitor:
        """The bookkeeping of one run, to be used as a context manager.

        Parameters
        ----------
        risk : R, with the abilities that the solver asks for.
        regularizer : Omega.
        start : (dim,), or a `Start`, where to begin; None: at zero.
        callback : called with an `Iteration` after each iteration; None for none.
        """
        budget, earlier = self._budget(risk), start if isinstance(start, Start) else None
        w = starting_point(risk, start)
        if provides(regularizer, HasBounds):
            w = np.array(regularizer.project(w))
        meter = Meter(budget.check, waiting=COMPILING, spent=lambda: budget.spent is not None)
        return Monitor(
            metered_risk(risk, meter),
            regularizer,
            w,
            given=risk,
            meter=meter,
            options=self,
            callback=callback,
            budget=budget,
            earlier=earlier,
            chooses_start=start is None,
        )

    def _budget(self, risk: Risk) -> Budget:
        space, outer = space_of(risk), ability(risk, Budget)
        if space.whole:
            return Budget(self.time_limit, outer)
        if not self.sliced:
            raise refuse_slices(self.name)
        return AgreedBudget(self.time_limit, outer, space)


class SlicedSolver(IterativeSolver):
    """Base class of solvers that take slices of w: all that they decide on is the same on all ranks."""

    sliced = True


def refuse_slices(solver: str) -> IncompatibleError:
    """That a solver needs all weights in one place."""
    return IncompatibleError(f"solver {solver}: the weights are sliced over ranks, which only {SLICED} take")


def starting_point(risk: Risk, start: Vector | Start | None) -> Vector:
    """A float64 copy of `start`, zero when None; raises InputError for a wrong shape or values that are not finite."""
    if isinstance(start, Start):
        start = start.w
    if start is None:
        return np.zeros(risk.dim)
    w = np.array(plain_numbers(start, "start"))
    if w.shape != (risk.dim,):
        raise InputError(f"start has shape {w.shape}, expected ({risk.dim},)")
    if not np.all(np.isfinite(w)):
        raise InputError("start has values that are not finite")
    return w


def _nothing() -> None:
    """No planes are kept."""


@dataclass
class Monitor(Best):
    """The state of a run. `record` is called once an iteration and returns whether to stop."""

    _: KW_ONLY
    given: Risk
    """The risk as it was given; `risk` is the same, charged to `meter`."""
    options: IterativeSolver
    callback: Callback | None
    budget: Budget
    earlier: Start | None = None
    """Where another run on the same problem was, that this one goes on from."""
    chooses_start: bool = True
    """Whether the solver may begin where it likes."""
    status: Status | None = None
    history: list[Iteration] = field(default_factory=list)
    seconds_master: float = 0.0
    ahead: int = 0
    """Iterations that were not recorded."""
    patience: int = PATIENCE
    untried: Vector | None = None
    """A point that is presumably good, but not evaluated yet; taken into account where a run ends before it is."""
    iterate: Vector | None = None
    """Where the solver is, for callbacks, if that is another point than the best."""
    refreshed: bool = False
    """Whether the last `record` or `stall` has found other values than it was told: what a solver is sent."""
    careful: bool = False
    """Whether that has happened before: far points or large features leave little of what is carried along."""
    finish: Callable[[], Mapping[str, Any]] = dict
    """Called when the last step is done, whatever ended the run: what the solver still has to tell the run, and
    `Solution.details`."""
    saved: Callable[[], SavedPlanes | None] = _nothing
    """`Solution.planes`."""
    state: Callable[[], State] | None = None
    """What the solver needs to go on from here, besides the best point; see `Start`."""
    solver: str = ""
    """Whose turn it is."""
    title: Callable[[Status], str] | None = None
    """`Solution.solver`, for the status of the run, where several take turns."""
    last: bool = True
    """Whether no other solver takes over where this one has stalled."""
    stuck: Status | None = None
    """Why another is to take over."""
    noted: Callable[[], State] = dict
    """What besides `state` a later run needs to go on."""
    _tried: float = field(default=math.inf, init=False)
    """The gradient where a bound was last looked for by `free_proof`, and whether one was ever found."""
    _proved_free: bool = field(default=False, init=False)
    _was_flat: bool = field(default=False, init=False)
    """Whether `flat` has ended the run."""
    _idle: int = 0
    _mark: int = -1
    """The last line of the history with progress; none below 0."""
    _undone: int = 0
    _before: Iteration = NOTHING
    """The last line of the run that this one goes on from."""
    _own_before: float = -math.inf
    """The best bound of this run alone an iteration ago."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.solver = self.options.name
        self._lines_before = self._turn_began = 0 if self.earlier is None else len(self.earlier.history)
        self._traffic = ability(self.risk, Traffic)
        self._waited_before = self._waited()
        if self.earlier is not None:
            proved = Proof(self.earlier.lower_bound, 4.0 * abs(self.earlier.lower_bound), sure=True)
            self.raise_bound(proved)
            if self._slack is not None:
                self._slack.trust(proved)
            self.history = list(self.earlier.history)
            self._before = self.history[-1] if self.history else NOTHING
            self._own = -math.inf

    def __enter__(self) -> Monitor:
        self._one_thread = one_thread()  # two of BLAS would spin beside ours
        self._one_thread.__enter__()
        self.budget.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.budget.__exit__()
        finally:
            self._one_thread.__exit__(None, None, None)

    def drive(self, steps: Steps) -> Solution:
        """Take the steps until the run ends: anywhere, once time is up or Ctrl-C was pressed.

        Every call of the risk looks at the clock, and so does `budget.check`. What the iteration had begun is lost.
        """
        rule = None
        with self.budget.spending() as reasons:
            try:
                step = next(steps)
                while not (self.record() if step is Step.ITERATION else self.stall()):
                    step = steps.send(self.refreshed)
                steps.close()
            except StopIteration as end:
                rule = end.value
                if rule is not None:
                    self.finish_by_rule()
        if reasons:
            self._cut_short(reasons[0])
        return self.solution(rule, self.finish())

    def take_turn(self, solver: str, *, last: bool, noted: Callable[[], State]) -> None:
        """Let another solver go on from the best point: nothing of the one before is kept but point and bound.

        Parameters
        ----------
        solver : its name.
        last : whether it ends the run where it stalls; else `stuck` tells.
        noted : what besides its state a later run needs to go on.
        """
        if len(self.history) > self._lines_before:
            self._verify_point_and_bound()
            self.start, self.chooses_start, self.earlier = self.w, False, None
        self.solver, self.last, self.noted = solver, last, noted
        self.stuck, self.patience, self.untried, self.iterate, self.careful = None, PATIENCE, None, None, False
        self.confirm, self.finish, self.saved, self.state = None, dict, _nothing, None
        self._idle, self._mark, self._undone, self._turn_began = 0, -1, 0, len(self.history)

    @property
    def unwatched(self) -> bool:
        """Whether a cold start on little data is asked for no iteration, and no foreign loss is checked at each."""
        plain = self.callback is None and self.chooses_start and self._audit is None
        size = ability(self.risk, ProblemSize) if plain else None
        return size is not None and size.ranks == 1 and size.entries <= LITTLE

    @property
    def seconds(self) -> float:
        """Since the start of the run, without compiling."""
        return self.budget.seconds + self._before.seconds

    @property
    def passes(self) -> float:
        """Since the start of the run."""
        return self.meter.passes + self._before.passes

    @contextmanager
    def master(self) -> Iterator[None]:
        """Charge the block to the master problem."""
        begin = working_clock()
        try:
            yield
        finally:
            self.seconds_master += working_clock() - begin

    def record(self) -> bool:
        """Close an iteration: history, callback, limits. True when the run must stop; `status` then says why.

        Before it stops, what is said of it is verified; where it must go on then, see `refreshed`.
        """
        self.budget.agree()
        self._compare()
        self._reach_infimum()
        previous = self.history[-1] if self.history else None
        self.history.append(self._line(len(self.history) + self.ahead))
        stop = self.callback is not None and bool(self.callback(self._told()))
        moved = previous is None or (_moved(previous, self.history[-1]) and not self._creeps())
        if moved or self._catches_up():
            self._idle, self._mark = 0, len(self.history) - 1
        else:
            self._idle += 1
        self.status, self.untried, self.refreshed = self._judge(stop), None, False
        if self.status is not None:
            checked = self.budget.rest()
            self._confirm_end(stop)
            self._hand_over()
            if self.status is None and checked:
                self.budget.go_on()
        return self.status is not None

    def _hand_over(self) -> None:
        """Where this solver can do no more, but others wait, the run does not end."""
        if not self.last and self.status in (Status.STALLED, Status.NON_FINITE):
            self.stuck, self.status = self.status, None

    @property
    def goal(self) -> float:
        """The relative gap that is wanted, by either tolerance."""
        return self.options.goal(self.objective)

    def stall(self) -> bool:
        """End the run as stalled, after verification: True.

        False if the verification failed: there may be progress from fresh values, see `refreshed`.
        """
        checked = self.budget.rest()
        self._reach_infimum()
        others = self._checked()
        others = self._lower_at_0() or others
        self.refreshed = False
        if not math.isfinite(self.objective):
            self.status = Status.NON_FINITE
        elif self.relative_gap <= self.goal:
            self.status = Status.CONVERGED
        elif others and self.contradiction is None and self._undone < UNDONE:
            self._go_on()
        else:
            self.status = Status.STALLED
        self._hand_over()
        if self.status is None and checked:
            self.budget.go_on()
        return self.status is not None

    def flat(self, gradient: float, *scales: float) -> bool:
        """Whether a run without bounds is to end here by its own rule, said at once.

        That is where the norm of J's gradient, or of the step to the proximal point times the curvature, is at most
        `tolerance` times the largest of the scales, such as the norm of R's gradient. Where the regularizer has a
        conjugate the gap decides.
        """
        if provides(self.regularizer, HasConjugate):
            return False
        proved = self.free and self._proves_free(gradient, max(scales))
        if proved or not gradient <= self.options.tolerance * max(scales):
            return False
        self.finish_by_rule()
        self._was_flat = True
        return True

    def _proves_free(self, gradient: float, scale: float) -> bool:
        """Whether slopes near those here prove a bound, which is looked for where the gradient has become smaller."""
        if gradient <= min(math.sqrt(self.options.tolerance) * scale, FALLEN * self._tried):
            self._tried = gradient
            proof = free_proof(self, self.regularizer.penalty)  # type: ignore[attr-defined]
            self._proved_free = self._proved_free or math.isfinite(proof.bound)
            self.raise_bound(proof)
        return self._proved_free

    def _reach_infimum(self) -> None:
        """The infimum of R bounds J, too: with free weights that is said where J is there."""
        infimum = self.risk.infimum
        if self.free and infimum > self.proof.bound and relative_gap(self.objective, infimum) <= self.goal:
            self.raise_bound(Proof(infimum, abs(infimum), floor=1.0))

    def finish_by_rule(self) -> None:
        """Say that the solver's own stopping rule is met, unless something else has ended the run."""
        self.status = self.status or Status.OWN_RULE

    def settle(self, w: Vector) -> None:
        """Return `w`, which the solver's own measure has chosen, instead of the point of least objective."""
        if w is not self.w or not self._fresh:
            self._sure = self._at(w)
            self.w, self.objective, self._fresh = w, self._sure.objective, True
        else:
            self._sure = Evaluated(self.objective, w)
        self._chosen = True
        if self.status is Status.CONVERGED and self.relative_gap > self.goal:
            self.status = Status.OWN_RULE
        self._compare()

    def solution(self, rule: str | None = None, details: Mapping[str, Any] | None = None) -> Solution:
        """The result, verified; the last line of the history is brought up to date.

        Parameters
        ----------
        rule : of the solver's own that has ended the run, in words.
        details : `Solution.details`.
        """
        self._verify(self.goal)
        met = self.relative_gap <= self.goal
        if met and self.status in EARLY_ENDS:
            self.status = Status.CONVERGED
        elif self.status is Status.CONVERGED and not met:
            self.status = Status.STALLED
        self._conclude(self.status in COMPLETE)
        found = self.contradiction
        self._revise()
        iterations = self.history[-1].iteration if self.history else 0
        return Solution(
            w=self.w,
            objective=self.objective,
            lower_bound=-math.inf if found is not None else self._cut,
            status=Status.NOT_CONVEX if found is not None else self.status or Status.STALLED,
            iterations=iterations,
            passes=self.passes,
            seconds=self.seconds,
            history=tuple(self.history),
            solver=self._named(rule),
            planes=self.saved() if found is None else None,
            details=dict(details or {}) | ({} if found is None else {**found.details, "raw_bound": self.lower_bound}),
            message=self._without_bound() if found is None else found.message,
            seconds_compiling=self.budget.compiling,
        )

    def _named(self, rule: str | None) -> str:
        if self.title is not None:
            return self.title(self.status or Status.STALLED)
        return f"{self.solver}: {rule}" if rule and self.status is Status.OWN_RULE else self.solver

    def _without_bound(self) -> str:
        """Why no gap could be met; "" where one was, or could have been."""
        if self.status is Status.CONVERGED:
            return ""
        if self._slack is not None and (refuted := self._slack.refuted) is not None:
            return (
                f"a bound of {refuted.bound:.17g} was left out: it is above the objective, {self.objective:.17g},"
                " by more than rounding explains"
            )
        if provides(self.regularizer, HasConjugate):
            return ""
        if self.proof.bound > self.risk.infimum:  # of a master, or of slopes
            return ""
        end = "the run has ended where the gradient was small; " if self._was_flat else ""
        name = name_of(self.regularizer)
        if self.free:
            return f"{end}there is no lower bound, thus no gap: with regularizer {name} weights are free"
        return f"{end}there is no lower bound, thus no gap: regularizer {name} has no `conjugate` and `feasible`"

    def _checked(self) -> bool:
        """Verify point and bound, and with them the history; whether they changed by more than rounding."""
        others = self._verify(self.goal)
        self._revise()
        return others

    def _lower_at_0(self) -> bool:
        """Whether a run from elsewhere has stalled above J(0), from where it may go on."""
        if self._at_0 or self._chosen or self.relative_gap <= self.goal or self._space.everywhere(not self.start.any()):
            return False
        before = self.objective
        self._look_at_0()
        self._revise()
        return self.objective < before

    def _revise(self) -> None:
        """Bring the last line of the history up to date; and let none before it claim more than has proved true."""
        if self.history:
            self.history[-1] = self._line(self.history[-1].iteration)
        for k in range(len(self.history) - 2, -1, -1):
            line, bound = self.history[k], self._cut
            if self.contradiction is not None or (line.objective >= self.objective and line.lower_bound <= bound):
                break
            objective = max(line.objective, self.objective)
            self.history[k] = replace(line, objective=objective, lower_bound=min(line.lower_bound, bound))

    def _confirm_end(self, stop: bool) -> None:
        """Set `status` anew after all was verified."""
        others = self._checked()
        self.status = self._judge(stop)
        if self.status is None or (self.status is Status.STALLED and (self._lower_at_0() or others)):
            self.status = Status.STALLED
            if self._undone < UNDONE:
                self._go_on()

    def _go_on(self) -> None:
        self.status, self.refreshed, self.careful = None, True, True
        self._undone, self._idle = self._undone + 1, 0

    def _cut_short(self, status: Status) -> None:
        """End within an iteration: with J of the best point evaluated from its weights, one pass."""
        if self.untried is None or not self._look_at(self.untried):
            self.objective = math.inf
            self._look_at(self.w)
        self.status = status if math.isfinite(self.objective) else Status.NON_FINITE
        if not self.history:
            self.history.append(self._line(0))

    def _told(self) -> Iteration:
        """The last line, as callbacks get it."""
        name, more = self.solver, self.noted
        proved = partial(self._proved_less_rounding, self._proved, self.w, self.objective)
        state: Callable[[], State] = self.state or dict
        if self.state is None and self.earlier is not None and (before := self.earlier.state_of(name)) is not None:
            state = lambda: before  # noqa: E731 (not taken up yet, but not lost either)
        noted = lambda: {**more(), **state(), "solver": np.array(name), PROVED: np.array(proved())}  # noqa: E731
        return self.history[-1].told(self.w, noted, self.iterate)

    def _line(self, iteration: int) -> Iteration:
        before, meter, waited, ahead = self._before, self.meter, 0.0, 0.0
        if self._traffic is not None:
            waited, ahead = (now - then for now, then in zip(self._waited(), self._waited_before))
        return Iteration(
            iteration=iteration,
            objective=self.objective,
            lower_bound=self._cut,
            passes=meter.passes + before.passes,
            passes_gram=meter.products + before.passes_gram,
            seconds=self.budget.seconds + before.seconds,
            seconds_risk=max(0.0, meter.seconds - waited) + before.seconds_risk,
            seconds_master=self.seconds_master + before.seconds_master,
            seconds_waiting=ahead + before.seconds_waiting,
            seconds_network=waited - ahead + before.seconds_network,
        )

    def _waited(self) -> tuple[float, float]:
        """Seconds for other ranks so far, and those of them in which they were computing."""
        if self._traffic is None:
            return 0.0, 0.0
        sent = self._traffic.so_far()
        return sent.waited, sent.ahead

    def _creeps(self) -> bool:
        """Whether next to nothing of the gap has been closed since the last line with progress."""
        mark, now = self.history[self._mark], self.history[-1]  # later checks may have revised it
        if self._mark < 0 or not math.isfinite(mark.objective - mark.lower_bound):
            return False
        left = now.objective - now.lower_bound
        return mark.objective - mark.lower_bound - left <= CREEPING * left

    def _catches_up(self) -> bool:
        """Whether a run that goes on from another one, without its planes, rises to what that had proved."""
        rose = self.earlier is not None and self._own - self._own_before > ROUNDING * abs(self.objective)
        self._own_before = self._own
        return rose

    def _judge(self, stop: bool) -> Status | None:
        line, options = self.history[-1], self.options
        if self._audit is not None and self._audit.found is not None:
            return Status.NOT_CONVEX
        if not math.isfinite(line.objective):
            return (
                Status.NON_FINITE if self._idle >= self.patience or len(self.history) == self._turn_began + 1 else None
            )
        if relative_gap(line.objective, line.lower_bound) <= options.goal(line.objective):
            return Status.CONVERGED
        spent = self.budget.spent
        if stop or spent is Status.INTERRUPTED:
            return Status.INTERRUPTED
        if self._idle >= self.patience:
            return Status.STALLED
        if line.iteration >= options.max_iterations:
            return Status.ITERATION_LIMIT
        return spent


def _moved(before: Iteration, now: Iteration) -> bool:
    """Whether objective or bound has changed beyond rounding."""
    scale = ROUNDING * abs(now.objective) if math.isfinite(now.objective) else 0.0
    down = before.objective - now.objective > scale if math.isfinite(before.objective) else True
    up = now.lower_bound - before.lower_bound > scale if math.isfinite(now.lower_bound) else False
    return bool(down or up)
