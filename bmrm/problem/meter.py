"""What one run uses, counted where it is used: passes over the data, and the seconds in the risk."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Check(Protocol):
    """Called by long computations about ten times a second; raises if they are to be aborted."""

    def __call__(self, products: float = 0.0, /) -> None:
        """Before work on matrices that takes as long as so many products of entries of sparse rows, beside passes."""
        ...


FULL, FULL_SPEED = 0.6, 10.0
"""Share of non-zero entries from which rows are multiplied as dense ones, by BLAS, and how many of their products take
the time of one of sparse rows: measured."""


def unchecked(products: float = 0.0, /) -> None:
    """The `Check` that lets everything go on."""


class Waiting(Protocol):
    """Time that is no work of a run's, such as that of compiling kernels."""

    @property
    def seconds(self) -> float:
        """So far."""
        ...


class _NoWaiting:
    seconds = 0.0


class Meter:
    """Counts what is charged to it.

    Parameters
    ----------
    check : asked before every call that is charged, and now and then within long ones.
    clock : seconds.
    waiting : what of them is not charged.
    spent : whether the run is to end for want of time: then what would take long is left out.

    Attributes
    ----------
    reading : passes over the data; a product with all rows (A w or A' s) is half a pass.
    products : what Gram matrices cost besides reading the data, in passes.
    seconds : in the risk; of calls within calls the outer one counts.
    within : whether a call is under way.
    """

    def __init__(
        self,
        check: Check = unchecked,
        clock: Callable[[], float] = time.perf_counter,
        waiting: Waiting | None = None,
        spent: Callable[[], bool] = bool,
    ) -> None:
        self.check, self.spent = check, spent
        self.reading = self.products = self.seconds = 0.0
        self.within = False
        self._clock, self._waiting = clock, _NoWaiting() if waiting is None else waiting

    @property
    def passes(self) -> float:
        """All of them."""
        return self.reading + self.products

    def timed(self, passes: float, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call and charge, unless the check raises."""
        begin = self.begin()
        try:
            return function(*arguments, **options)
        finally:
            self.end(begin, passes)

    def begin(self) -> float | None:
        """Start the clock, unless the check raises: what `end` takes; None within another call."""
        if self.within:
            return None
        self.check()
        self.within = True
        return self._clock() - self._waiting.seconds

    def end(self, begin: float | None, passes: float) -> None:
        """Charge what has begun."""
        self.reading += passes
        if begin is not None:
            self.seconds += self._clock() - self._waiting.seconds - begin
            self.within = False

    def charge(self, passes: float, products: float = 0.0) -> None:
        """Add passes of reading, and of products."""
        self.reading += passes
        self.products += products


UNMETERED = Meter()
"""The meter of work outside a run."""
UNMETERED.within = True


@runtime_checkable
class Metered(Protocol):
    """A risk, or an ability of one, that charges its work itself."""

    def metered(self: T, meter: Meter) -> T:
        """The same, a shallow copy, whose work is charged to `meter` and whose long calls ask `meter.check`.

        A call that the check ends leaves nothing behind.
        """
        ...


class HasMeter(Protocol):
    """What `charged` methods need."""

    @property
    def meter(self) -> Meter: ...


class HasShare(HasMeter, Protocol):
    """What `half_pass` methods need."""

    @property
    def share(self) -> float:
        """Fraction of all rows that this object covers: a pass over them is charged as so much of one."""
        ...


M = TypeVar("M", bound=HasMeter)
S = TypeVar("S", bound=HasShare)


def charged(
    passes: float, of_rows: bool = False
) -> Callable[[Callable[Concatenate[M, P], R]], Callable[Concatenate[M, P], R]]:
    """A method that is timed, and costs so many passes; `of_rows`: over the `share` of its rows."""

    def of(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        @wraps(method)
        def call(self: M, /, *arguments: P.args, **options: P.kwargs) -> R:
            meter, cost = self.meter, passes * self.share if of_rows else passes  # type: ignore[attr-defined]
            if meter.within:  # as in searches, of which the outer call is timed
                meter.reading += cost
                return method(self, *arguments, **options)
            begin = meter.begin()
            try:
                return method(self, *arguments, **options)
            finally:
                meter.end(begin, cost)

        return call

    return of


def timed(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """A method that is timed; passes are charged by what it calls, if there are any."""
    return charged(0.0)(method)


def half_pass(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that is timed, and reads its rows once."""
    return charged(0.5, of_rows=True)(method)


def timed_curve(
    method: Callable[Concatenate[M, P], Callable[[Any], R]],
) -> Callable[Concatenate[M, P], Callable[[Any], R]]:
    """A method that is timed, as is the function that it returns."""

    @wraps(method)
    def call(self: M, /, *arguments: P.args, **options: P.kwargs) -> Callable[[Any], R]:
        meter = self.meter
        if meter is UNMETERED:
            return method(self, *arguments, **options)
        curve = meter.timed(0.0, method, self, *arguments, **options)
        return lambda t: meter.timed(0.0, curve, t)

    return call
