"""The laws of a regularizer and of its master, against Kelley's method on Omega itself: `check_regularizer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.checks import convex
from bmrm.checks.convex import CONVEX_LAWS, UNIT, Array, Function, Part
from bmrm.checks.laws import Laws, NotOfferedError, Report, Violation, shown
from bmrm.checks.plug_in import declared, instance_of, rebuilt, title_of
from bmrm.kernels.products.vectors import norm
from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Elastic, HasConjugate, HasMaster, Master, Space, bound, lacking, provides
from bmrm.problem.loss import HasCurvature
from bmrm.problem.regularizer import HasSpace, StronglyConvex
from bmrm.regularizers import REGULARIZERS

SIZES = (1.0, 1e3, 1e-6)
PROX_STEPS = (1e-3, 1.0, 1e3)
Infima = tuple[float, ...]
BOX = 1e3
"""Bound on the entries of w in a master until Omega is known well."""
ROUNDS = 200


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

    @property
    def smooth(self) -> bool:
        """Whether it says that it is smooth."""
        return bool(self.regularizer.smooth)

    def parts(self) -> Iterator[Part]:
        """Omega at all points."""
        yield self.function, [*self.points, *self.others]


REGULARIZER_LAWS: Laws[RegularizerCase] = Laws({"dataclass": lambda case: rebuilt(case.given), **CONVEX_LAWS.all})
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
    missing = next(members(regularizer), None) or next(declared(regularizer), None)
    if missing is not None:
        return REGULARIZER_LAWS.after(title, missing)
    return REGULARIZER_LAWS.report(title, RegularizerCase(regularizer, dim, seed))


def members(regularizer: Any) -> Iterator[Violation]:
    """What `Regularizer` has, whatever its class."""
    names = ("bind",) if provides(regularizer, HasSpace) else ("value", "subgradient", "along", "smooth")
    for name in names:
        if any(lacking(regularizer, (name,))):
            yield Violation("members", "", np.inf, f"{type(regularizer).__name__} has no `{name}`")


@law("infimum")
def _never_negative(case: RegularizerCase) -> Iterator[Violation]:
    for point in [*case.points, *case.others]:
        value = case.function.at(point).value
        if value < 0.0:
            yield case.function.violation(
                "infimum", point, -value, f"the value is {value:.10g}, expected no number below 0"
            )


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


def closes(regularizer: Any, dim: int, infima: Infima) -> Iterator[Violation]:
    """The bound is below the minimum and, unless the solution says otherwise, as near to J(w) as was asked for."""
    rng = np.random.default_rng(6)
    n, K = 12, len(infima)
    A = _around(rng, n, dim) * (1.0 + _slope_near_zero(regularizer, dim))
    b, block = rng.normal(size=n), np.arange(n) % K
    best = minimum(regularizer, A, b, block, infima)
    if best is None:
        return
    master = _filled(regularizer, A, b, block, infima)
    size = max(abs(best), 0.1)
    for accuracy in (1e-2, 1e-9):
        solution = master.solve(accuracy)
        w = np.asarray(solution.w)
        value = regularizer.value(w) + _model(A, b, block, infima, w)
        where, bound = f"{n} planes, infima {infima}, accuracy {accuracy:g}", solution.lower_bound
        if bound > best + 1e-7 * size:
            text = f"lower_bound {bound:.10g} is above the minimum, {best:.10g}"
            yield Violation("master", where, bound - best, text, (A, b))
        if solution.exact and value - bound > max(1.01 * accuracy, 1e-6) * size:
            text = f"J(w) = {value:.10g} and lower_bound {bound:.10g} are further apart than the accuracy"
            yield Violation("master", where, value - bound, text, (A, b))


def same_when_hot(regularizer: Any, dim: int) -> Iterator[Violation]:
    """Planes removed and added one by one lead to what the planes that are left do; and more planes, a higher bound."""
    rng = np.random.default_rng(8)
    A, b, block, infima = rng.normal(size=(30, dim)), rng.normal(size=30), np.arange(30) % 2, (0.0, -2.0)
    hot = _filled(regularizer, A[:20], b[:20], block[:20], infima)
    hot.solve(1e-9)
    hot.remove(hot.planes.ids[3:9].tolist())
    bounds = []
    for row, offset, k in zip(A[20:], b[20:], block[20:]):
        hot.add(row, float(offset), int(k))
        bounds.append(hot.solve(1e-9).lower_bound)
    kept = np.r_[0:3, 9:30]
    solution = _filled(regularizer, A[kept], b[kept], block[kept], infima).solve(1e-9)
    cold = solution.lower_bound
    if solution.exact and abs(bounds[-1] - cold) > 1e-7 * max(abs(cold), 1e-2):
        text = f"after planes went and came the bound is {bounds[-1]:.10g}, from the same planes at once {cold:.10g}"
        yield Violation("master", "", abs(bounds[-1] - cold), text, (A, b))
    falls = -float(np.min(np.diff(bounds)))
    if falls > 1e-6:
        yield Violation("master", "", falls, f"with one more plane the bound fell by {falls:.3g}", (A, b))


def minimum(
    regularizer: Any, A: Array, b: Array, block: NDArray[np.int64], infima: Infima, goal: float = 1e-7
) -> float | None:
    """min over w of Omega(w) + sum over blocks of max_j (<a_j, w> + b_j), by cvxopt; None where that takes too long.

    Omega is replaced by its tangent planes (Kelley 1960), so that nothing but value and subgradient are needed.
    """
    from cvxopt import matrix, solvers

    (n, d), K = A.shape, len(infima)
    known = np.flatnonzero(np.isfinite(infima))
    # variables w, omega, xi; a box holds the first iterations
    rows = [np.hstack([A, np.zeros((n, 1)), -np.equal.outer(block, np.arange(K)).astype(float)])]
    rows.append(np.hstack([np.zeros((len(known), d + 1)), -np.eye(K)[known]]))
    rows.append(np.hstack([np.eye(d), np.zeros((d, 1 + K))]))
    rows.append(-rows[-1])
    right = [-b, -np.array(infima)[known], np.full(2 * d, BOX)]
    cost = np.r_[np.zeros(d), np.ones(1 + K)]
    options = {"show_progress": False, "abstol": 0.01 * goal, "reltol": 0.01 * goal, "feastol": 0.01 * goal}
    w, best = np.zeros(d), np.inf
    for _ in range(ROUNDS):
        value, g = regularizer.value(w), regularizer.subgradient(w)
        best = min(best, value + _model(A, b, block, infima, w))
        rows.append(np.r_[g, -1.0, np.zeros(K)][None])
        right.append(np.array([g @ w - value]))
        found = solvers.lp(*map(matrix, (cost, np.vstack(rows), np.concatenate(right))), options=options)
        if found["status"] != "optimal":
            return None
        if best - found["primal objective"] <= goal:
            return float(best)
        w = np.array(found["x"]).ravel()[:d]
    return None


def _around(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Slopes on all sides of the origin, so that the model is bounded without an infimum."""
    if dim == 2:
        angle = 2.0 * np.pi * np.arange(n) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.uniform(2.0, 3.0, size=(n, 1))
    some = rng.normal(size=(n // 2, dim))
    return np.concatenate([some, -some])


def _slope_near_zero(regularizer: Any, dim: int) -> float:
    """How steep planes must be to matter: as steep as Omega one step from 0."""
    return norm(regularizer.subgradient(np.eye(1, dim)[0]))


def _model(A: Array, b: Array, block: NDArray[np.int64], infima: Infima, w: Array) -> float:
    return float(sum(max([infimum, *(A @ w + b)[block == k]]) for k, infimum in enumerate(infima)))


def _filled(regularizer: Any, A: Array, b: Array, block: NDArray[np.int64], infima: Infima) -> Master:
    master: Master = regularizer.master(PlaneStore(Space(A.shape[1]), infima))
    for row, offset, k in zip(A, b, block):
        master.add(row, float(offset), int(k))
    return master
