"""Choose a solver from what the risk and the regularizer can do, run it, and say what was done and why."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from bmrm.problem import (
    Callback,
    HasConjugate,
    HasMaster,
    IncompatibleError,
    Iteration,
    Regularizer,
    Risk,
    Scored,
    Solution,
    Status,
    Vector,
    ability,
)
from bmrm.solvers import register
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.lbfgs import LBFGS
from bmrm.solvers.line_search_bundle import LineSearchBundle
from bmrm.solvers.monitor import IterativeSolver


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
    """Quasi-Newton where everything is smooth, else the line-search bundle where there are scores, else the bundle.

    A quasi-Newton run that stalls above the tolerance is continued by a bundle method from its best point.
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
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(IterativeSolver)}
        scored = ability(risk, Scored)
        bundle = self._bundle(scored, regularizer, options)
        smooth = scored is not None and scored.phi.smooth and regularizer.smooth
        if not (smooth and isinstance(regularizer, HasConjugate)):
            if bundle is None:
                raise IncompatibleError(
                    f"no solver fits: regularizer {type(regularizer).__name__} offers no master, and without a smooth"
                    " risk and a smooth regularizer lbfgs would stall at a kink"
                )
            solver, why = bundle
            return _named(solver.minimize(risk, regularizer, start=start, callback=callback), why)
        solution = LBFGS(**options).minimize(risk, regularizer, start=start, callback=callback)
        solution = _named(solution, "lbfgs: risk and regularizer are smooth")
        if solution.status is not Status.STALLED or bundle is None:
            return solution
        return self._continue(bundle, solution, risk, regularizer, callback, options)

    def _bundle(
        self, scored: Scored | None, regularizer: Regularizer, options: dict[str, object]
    ) -> tuple[Bundle | LineSearchBundle, str] | None:
        if not isinstance(regularizer, HasMaster):
            return None
        if scored is not None:
            return LineSearchBundle(**options), "line_search_bundle: not smooth, but with scores to search along"  # type: ignore[arg-type]
        return Bundle(**options), "bundle: the risk gives value and subgradient only"  # type: ignore[arg-type]

    def _continue(
        self,
        bundle: tuple[Bundle | LineSearchBundle, str],
        first: Solution,
        risk: Risk,
        regularizer: Regularizer,
        callback: Callback | None,
        options: dict[str, object],
    ) -> Solution:
        """The second leg, its counts and bound joined with those of the first."""
        left = None if self.time_limit is None else max(self.time_limit - first.seconds, 1e-3)
        iterations = max(1, self.max_iterations - first.iterations)
        solver = dataclasses.replace(bundle[0], time_limit=left, max_iterations=iterations)

        def shifted(line: Iteration) -> Iteration:
            return dataclasses.replace(
                line,
                iteration=first.iterations + 1 + line.iteration,
                objective=min(line.objective, first.objective),
                lower_bound=max(line.lower_bound, first.lower_bound),
                passes=first.passes + line.passes,
                seconds=first.seconds + line.seconds,
            )

        relay = None if callback is None else lambda line: callback(shifted(line))
        second = solver.minimize(risk, regularizer, start=first.w, callback=relay)
        better = second if second.objective <= first.objective else first
        joined = dataclasses.replace(
            second,
            w=better.w,
            objective=better.objective,
            lower_bound=min(max(first.lower_bound, second.lower_bound), better.objective),
            iterations=first.iterations + 1 + second.iterations,
            passes=first.passes + second.passes,
            seconds=first.seconds + second.seconds,
            history=first.history + tuple(map(shifted, second.history)),
        )
        if joined.relative_gap <= self.tolerance:
            joined = dataclasses.replace(joined, status=Status.CONVERGED)
        return _named(joined, f"lbfgs, then {bundle[1].split(':')[0]}: lbfgs stalled above the tolerance")


def _named(solution: Solution, text: str) -> Solution:
    return dataclasses.replace(solution, solver=text)
