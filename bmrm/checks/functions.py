"""A function as the laws see it: called with care, its results looked at, its rounding known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.report import BrokenLawError, Violation, raised, shown
from bmrm.problem import BmrmError
from bmrm.problem.results import WrongResultError, checked_result

Array = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps) / 2.0
UNIT_32 = float(np.finfo(np.float32).eps) / 2.0
OPERATIONS = 8.0
"""Roundings of the magnitudes that show in value and slope: of a sum as many as it has terms besides."""
NEIGHBOURS = 3
"""Points a few roundings away, where differences of values are nothing but rounding (More & Wild 2011)."""
SAFETY = 4.0
"""The largest rounding of many, over the largest of a few."""


@dataclass(frozen=True, eq=False)
class Place:
    """Value and slope at a point."""

    function: Function
    x: Array
    value: float
    slope: Array

    @property
    def finite(self) -> bool:
        """Whether there is a subgradient: +inf stands for what is beyond float64."""
        return bool(np.isfinite(self.value))

    @property
    def rounding(self) -> float:
        """The largest error that rounding has made in the value."""
        return self._roundings[0]

    @property
    def slope_rounding(self) -> float:
        """The largest error that rounding has made in an entry of the slope."""
        return self._roundings[1]

    @cached_property
    def _roundings(self) -> tuple[float, float]:
        """Measured at points so near that all differences are rounding; asked for only where a law seems broken."""
        if not self.finite:
            return 0.0, 0.0
        function, sizes = self.function, np.abs(self.x)
        typical = float(np.mean(sizes)) or 1.0 if sizes.size else 1.0
        single = function.single or self.slope.dtype == np.float32
        value, slope, rng = 0.0, 0.0, np.random.default_rng(7)
        for level in (UNIT, UNIT_32) if single else (UNIT,):
            for _ in range(NEIGHBOURS):
                reach = 4.0 * level * np.where(sizes > 0.0, sizes, typical)
                other, other_slope = function.raw(self.x + reach * rng.uniform(-1.0, 1.0, self.x.shape))
                if np.isfinite(other):
                    value = max(value, abs(other - self.value))
                    slope = max(slope, float(np.max(np.abs(other_slope - self.slope), initial=0.0)))
        own = (OPERATIONS + function.terms) * (UNIT_32 if single else UNIT) + function.coarse
        largest = float(np.max(np.abs(self.slope), initial=0.0))
        return SAFETY * value + own * self.magnitude, SAFETY * slope + own * largest

    @property
    def magnitude(self) -> float:
        """Of what shows in the value: itself, and the products of slope and point."""
        return abs(self.value) + float(np.sum(np.abs(self.slope) * np.abs(self.x))) + self.function.hidden


@dataclass(frozen=True)
class Function:
    """A function to be tried.

    Parameters
    ----------
    call : x -> (value, slope).
    shape : of x and of the slope.
    letter : what x is called in messages.
    slope : what the slope is called.
    beside : what else a message must tell of the place, such as the target.
    infimum : what no value is below; -inf where nothing is said.
    terms : numbers that are added to make a value.
    coarse : what counts as rounding besides, relative to the magnitudes: 0 to measure to the last digit.
    single : whether it may have been computed in float32.
    hidden : magnitudes that show in the value and in no x: on a line, those of where it starts.
    """

    call: Callable[[Array], tuple[Any, Any]]
    shape: tuple[int, ...]
    letter: str = "w"
    slope: str = "subgradient"
    beside: str = ""
    infimum: float = -np.inf
    terms: int = 1
    coarse: float = 0.0
    single: bool = False
    hidden: float = 0.0

    def where(self, x: Array) -> str:
        """The place for a message."""
        return f"{self.letter} = {shown(x)}{self.beside}"

    def violation(self, law: str, x: Array, amount: float, message: str, *others: Array) -> Violation:
        """A violation at `x`."""
        return Violation(law, self.where(x), float(amount), message, (x, *others))

    def raw(self, x: Array) -> tuple[float, Array]:
        """Value and slope as float64; raises BrokenLawError where they are no number and no array of the shape of x."""
        before = x.copy()
        try:
            with np.errstate(all="ignore"):
                result = self.call(x)
        except (BmrmError, BrokenLawError):
            raise
        except Exception as error:
            raise BrokenLawError(self.violation("runs", before, np.inf, raised(error))) from error
        if not np.array_equal(x, before):
            text = f"the call changed {self.letter} in place"
            raise BrokenLawError(self.violation("inputs kept", before, np.inf, text))
        try:
            return checked_result(result, self.shape, self.letter, self.slope)
        except WrongResultError as wrong:
            raise BrokenLawError(self.violation(wrong.law, before, np.inf, str(wrong))) from wrong

    def at(self, x: Array) -> Place:
        """The place `x`."""
        x = np.array(x, np.float64)
        value, slope = self.raw(x.copy())
        return Place(self, x, value, slope.copy())

    def on_line(self, place: Place, step: Array, curve: Callable[[Array], tuple[Any, Any]]) -> Function:
        """The function t -> (value, derivative) of one number that `curve` gives for a vector of t."""
        x = place.x
        hidden = float(np.sum(np.abs(place.slope) * (np.abs(x) + np.abs(step))))

        def call(t: Array) -> tuple[Any, Any]:
            values, slopes = curve(np.array([float(t)]))
            return _one(values), _one(slopes)

        beside = f" of {self.letter} + t step, {self.where(x)}, step = {shown(step)}"
        return dataclasses.replace(
            self, call=call, shape=(), letter="t", slope="derivative", beside=beside, hidden=hidden
        )


def _one(entries: Any) -> Any:
    """The entry of an array of one; anything else as it is, to be refused for its shape."""
    array = np.asarray(entries)
    return array[0] if array.shape == (1,) else array
