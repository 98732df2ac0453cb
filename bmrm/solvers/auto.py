"""Choose solvers by what risk and regularizer can do and by measured times, run them, and report what was done."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bmrm.problem import (
    Callback,
    DualBlocks,
    Elastic,
    HasConjugate,
    HasMaster,
    IncompatibleError,
    Regularizer,
    Risk,
    Scored,
    Solution,
    Vector,
    ability,
    provides,
)
from bmrm.solvers import register
from bmrm.solvers._core.auto.decisions import case_of, ranked
from bmrm.solvers._core.auto.portfolio import CHAINED, Chains
from bmrm.solvers._core.monitor import IterativeSolver

FASTEST = 2
"""Number of solvers, by estimated time and with different ends, that are tried before one that fits any problem."""


@register(
    "auto",
    problem="any that one of the solvers fits",
    needs="what the chosen solver needs",
    certificate="that of the chosen solver",
    cost="that of the chosen solver",
    source="",
)
@dataclass(frozen=True)
class Auto(IterativeSolver):
    """The solver that was fastest on the measured problems most like this one; others follow where it is too slow.

    Problems are alike if they have the same abilities and kind of regularizer, and are close in rows, dimension,
    entries per row, scaled lambda and tolerance, in one process or over several ranks
    (`bmrm.solvers._core.auto.decisions`). For kinds that were not measured: quasi-Newton if everything is smooth, else
    dual ascent if there are dual steps and l2, then the line-search bundle if there are scores, else the bundle. A
    solver that stalls, or is expected to need several times longer than it has used, passes its best point, bound and
    planes to the next. `Solution.solver` says which solvers ran and why.

    Memory: that of the running solver + 8 dim bytes; a bundle that ended early keeps its planes, 8 dim bytes each.
    """

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`; raises IncompatibleError when no solver fits."""
        case = case_of(risk, regularizer, max(self.tolerance, 1e-9))
        measured = [] if case is None else _apart(ranked(case))[:FASTEST]
        order = tuple(dict.fromkeys(measured + self._by_rule(risk, regularizer)))
        if not order:
            raise IncompatibleError(
                f"no solver fits: regularizer {type(regularizer).__name__} offers no master, and without a smooth"
                " risk and a smooth regularizer lbfgs would stall at a kink"
            )
        known = {part for name in measured for part in name.split(CHAINED)}
        reasons = {name: why for name, why in RULES.items() if name not in known}
        for place, name in zip(("fastest", "next"), measured, strict=False):  # the first may not fit over ranks
            why = f"{case.kind if case else ''}: {place} on the measured problems most like this"
            reasons.setdefault(name.split(CHAINED)[0], why)
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(IterativeSolver)}
        chains = Chains(**options, names=order, reasons=reasons)
        return chains.minimize(risk, regularizer, start=start, callback=callback)

    def _by_rule(self, risk: Risk, regularizer: Regularizer) -> list[str]:
        """What fits any problem of this kind, measured or not."""
        scored = ability(risk, Scored)
        names = []
        if (
            scored is not None
            and scored.phi.facts.smooth
            and regularizer.smooth
            and provides(regularizer, HasConjugate)
        ):
            names.append("lbfgs")
        elif provides(regularizer, Elastic) and regularizer.l2 > 0.0 and ability(risk, DualBlocks) is not None:
            names.append("dual_coordinate")
        if provides(regularizer, HasMaster):
            names.append("bundle" if scored is None else "line_search_bundle")
        return names


def _apart(names: list[str]) -> list[str]:
    """Of names that end with the same solver the first: what was too slow there will be too slow again."""
    ends: dict[str, str] = {}
    for name in names:
        ends.setdefault(name.split(CHAINED)[-1], name)
    return list(ends.values())


RULES = {
    "lbfgs": "risk and regularizer are smooth",
    "dual_coordinate": "not smooth, but with dual steps",
    "line_search_bundle": "not smooth, but with scores to search along",
    "bundle": "the risk gives value and subgradient only",
}
