"""The laws of a regularizer: `check_regularizer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bmrm.checks import convex, plug_in
from bmrm.checks.functions import UNIT, Array, Function
from bmrm.checks.master_laws import closes, same_when_hot
from bmrm.checks.named import instance_of, title_of
from bmrm.checks.report import Report, Violation, shown
from bmrm.checks.running import Laws, NotOfferedError
from bmrm.problem import (
    Elastic,
    HasConjugate,
    HasCurvature,
    HasMaster,
    HasSpace,
    Space,
    StronglyConvex,
    bound,
    lacking,
    provides,
)
from bmrm.regularizers import REGULARIZERS

SIZES = (1.0, 1e3, 1e-6)
PROX_STEPS = (1e-3, 1.0, 1e3)


@dataclass(frozen=True)
class RegularizerCase:
    """A regularizer and the points that its laws are tried at."""

    given: Any
    dim: int
    seed: int = 0
    each: int = 4
    """Points of each size."""
    coarse: float = 0.0

    @cached_property
    def regularizer(self) -> Any:
        """As a function of vectors."""
        return bound(self.given, Space(self.dim))

    @cached_property
    def points(self) -> list[Array]:
        """Random points of several sizes, with zero entries, and zero itself."""
        rng = np.random.default_rng(self.seed)
        shape = (len(SIZES) * self.each, self.dim)
        sizes = np.repeat(SIZES, self.each)[:, None]
        table = sizes * rng.normal(size=shape) * (rng.random(shape) < 0.7)
        return [np.zeros(self.dim), *table]

    @cached_property
    def others(self) -> list[Array]:
        """Points beside each of those, of its size and of others."""
        rng = np.random.default_rng(self.seed + 1)
        return [rng.normal(size=self.dim) * size for size in rng.choice([*SIZES, 1e6], len(self.points))]

    @cached_property
    def function(self) -> Function:
        """Omega, as a function of w."""
        one = self.regularizer
        return Function(
            lambda w: (one.value(w), one.subgradient(w)),
            (self.dim,),
            terms=self.dim,
            infimum=0.0,
            coarse=self.coarse,
        )


REGULARIZER_LAWS: Laws[RegularizerCase] = Laws()
law = REGULARIZER_LAWS.law


def check_regularizer(
    regularizer: Any, *, dim: int = 6, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Report:
    """Try whether a regularizer keeps the laws that solvers and their lower bounds rest on.

    They are: results of the right shape, finite, new arrays, the same each time, inputs left alone; nowhere negative;
    the subgradient is that of the values, Omega is convex, its planes lie below it; `along` gives the values on a
    line; and, where they are offered, that second derivatives are those of the values, the conjugate is the maximum of
    <v, w> - Omega(w) (Fenchel), the proximal map minimises, the modulus of strong convexity is not too large, the norms
    `l1` and `l2` are all there is, and the master finds the minimum and proves it.

    Parameters
    ----------
    regularizer : an instance, a class (made with defaults and examples), or a name as configs have it.
    dim : the length of w.
    options : of the regularizer, where it is given by name or class.
    seed : of the points that are tried.

    Returns
    -------
    Report
        `ok`, or a place for each law that is broken; `print` it. `raise_if_failed()` raises InputError.

    Raises
    ------
    InputError
        No regularizer of this name, or a parameter without default and example.
    """
    regularizer = instance_of(REGULARIZERS, regularizer, options)
    title = title_of(regularizer)
    missing = next(members(regularizer), None) or next(plug_in.declared(regularizer), None)
    if missing is not None:
        later = list(REGULARIZER_LAWS.all)[1:]
        return Report(title, (), (missing,), dict.fromkeys(later, f"after {missing.law}"))
    return REGULARIZER_LAWS.report(title, RegularizerCase(regularizer, dim, seed))


def members(regularizer: Any) -> Iterator[Violation]:
    """What `Regularizer` has, whatever its class."""
    names = ("bind",) if provides(regularizer, HasSpace) else ("value", "subgradient", "along", "smooth")
    for name in names:
        if any(lacking(regularizer, (name,))):
            yield Violation("members", "", np.inf, f"{type(regularizer).__name__} has no `{name}`")


@law("dataclass")
def _dataclass(case: RegularizerCase) -> Iterator[Violation]:
    yield from plug_in.rebuilt(case.given)


@law("shapes")
def _shapes(case: RegularizerCase) -> Iterator[Violation]:
    for point in [*case.points, *case.others]:
        case.function.at(point)
    yield from ()


@law("inputs kept")
def _inputs(case: RegularizerCase) -> Iterator[Violation]:
    yield from convex.keeps_inputs(case.function, case.points[-2:])


@law("determinism")
def _determinism(case: RegularizerCase) -> Iterator[Violation]:
    yield from convex.is_determined(case.function, case.points[-2:])


@law("never negative")
def _never_negative(case: RegularizerCase) -> Iterator[Violation]:
    for point in [*case.points, *case.others]:
        value = case.function.at(point).value
        if value < 0.0:
            yield case.function.violation("never negative", point, -value, f"the value is {value:.10g}")


@law("slope")
def _slope(case: RegularizerCase) -> Iterator[Violation]:
    rng = np.random.default_rng(case.seed + 2)
    for point in case.points:
        scale = float(np.max(np.abs(point), initial=0.0)) or 1.0
        directions = [min(1.0, scale) * rng.normal(size=case.dim) for _ in range(3)]
        yield from convex.slopes(case.function, case.function.at(point), directions)


@law("convexity")
def _convexity(case: RegularizerCase) -> Iterator[Violation]:
    places = [case.function.at(point) for point in [*case.points, *case.others[::3]]]
    yield from convex.segments(case.function, places)


@law("subgradient")
def _subgradient(case: RegularizerCase) -> Iterator[Violation]:
    yield from convex.supports(case.function, [case.function.at(point) for point in [*case.points, *case.others]])


@law("smoothness")
def _smoothness(case: RegularizerCase) -> Iterator[Violation]:
    if not case.regularizer.smooth:
        raise NotOfferedError("it does not say that it is smooth")
    for point in case.points:
        yield from convex.continuous_slopes(case.function, case.function.at(point))


@law("along")
def _along(case: RegularizerCase) -> Iterator[Violation]:
    for point, step in zip(case.points, case.others):
        yield from convex.lines(case.function, case.function.at(point), step, case.regularizer.along(point, step))


@law("second derivative")
def _second_derivative(case: RegularizerCase) -> Iterator[Violation]:
    if not provides(case.regularizer, HasCurvature):
        raise NotOfferedError("it has no `hessian_product`")
    for point, step in zip(case.points, case.others):
        step = step / max(1.0, float(np.max(np.abs(step))))
        product = case.regularizer.hessian_product
        yield from convex.second_derivative(case.function, case.function.at(point), [step], product)


@law("conjugate")
def conjugates(case: RegularizerCase) -> Iterator[Violation]:
    """Fenchel's equality at a subgradient, his inequality elsewhere."""
    one, function = _offering(case, HasConjugate, "conjugate and feasible"), case.function
    for point, other in zip(case.points, case.others):
        place = function.at(point)
        product = float(place.slope @ point)
        apart = abs(one.conjugate(place.slope) + place.value - product)
        rounding = 2.0 * place.rounding + place.slope_rounding * float(np.sum(np.abs(point)))
        if not apart <= rounding + 64.0 * UNIT * (abs(product) + place.value):
            text = f"Omega*(v) is {one.conjugate(place.slope):.10g} at the subgradient v, <v, w> - Omega(w) there is "
            yield function.violation("conjugate", point, apart, f"{text}{product - place.value:.10g}")
        for v in (one.feasible(other) * other, one.feasible(point) * point):
            bound = float(v @ point) - one.conjugate(v)
            size = float(np.abs(v) @ np.abs(point))
            if bound - place.value > 2.0 * place.rounding + 64.0 * UNIT * size:
                text = f"for v = {shown(v)} <v, w> - Omega*(v) is {bound:.10g}, above Omega(w) = {place.value:.10g}"
                yield function.violation("conjugate", point, bound - place.value, text, v)


def _offering(case: RegularizerCase, kind: type, what: str) -> Any:
    if not isinstance(case.regularizer, kind):
        raise NotOfferedError(f"it has no {what}")
    return case.regularizer


@law("feasible")
def _feasible(case: RegularizerCase) -> Iterator[Violation]:
    """The largest scale in [0, 1] at which the conjugate is finite."""
    one = _offering(case, HasConjugate, "conjugate and feasible")
    for v in [*case.points, *case.others]:
        scale = one.feasible(v)
        if not 0.0 <= scale <= 1.0:
            yield Violation("feasible", f"v = {shown(v)}", np.inf, f"it is {scale}, expected 0 to 1", (v,))
        elif not one.conjugate(scale * v) < np.inf:
            text = f"it is {scale:.10g}, but the conjugate there is not finite"
            yield Violation("feasible", f"v = {shown(v)}", np.inf, text, (v,))
        elif scale < 1.0 and one.conjugate(min(1.0, scale * (1.0 + 1e-9)) * v) < np.inf:
            text = f"it is {scale:.10g}, but the conjugate is finite at larger scales too"
            yield Violation("feasible", f"v = {shown(v)}", 1.0 - scale, text, (v,))


@law("prox")
def _prox(case: RegularizerCase) -> Iterator[Violation]:
    """(v - p) / step is a subgradient at p = prox(v, step)."""
    if any(lacking(case.regularizer, ("prox",))):
        raise NotOfferedError("it has no `prox`")
    for v, other in zip(case.points, case.others):
        for step in PROX_STEPS:
            p = np.asarray(case.regularizer.prox(v.copy(), step))
            if p.shape != v.shape:
                yield Violation("prox", f"v = {shown(v)}", np.inf, f"it has shape {p.shape}, expected {v.shape}", (v,))
                return
            value = case.function.at(p).value
            for y in (other, np.zeros(case.dim), v, 1.01 * p, 0.99 * p):
                plane = value + float((v - p) @ (y - p)) / step
                size = float((np.abs(v) + np.abs(p)) @ np.abs(y - p)) / step + value
                above = plane - case.regularizer.value(y)
                if above > 4e3 * UNIT * size:
                    text = f"with step {step:g} it is {shown(p)}, which is not the minimiser: {shown(y)} is better"
                    yield Violation("prox", f"v = {shown(v)}", above, text, (v, p, y))


@law("strong convexity")
def _strong_convexity(case: RegularizerCase) -> Iterator[Violation]:
    one = _offering(case, StronglyConvex, "`modulus`")
    if not one.modulus > 0.0:
        yield Violation("strong convexity", "", np.inf, f"the modulus is {one.modulus}, expected a number above 0")
        return
    for x, y in zip(case.points, case.others):
        far, near, middle = (case.function.at(point) for point in (x, y, 0.5 * (x + y)))
        quadratic = 0.125 * one.modulus * float((x - y) @ (x - y))
        above = middle.value + quadratic - 0.5 * (far.value + near.value)
        if above > 2.0 * (far.rounding + near.rounding + middle.rounding) + 4e3 * UNIT * (quadratic + middle.value):
            text = f"the modulus {one.modulus:.6g} is too large between there and {shown(y)}"
            yield case.function.violation("strong convexity", x, above, text, y)


@law("elastic")
def _elastic(case: RegularizerCase) -> Iterator[Violation]:
    """Omega(w) = l1 ||w||_1 + l2/2 ||w||^2, and nothing else."""
    one = _offering(case, Elastic, "`l1` and `l2`")
    for point in [*case.points, *case.others]:
        place = case.function.at(point)
        expected = one.l1 * float(np.abs(point).sum()) + 0.5 * one.l2 * float(point @ point)
        if abs(place.value - expected) > place.rounding + 8.0 * case.dim * UNIT * abs(expected):
            text = f"Omega is {place.value:.10g}, with l1 = {one.l1:g} and l2 = {one.l2:g} expected {expected:.10g}"
            yield case.function.violation("elastic", point, abs(place.value - expected), text)
    if bool(one.smooth) != (one.l1 == 0.0):
        yield Violation("elastic", "", np.inf, f"`smooth` is {one.smooth}, l1 is {one.l1:g}")


@law("master")
def _master(case: RegularizerCase) -> Iterator[Violation]:
    one = _offering(case, HasMaster, "`master`")
    for infima in ((0.0,), (-1.0, 0.0), (-np.inf,)):
        yield from closes(one, _dim_of_masters(case), infima)
    yield from same_when_hot(one, case.dim)


def _dim_of_masters(case: RegularizerCase) -> int:
    """2, where the minimum is quickly found in another way, unless w must have a length of its own."""
    try:
        case.regularizer.value(np.ones(2))
        case.regularizer.subgradient(np.ones(2))
    except Exception:
        return case.dim
    return 2
