"""The time limit and interruptions of a run, which are checked within iterations, too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import numpy as np

from bmrm.kernels.compiling import COMPILING, working_clock
from bmrm.problem import Risk, Space, Status, Vector, ability
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.interrupt import Interrupt

T = TypeVar("T")
REASONS = Status.INTERRUPTED, Status.TIME_LIMIT
"""Statuses of a spent budget, the first that holds."""


class Stop(BaseException):
    """Time is up, or Ctrl-C was pressed: unwinds what an iteration has begun. It leaves no `Budget.spending`."""

    def __init__(self, budget: Budget, status: Status) -> None:
        self.budget, self.status = budget, status


class Budget:
    """The seconds and the Ctrl-C of one run, and those of the run that it is a part of. A context manager.

    Compiling kernels, or loading compiled ones, is not charged.

    Parameters
    ----------
    time_limit : seconds; None for no limit.
    outer : of the run around this one: neither lasts longer, and a Ctrl-C is meant for both.

    Attributes
    ----------
    products : what work on matrices took besides passes, in products of entries of sparse rows.
    """

    products = 0.0

    def __init__(self, time_limit: float | None = None, outer: Budget | None = None) -> None:
        self.begin, self._compiled = working_clock(), COMPILING.seconds
        own = math.inf if time_limit is None else self.begin + time_limit
        self._end: float = own if outer is None else min(own, outer._end)
        self._interrupt: Interrupt = Interrupt() if outer is None else outer._interrupt
        self._outermost = outer is None
        self._armed = False

    def __enter__(self) -> Budget:
        if self._outermost:
            self._interrupt.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._outermost:
            self._interrupt.__exit__()

    @property
    def seconds(self) -> float:
        """Since the run began, without `compiling`."""
        return working_clock() - self.begin

    @property
    def left(self) -> float:
        """Seconds until the limit; inf without one."""
        return self._end - working_clock()

    @property
    def compiling(self) -> float:
        """Seconds of compiling since the run began."""
        return COMPILING.seconds - self._compiled

    @property
    def spent(self) -> Status | None:
        """INTERRUPTED or TIME_LIMIT; None while there is time."""
        if self._interrupt.raised:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self._end < math.inf and working_clock() >= self._end else None

    def agree(self) -> None:
        """Once an iteration: ranks that work on slices ask one another."""

    def check(self, products: float = 0.0, /) -> None:
        """Raise Stop where the budget is spent, within `spending`; else nothing. Cheap; in any thread.

        Parameters
        ----------
        products : what is to be done on matrices, as of `Check`.
        """
        if products:
            self.products += products
        if self._armed and (self._interrupt.raised or (self._end < math.inf and working_clock() >= self._end)):
            raise Stop(self, self.spent or Status.TIME_LIMIT)

    def rest(self) -> bool:
        """Check no more: what ends the run may take its time. Whether it was checked."""
        armed, self._armed = self._armed, False
        return armed

    def go_on(self) -> None:
        """Check again, after a `rest` within `spending`."""
        self._armed = True

    @contextmanager
    def spending(self) -> Iterator[list[Status]]:
        """The block in which `check` may raise; it ends there, with the reason in the list, and checks no more."""
        reasons: list[Status] = []
        self._armed = True
        try:
            yield reasons
        except Stop as stop:
            if stop.budget is not self:
                raise
            reasons.append(stop.status)
        finally:
            self._armed = False


class AgreedBudget(Budget):
    """That of a run on slices of w: it is spent as soon as one rank finds so, and ends no iteration halfway.

    Parameters
    ----------
    time_limit, outer : as of `Budget`.
    space : adds up over the slices.
    """

    def __init__(self, time_limit: float | None, outer: Budget | None, space: Space) -> None:
        super().__init__(time_limit, outer)
        self._total, self._agreed = space.total, cast("Status | None", None)

    @property
    def spent(self) -> Status | None:
        """What all ranks have agreed on last."""
        return self._agreed

    def agree(self) -> None:
        """Collective: clocks differ, and only one rank may hear a Ctrl-C."""
        here = super().spent
        found = self._total(np.array([here is status for status in REASONS], np.float64)).tolist()
        self._agreed = next((status for status, ranks in zip(REASONS, found, strict=True) if ranks), None)

    def check(self, products: float = 0.0, /) -> None:
        """Nothing else: within an iteration ranks would leave at different places."""
        if products:
            self.products += products


class Budgeted:
    """A risk that is solved as a part of a larger run: it offers that run's `Budget` besides what it offers itself."""

    def __init__(self, inner: Risk, budget: Budget) -> None:
        self.inner, self.budget = inner, budget
        self.dim, self.infimum = inner.dim, inner.infimum

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """Of the risk."""
        return self.inner.value_and_subgradient(w)

    def metered(self, meter: Meter) -> Budgeted:
        """The same, of a risk that is charged to `meter`."""
        return Budgeted(metered_risk(self.inner, meter), self.budget)

    def ability(self, kind: type[T]) -> T | None:
        """Of the risk, and the budget."""
        return cast(T, self.budget) if kind is Budget else ability(self.inner, kind)
