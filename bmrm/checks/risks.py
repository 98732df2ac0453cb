"""The laws of a risk: `check_risk`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bmrm.checks import convex
from bmrm.checks.convex import CONVEX_LAWS, Array, Function, Part
from bmrm.checks.laws import Laws, NotOfferedError, Report, Violation
from bmrm.checks.plug_in import title_of
from bmrm.data.dataset import plain_numbers
from bmrm.problem import InputError, Scored, ability, lacking

SIZES = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class RiskCase:
    """A risk and the points that its laws are tried at."""

    risk: Any
    start: Array
    scale: float = 1.0
    seed: int = 0
    coarse: float = 0.0
    smooth: bool = False

    @cached_property
    def points(self) -> list[Array]:
        """`start`, and random ones around it."""
        rng = np.random.default_rng(self.seed)
        sizes = [size * self.scale for size in SIZES for _ in range(2)]
        return [self.start, *(self.start + size * rng.normal(size=self.start.shape) for size in sizes)]

    @cached_property
    def function(self) -> Function:
        """R, as a function of w."""
        risk = self.risk
        shape = self.start.shape
        return Function(
            lambda w: risk.value_and_subgradient(w),
            shape,
            infimum=float(risk.infimum),
            terms=self.start.size,
            coarse=self.coarse,
        )

    def parts(self) -> Iterator[Part]:
        """R at all points."""
        yield self.function, self.points


RISK_LAWS: Laws[RiskCase] = Laws(CONVEX_LAWS.all)
del RISK_LAWS.all["smoothness"]
law = RISK_LAWS.law


def check_risk(risk: Any, *, start: Any = None, scale: float = 1.0, seed: int = 0) -> Report:
    """Try whether a risk keeps the laws that solvers and their lower bounds rest on.

    They are: `dim` and `infimum`; one number and an array (dim,) for each w, finite, the array a new one; the same for
    the same w, which is left alone; values never below the infimum; the subgradient is that of the values, R is convex,
    its planes lie below it; and, where scores are offered, R(w) = phi(A w). Some 300 evaluations. Differences count
    only beyond rounding, which is measured where they are met.

    Parameters
    ----------
    risk : anything with `dim`, `infimum` and `value_and_subgradient(w)`.
    start : (dim,) a point of the domain; None for zero.
    scale : the size of entries of w that are of interest; points are tried around `start` up to ten times as far.
    seed : of the points that are tried.

    Returns
    -------
    Report
        `ok`, or a place for each law that is broken; `print` it. `raise_if_failed()` raises InputError.

    Raises
    ------
    InputError
        `start` of another length than `dim`.
    """
    title = title_of(risk)
    missing = next(members(risk), None)
    if missing is not None:
        return RISK_LAWS.after(title, missing)
    at = np.zeros(risk.dim) if start is None else np.array(plain_numbers(start, "start"))
    if at.shape != (risk.dim,):
        raise InputError(f"start has shape {at.shape}, expected ({risk.dim},)")
    return RISK_LAWS.report(title, RiskCase(risk, at, scale, seed))


def members(risk: Any) -> Iterator[Violation]:
    """What `Risk` has, whatever its class."""
    for name in ("dim", "infimum", "value_and_subgradient"):
        if any(lacking(risk, (name,))):
            yield Violation("members", "", np.inf, f"{type(risk).__name__} has no `{name}`, see bmrm.problem.Risk")
            return
    if not isinstance(risk.dim, (int, np.integer)) or risk.dim < 1:
        yield Violation("members", "", np.inf, f"dim is {risk.dim!r}, expected a whole number >= 1")
    if (
        isinstance(risk.infimum, bool)
        or not isinstance(risk.infimum, (int, float, np.number))
        or np.isnan(risk.infimum)
    ):
        text = f"infimum is {risk.infimum!r}, expected a number that R(w) never goes below; -inf where none is known"
        yield Violation("members", "", np.inf, text)


@law("scores")
def _scores(case: RiskCase) -> Iterator[Violation]:
    """phi(A w) is R(w), and A' slope a subgradient."""
    scored = ability(case.risk, Scored)
    if scored is None:
        raise NotOfferedError("the risk offers no scores")
    map, phi = scored.map, scored.phi

    def call(w: Array) -> tuple[float, Array]:
        value, slope = phi.value_and_slope(map.matvec(w))
        return value, map.rmatvec(slope)

    by_scores = Function(call, case.start.shape, terms=case.start.size)
    for point in case.points:
        here, there = case.function.at(point), by_scores.at(point)
        apart = abs(here.value - there.value) if here.finite and there.finite else 0.0
        if apart > here.rounding + there.rounding:
            text = f"phi(A w) is {there.value:.10g}, R(w) is {here.value:.10g}"
            yield case.function.violation("scores", point, apart, text)
        yield from convex.supports(by_scores, [there, *(by_scores.at(other) for other in case.points[:2])])
