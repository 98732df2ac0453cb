"""The laws of a convex function with subgradients, which is called with care, and whose rounding is known."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.laws import BrokenLawError, Laws, NotOfferedError, Violation, raised, shown
from bmrm.problem import BmrmError
from bmrm.problem.results import WrongResultError, checked_result

Array = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps) / 2.0
UNIT_32 = float(np.finfo(np.float32).eps) / 2.0
OPERATIONS = 8.0
"""Rounding errors of value and slope, in units of roundoff of the magnitudes, besides one for each term of the sum."""
NEIGHBOURS = 3
"""Points a few units of roundoff away, where differences of values are rounding only (More & Wild 2011)."""
SAFETY = 4.0
"""Assumed ratio of the largest rounding error to the largest of the few that are measured."""
STEPS = (1e-6, 1e-4, 1e-2)
"""Lengths of differences, relative to the size of the point or 1."""
SAME = 1e-9
"""Largest relative difference of two results at one point: sums may be added in another order."""
KINK = 1e-6
"""Change of a slope within a few units of roundoff, as a share of the largest slope, above which the point is at a
kink."""
NEAR = (1e-5, 1e-7, 1e-9)
"""Distances at which slopes are compared, relative to the size of the point or 1, until they are near enough: a kink
shows at each, and curvature that changes on a short way at the last ones alone."""
ROUGH = 0.1
"""Relative change of a difference of slopes, once its length is halved, above which a shorter one is taken."""
PARTS = (0.1, 0.5, 0.8)
"""Positions on a segment at which the value is compared with the chord."""


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

    @property
    def near(self) -> tuple[float, ...]:
        """Those of `NEAR` that show in a point of size 1."""
        return tuple(h for h in NEAR if h > UNIT_32) if self.single else NEAR

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


def keeps_inputs(function: Function, points: Sequence[Array]) -> Iterator[Violation]:
    """Results are new arrays, and inputs are left alone."""
    x, other = points[0], points[1]
    function.at(x)
    given = x.copy()
    with np.errstate(all="ignore"):
        first = np.asarray(function.call(given)[1])
        copy = first.copy()
        if first.ndim and np.shares_memory(first, given):
            yield function.violation("inputs kept", x, np.inf, f"the {function.slope} is {function.letter} itself")
        function.call(other.copy())
    if not np.array_equal(first, copy):
        text = f"the {function.slope} changed with the next call: expected a new array each time"
        yield function.violation("inputs kept", x, np.inf, text)


def is_determined(function: Function, points: Sequence[Array]) -> Iterator[Violation]:
    """The same point gives the same result, but for rounding: sums over threads may come in any order."""
    for point in points:
        one, two = function.at(point), function.at(point)
        if one.finite != two.finite:
            yield function.violation("determinism", point, np.inf, f"it gave the values {one.value} and {two.value}")
        if not (one.finite and two.finite):
            continue
        moved, turned = abs(one.value - two.value), np.abs(one.slope - two.slope)
        if moved > SAME * one.magnitude:
            text = f"the same point gave the values {one.value:.10g} and {two.value:.10g}"
            yield function.violation("determinism", point, moved, text)
        elif np.any(turned > SAME * np.max(np.abs(one.slope))):
            text = f"the same point gave two {function.slope}s"
            yield function.violation("determinism", point, float(turned.max()), text)


def infimum(function: Function, places: Iterable[Place], least: float, what: str = "infimum") -> Iterator[Violation]:
    """No value is below what is said never to be crossed."""
    for place in places:
        short = least - place.value
        if short > place.rounding:
            text = f"the value {place.value:.10g} is below the {what}, {least:.10g}, by {short:.3g}"
            yield function.violation("infimum", place.x, short - place.rounding, text)


def slopes(
    function: Function, place: Place, directions: Iterable[Array], steps: Sequence[float] = STEPS
) -> Iterator[Violation]:
    """Along a direction the slope lies between the differences of values on either side, however short the step.

    So it is at the kinks of a convex function, too; what the two sides differ by is allowed once more.
    """
    if not place.finite:
        return
    size = max(1.0, float(np.max(np.abs(place.x), initial=0.0)))
    for d in directions:
        slope = float(np.sum(place.slope * d))
        tried = (_outside(function, place, d, h * size, slope) for h in steps)
        found = next((one for one in tried if one is not None), None)
        if found is not None:
            excess, low, high = found
            between = f"{low:.8g}" if high - low <= 1e-7 * abs(high) else f"between {low:.8g} and {high:.8g}"
            along = "" if d.size == 1 else f" along {shown(d)}"
            text = f"the {function.slope}{along} is {slope:.8g}, differences of values say {between}"
            yield function.violation("slope", place.x, excess, text, d)


def _outside(function: Function, place: Place, d: Array, h: float, slope: float) -> tuple[float, float, float] | None:
    """By how much the slope is outside the differences at step `h`, and these; None where it is not, or none known."""
    ahead, behind = function.at(place.x + h * d), function.at(place.x - h * d)
    if not (ahead.finite and behind.finite):
        return None
    sides = (ahead.value - place.value) / h, (place.value - behind.value) / h
    low, high = min(sides), max(sides)
    excess = max(slope - high, low - slope) - (high - low)
    if excess <= 0.0:
        return None
    moved = UNIT * float(np.sum(np.abs(place.slope * d) * (np.abs(place.x) + h * np.abs(d))))
    excess -= (place.rounding + max(ahead.rounding, behind.rounding) + 4.0 * moved) / h
    excess -= place.slope_rounding * float(np.sum(np.abs(d)))
    return (excess, low, high) if excess > 0.0 else None


def segments(function: Function, places: Sequence[Place], parts: Sequence[float] = PARTS) -> Iterator[Violation]:
    """Between two points the value is nowhere above the chord."""
    for one, two in itertools.combinations(places, 2):
        if not (one.finite and two.finite):
            continue
        for t in parts:
            middle = function.at((1.0 - t) * one.x + t * two.x)
            chord = (1.0 - t) * one.value + t * two.value
            above = middle.value - chord
            if above <= 0.0:
                continue
            moved = (
                UNIT * float(np.sum(np.abs(middle.slope) * (np.abs(one.x) + np.abs(two.x)))) if middle.finite else 0.0
            )
            excess = above - (one.rounding + two.rounding + middle.rounding + 4.0 * moved)
            if excess > 0.0:
                ends = [f"{function.letter} = {shown(end.x)} (value {end.value:.8g})" for end in (one, two)]
                text = (
                    f"the value {middle.value:.10g} is above the chord, {chord:.10g}, by {above:.3g}; "
                    f"the chord goes from {ends[0]} to {ends[1]}"
                )
                yield function.violation("convexity", middle.x, excess, text, one.x, two.x)


def supports(function: Function, places: Sequence[Place]) -> Iterator[Violation]:
    """The plane at a point is nowhere above the values elsewhere."""
    largest = max((float(np.max(np.abs(place.slope), initial=0.0)) for place in places if place.finite), default=0.0)
    for one, two in itertools.permutations(places, 2):
        if not one.finite or not two.finite:
            continue
        step = two.x - one.x
        plane = one.value + float(np.sum(one.slope * step))
        above = plane - two.value
        if above <= 0.0:
            continue
        added = float(np.sum(np.abs(one.slope) * (np.abs(one.x) + np.abs(two.x))))
        rounding = one.rounding + two.rounding + 4.0 * (1 + function.terms) * UNIT * added
        turn = one.slope_rounding if one.slope_rounding <= KINK * largest else 0.0
        excess = above - rounding - turn * float(np.sum(np.abs(step)))
        if excess > 0.0:
            text = (
                f"the plane of this point is {plane:.10g} at {function.letter} = {shown(two.x)}, above the value "
                f"there, {two.value:.10g}, by {above:.3g}"
            )
            yield function.violation("subgradient", one.x, excess, text, two.x)


def continuous_slopes(function: Function, place: Place) -> Iterator[Violation]:
    """Where the function is said to be smooth, the slope moves little with the point."""
    if not place.finite:
        return
    size = max(1.0, float(np.max(np.abs(place.x), initial=0.0)))
    largest = float(np.max(np.abs(place.slope), initial=0.0))
    for side in (-1.0, 1.0):
        others = [function.at(place.x + side * h * size) for h in function.near]
        if not all(other.finite for other in others):
            continue
        jumps = [float(np.max(np.abs(other.slope - place.slope), initial=0.0)) for other in others]
        if all(near > max(0.5 * far, 1e-4 * (1.0 + largest)) for far, near in itertools.pairwise(jumps)):
            within = f"{jumps[-1]:.3g} within {function.near[-1] * size:.1g}"
            text = f"the {function.slope} jumps by {within}, but `smooth` is True"
            yield function.violation("smoothness", place.x, jumps[-1], text)


def second_derivative(
    function: Function, place: Place, steps: Iterable[Array], product: Callable[[Array, Array], Array]
) -> Iterator[Violation]:
    """The product with the second derivative is what the slope changes by, and never negative along a step."""
    if not place.finite:
        return
    for step in steps:
        found = np.asarray(product(place.x.copy(), step.copy()))
        if found.shape != function.shape:
            text = f"the product has shape {found.shape}, expected {function.shape}"
            yield function.violation("second derivative", place.x, np.inf, text, step)
            return
        along = float(np.sum(step * found))
        if along < -4.0 * UNIT * float(np.sum(np.abs(step * found))):
            text = f"along step = {shown(step)} it is {along:.6g}, expected no number below 0"
            yield function.violation("second derivative", place.x, -along, text, step)
        measured = _change(function, place, step)
        if measured is None:
            return
        change, error = measured
        excess = np.abs(found - change) - error
        worst = int(np.argmax(excess))
        if excess.size and excess.ravel()[worst] > 1e-9 * float(np.max(np.abs(change))):
            text = (
                f"times step = {shown(step)} it is {np.ravel(found)[worst]:.8g} in entry {worst}, "
                f"differences of slopes say {np.ravel(change)[worst]:.8g}"
            )
            yield function.violation("second derivative", place.x, float(excess.ravel()[worst]), text, step)


def _change(function: Function, place: Place, step: Array) -> tuple[Array, Array] | None:
    """What the slope changes by along a step, per unit, and how far that may be off; None where it is not known."""
    size = max(1.0, float(np.max(np.abs(place.x), initial=0.0)))
    for least in function.near:
        changes, rounding = [], 0.0
        for h in (2.0 * least * size, least * size):
            ahead, behind = function.at(place.x + h * step), function.at(place.x - h * step)
            if not (ahead.finite and behind.finite):
                return None
            changes.append((ahead.slope - behind.slope) / (2.0 * h))
            rounding = (ahead.slope_rounding + behind.slope_rounding) / h
        apart = np.abs(changes[1] - changes[0])
        if float(np.max(apart, initial=0.0)) <= ROUGH * float(np.max(np.abs(changes[1]), initial=0.0)):
            break
    return changes[1], 2.0 * apart + rounding


def lines(
    function: Function, place: Place, step: Array, curve: Callable[[Array], tuple[Array, Array]]
) -> Iterator[Violation]:
    """`along` gives the values on a line, and their derivatives."""
    ts = np.array([-1.0, 0.0, 0.25, 3.0])
    values, derivatives = (np.asarray(part) for part in curve(ts.copy()))
    if values.shape != ts.shape or derivatives.shape != ts.shape:
        text = f"for {ts.size} numbers t it gave {values.shape} values and {derivatives.shape} derivatives"
        yield function.violation("along", place.x, np.inf, text, step)
        return
    on_line = function.on_line(place, step, curve)
    for t, value in zip(ts.tolist(), values.tolist()):
        there = function.at(place.x + t * step)
        if not there.finite or not np.isfinite(value):
            continue
        own = on_line.at(np.array(t))
        moved = UNIT * float(np.sum(np.abs(there.slope) * (np.abs(place.x) + abs(t) * np.abs(step))))
        rounding = there.rounding + own.rounding + place.rounding + 8.0 * (1 + function.terms) * moved
        if abs(value - there.value) > rounding:
            text = (
                f"for t = {t:g} along step = {shown(step)} it says {value:.10g}, the value there is {there.value:.10g}"
            )
            yield function.violation("along", place.x, abs(value - there.value) - rounding, text, step)
        for found in slopes(on_line, own, [np.ones(())]):
            yield Violation("along", found.point, found.amount, found.message, found.points)


Part = tuple[Function, list[Array]]


class Tried(Protocol):
    """What the laws of convex functions are tried on: a loss with targets, a regularizer, a risk."""

    @property
    def seed(self) -> int:
        """Of the directions that are tried."""
        ...

    @property
    def smooth(self) -> bool:
        """Whether it says that it is smooth."""
        ...

    def parts(self) -> Iterator[Part]:
        """Functions, each with the points to try it at; the first points are of a moderate size."""
        ...


Check = Callable[[Tried, Function, list[Array]], Iterable[Violation]]


def _each(check: Check) -> Callable[[Tried], Iterator[Violation]]:
    """The law of a case, from what is checked of each of its parts."""
    return lambda case: itertools.chain.from_iterable(check(case, *part) for part in case.parts())


def _at(function: Function, points: list[Array]) -> list[Place]:
    return [function.at(point) for point in points]


def _shapes(case: Tried, function: Function, points: list[Array]) -> tuple[Violation, ...]:
    """Results are what they should be, at every place."""
    _at(function, points)
    return ()


def _slope(case: Tried, function: Function, points: list[Array]) -> Iterator[Violation]:
    rng = np.random.default_rng(case.seed + 5)
    for place in _at(function, points):
        scale = min(1.0, float(np.max(np.abs(place.x), initial=0.0)) or 1.0)
        several = [scale * rng.normal(size=place.x.shape) for _ in range(3)]
        yield from slopes(function, place, [np.ones(1)] if place.x.size == 1 else several)


def _smoothness(case: Tried) -> Iterator[Violation]:
    if not case.smooth:
        raise NotOfferedError("it does not say that it is smooth")
    for function, points in case.parts():
        for place in _at(function, points):
            yield from continuous_slopes(function, place)


CONVEX_LAWS: Laws[Tried] = Laws(
    {
        "shapes": _each(_shapes),
        "inputs kept": _each(lambda _, f, points: keeps_inputs(f, points[1:3])),
        "determinism": _each(lambda _, f, points: is_determined(f, points[1:3])),
        "infimum": _each(lambda _, f, points: infimum(f, _at(f, points), f.infimum)),
        "slope": _each(_slope),
        "convexity": _each(lambda _, f, points: segments(f, _at(f, points), PARTS if points[0].size > 1 else (0.5,))),
        "subgradient": _each(lambda _, f, points: supports(f, _at(f, points))),
        "smoothness": _smoothness,
    }
)
