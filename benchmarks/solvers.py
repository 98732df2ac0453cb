"""Every solver on a9a and w8a: passes and seconds until J is near its minimum."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import Solution
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

ACCURACIES = (1e-2, 1e-3, 1e-6)
NEAR = {"probe": (0.992, 0.994, 0.996, 0.998, 1.0, 1.002, 1.004, 1.006, 1.008)}
"""Factors of lambda for a solver whose single runs tell little: a step more or less changes all that follow."""
SECONDS = 10.0
SOLVERS_OF = {
    "hinge": ("bundle", "line_search_bundle", "probe", "pegasos"),
    "logistic": ("line_search_bundle", "lbfgs", "irls", "nonlinear_cg", "proximal_gradient", "probe"),
}
REFERENCE = {"hinge": "line_search_bundle", "logistic": "irls"}


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows: list[tuple[object, ...]] = []
    for name in ("a9a", "w8a"):
        data = read(SHARED / f"{name}.svm.xz")
        for loss, solvers in SOLVERS_OF.items():
            risk = LinearRisk(data, LOSSES.make(loss), threads=1)
            for lam in (1e-3, 1e-4, 1e-5, 1e-6):
                reference = SOLVERS.make(REFERENCE[loss], {"tolerance": 1e-7, "time_limit": 60.0})
                best = reference.minimize(risk, L2(lam))
                for solver in solvers:
                    rows.append((name, loss, f"{lam:g}", solver, *_run(risk, lam, solver, best)))
    return Table(
        "Solvers",
        "L2, no bias, one thread. Passes and seconds until J is within the given share of its minimum, known from a"
        f" run to 1e-7; a dash where that was not reached in {SECONDS:g} s, or before the solver's own rule. The last"
        " columns are what the solver itself proves, and how it ended. `probe`: medians over"
        f" {len(NEAR['probe'])} lambdas within 1 %, a dash where fewer than half of the runs got there.",
        (
            "data",
            "loss",
            "lambda",
            "solver",
            *(f"passes, s to {accuracy:g}" for accuracy in ACCURACIES),
            "certified gap",
            "status",
        ),
        tuple(rows),
    )


def _run(risk: LinearRisk, lam: float, name: str, best: Solution) -> tuple[str, ...]:
    """Medians over lambdas near `lam`, `best` being the solution there."""
    solver = SOLVERS.make(name, {"tolerance": 1e-6, "time_limit": SECONDS, "max_iterations": 10**6})
    found = []
    for factor in NEAR.get(name, (1.0,)):
        # the minimum as a function of lambda: its tangent, too high by the square of 1 % at most
        minimum = best.objective + 0.5 * lam * (factor - 1.0) * float(best.w @ best.w)
        found.append((solver.minimize(risk, L2(lam * factor)), minimum))
    cells = [_reached([_line(run, minimum * (1.0 + accuracy)) for run, minimum in found]) for accuracy in ACCURACIES]
    gap = float(np.median([run.relative_gap for run, _ in found]))
    statuses = [run.status.name for run, _ in found]
    return (*cells, f"{gap:.1e}", max(statuses, key=statuses.count))


def _line(solution: Solution, objective: float) -> tuple[float, float]:
    """Passes and seconds until J is at most `objective`; inf where it never is."""
    line = next((line for line in solution.history if line.objective <= objective), None)
    return (math.inf, math.inf) if line is None else (line.passes, line.seconds)


def _reached(lines: list[tuple[float, float]]) -> str:
    passes, seconds = np.median(lines, axis=0)
    return "-" if math.isinf(passes) else f"{passes:.0f}, {seconds:.2f}"
