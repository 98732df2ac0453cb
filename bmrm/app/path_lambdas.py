"""Lambdas of a path: the least one that leaves all weights at 0, and the grid below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bmrm.app.asked import without_lambda
from bmrm.app.defaults import needs_lambda
from bmrm.problem import (
    BlockSeparable,
    Elastic,
    HasConjugate,
    IncompatibleError,
    InputError,
    Regularizer,
    Risk,
    Solver,
    Vector,
    bound,
    provides,
    shown,
)
from bmrm.registry import Range, checked_value
from bmrm.regularizers import REGULARIZERS
from bmrm.regularizers.base import ScaledBy
from bmrm.solvers._core.monitor import IterativeSolver

Family = Callable[[float], Regularizer]
"""From lambda to a regularizer."""
FEW_ROWS, MANY_ROWS = 1e-2, 1e-3
"""Default ratio of the last lambda to the first, by whether there are fewer rows than features."""
HUGE = 1e30
"""Lambda, in multiples of the largest slope, at which kinks keep all weights at 0; and the largest ratio of the first
lambda to where it presumably is."""
CLOSE, EPS = 1e-12, float(np.finfo(np.float64).eps)
"""Relative distance of the first two lambdas of a search."""
EXACT = 1e-12
"""Relative gap to which features of no penalty are fitted."""
FAR = 1e3
"""Lambda, in multiples of the one that leaves weights of 0 at 0, where only weights without a penalty are fitted."""
TRIES = 20
"""Times that lambda is raised until such a fit leaves the others at 0."""
NO_PATH = "lambda_max is 0: weights of 0 explain the targets as well as any others, so there is no path"


def family_of(regularizer: Any) -> Family:
    """Regularizers by lambda, from a name, a mapping without lambda, or a function of lambda such as a class.

    Raises
    ------
    InputError
        For an instance, or a mapping with lambda, which a path chooses itself; for a regularizer without lambda.
    """
    given = "l2" if regularizer is None else regularizer
    if isinstance(given, (str, Mapping)):
        section = without_lambda(given)
        if section is None:
            name = given if isinstance(given, str) else given.get("name")
            if not isinstance(name, str) or needs_lambda(REGULARIZERS.get(name)):
                REGULARIZERS.instance(given)  # says what else is wrong
                raise InputError(f"regularizer {shown(name)}: lambda is given, but a path chooses it; use lambdas")
            raise InputError(f"regularizer {shown(name)} has no lambda, of which a path has many")
        return _of_section(section)
    if provides(given, Regularizer) and not isinstance(given, type):
        name = type(given).__name__
        raise InputError(
            f"regularizer is an instance of {name}, whose lambda a path chooses; expected a name, "
            f"{{'name': ..., option: value}}, or {name} itself"
        )
    if not callable(given):
        raise InputError(f"regularizer is {shown(given)}, expected a name, a mapping, or a function of lambda")
    made: Family = given
    return made


def _of_section(section: Any) -> Family:
    """Options are checked once."""
    made: list[Regularizer] = []

    def family(lam: float) -> Regularizer:
        if not (made and isinstance(made[0], ScaledBy)):
            made[:] = [REGULARIZERS.instance(section, {"lam": lam})]
            return made[0]
        return made[0].with_lambda(lam)

    return family


def checked_lambdas(lambdas: Any) -> list[float] | None:
    """Decreasing numbers above 0; None for those of a grid.

    Raises
    ------
    InputError
        For anything else, with the first that is wrong.
    """
    if lambdas is None:
        return None
    if isinstance(lambdas, (str, bytes, Mapping)) or not np.iterable(lambdas):
        raise InputError(f"lambdas is {shown(lambdas)}, expected a list of numbers")
    found = [checked_value(f"lambdas: number {k}", one, (float,), Range()) for k, one in enumerate(lambdas)]
    if not found:
        raise InputError("lambdas is empty, expected numbers")
    for k, lam in enumerate(found):
        if not 0.0 < lam < math.inf:
            raise InputError(f"lambdas: number {k} is {lam:g}, expected a number > 0")
        if k and not lam < found[k - 1]:
            raise InputError(
                f"lambdas: number {k} is {lam:g} after {found[k - 1]:g}, expected decreasing numbers, each once"
            )
    return found


def grid(largest: float, ratio: float, count: int) -> list[float]:
    """`count` numbers from `largest` to `ratio` times it, in equal steps of their logarithms."""
    return [largest] if count == 1 else [float(lam) for lam in largest * np.geomspace(1.0, ratio, count)]


def default_ratio(rows: int, features: int) -> float:
    """Of the last lambda to the first: 1e-2 where there are fewer rows than features, else 1e-3."""
    return FEW_ROWS if rows < features else MANY_ROWS


def lambda_max(risk: Risk, family: Family, solver: Solver, tolerance: float) -> tuple[float, bool]:
    """The least lambda for which weights of 0 are a minimum, and whether it is that.

    For penalties with a kink at 0 (l1, norms of groups) it is where the dual norm of the slopes at 0 is 1; with a free
    intercept those are at the best one, and with features of no penalty at the best weights of these. For others it is
    the least one for which the gap of weights of 0 is `tolerance`.

    Parameters
    ----------
    risk : that is minimised, with its intercept.
    family : its regularizers are of these features, not bound.
    solver : fits features of no penalty.
    tolerance : relative gap.

    Raises
    ------
    InputError
        Where weights of 0 are a minimum for every lambda, or there is no lambda for which their gap is `tolerance`.
    IncompatibleError
        Where it cannot be told: the regularizer has no conjugate, or is not 0 at 0.
    """
    omega = bound(family(1.0), risk)
    name = type(omega).__name__
    if omega.value(np.zeros(risk.dim)) != 0.0:
        raise IncompatibleError(f"{name} is not 0 at weights of 0, so that no lambda is the first; give lambdas")
    penalty = omega.penalty if provides(omega, BlockSeparable) else None
    free = np.empty(0, np.int64) if penalty is None else penalty.free
    if not free.size and not provides(omega, HasConjugate):
        raise IncompatibleError(f"{name} has no conjugate, from which the first lambda would follow; give lambdas")
    value, slope = risk.value_and_subgradient(np.zeros(risk.dim))
    if free.size:
        value, slope = _beside_free(risk, family, solver, free, slope)
    size = float(np.abs(slope).max(initial=0.0))
    if not size > 0.0:
        raise InputError(NO_PATH)

    def dual(lam: float) -> float:
        """Omega* of the slopes, which is how much J could fall below that at 0."""
        there = bound(family(lam), risk)
        if not free.size:
            return there.conjugate(-slope)  # type: ignore[attr-defined, no-any-return]
        from bmrm.kernels.blocks.separable import conjugate

        return float(conjugate(-slope, tuple(there.penalty)))  # type: ignore[attr-defined]

    exact = dual(HUGE * size) == 0.0
    return _least(dual, 0.0 if exact else tolerance * abs(value), _guess(omega, slope, size)), exact


def _guess(omega: Any, slope: Vector, size: float) -> float:
    """Where the least lambda presumably is: for multiples of a norm that is where the slopes are just feasible."""
    if provides(omega, Elastic) and omega.l1 > 0.0:
        return size / omega.l1
    scale = omega.feasible(-slope) if provides(omega, HasConjugate) else 1.0
    return 1.0 / scale if 0.0 < scale < 1.0 else size


def _least(dual: Callable[[float], float], goal: float, guess: float) -> float:
    """The least lambda with dual(lambda) <= goal, up to rounding; `dual` falls. InputError where there is none."""
    low, high, factor = guess * (1.0 - CLOSE), guess, 1.0 + CLOSE
    while dual(high) > goal:
        if high > HUGE * guess:
            raise InputError("weights of 0 meet the tolerance for no lambda, so that none is the first; give lambdas")
        low, high, factor = high, high * factor, factor**2
    factor = 1.0 + CLOSE
    while dual(low) <= goal:
        if low < guess / HUGE:
            raise InputError(NO_PATH)
        low, high, factor = low / factor, low, factor**2
    while high > low * (1.0 + 4.0 * EPS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if dual(middle) > goal else (low, middle)
    return high


def _beside_free(risk: Risk, family: Family, solver: Solver, free: Any, slope: Vector) -> tuple[float, Vector]:
    """R and its slopes at the best weights of the features that have no penalty, the others being 0."""
    others = slope.copy()
    others[free] = 0.0
    exactly: Any = replace(solver, tolerance=EXACT) if isinstance(solver, IterativeSolver) else solver
    lam = FAR * float(np.abs(others).max(initial=1e-300))
    for _ in range(TRIES):
        w = exactly.minimize(risk, bound(family(lam), risk)).w
        rest = w.copy()
        rest[free] = 0.0
        if not rest.any():
            break
        lam *= FAR
    w = np.where(np.isin(np.arange(w.size), free), w, 0.0)
    value, slope = risk.value_and_subgradient(w)
    slope = slope.copy()
    slope[free] = 0.0
    return value, slope
