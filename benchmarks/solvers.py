"""Every solver on a9a and w8a: passes and seconds until J is near its minimum."""

from __future__ import annotations

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import Solution
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

ACCURACIES = (1e-2, 1e-3, 1e-6)
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
                minimum = reference.minimize(risk, L2(lam)).objective
                for solver in solvers:
                    rows.append((name, loss, f"{lam:g}", solver, *_run(risk, lam, solver, minimum)))
    return Table(
        "Solvers",
        "L2, no bias, one thread. Passes and seconds until J is within the given share of its minimum, known from a"
        f" run to 1e-7; a dash where that was not reached in {SECONDS:g} s, or before the solver's own rule. The last"
        " columns are what the solver itself proves, and how it ended.",
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


def _run(risk: LinearRisk, lam: float, name: str, minimum: float) -> tuple[str, ...]:
    solver = SOLVERS.make(name, {"tolerance": 1e-6, "time_limit": SECONDS, "max_iterations": 10**6})
    solution = solver.minimize(risk, L2(lam))
    cells = [_reached(solution, minimum * (1.0 + accuracy)) for accuracy in ACCURACIES]
    return (*cells, f"{solution.relative_gap:.1e}", solution.status.name)


def _reached(solution: Solution, objective: float) -> str:
    line = next((line for line in solution.history if line.objective <= objective), None)
    return "-" if line is None else f"{line.passes:.0f}, {line.seconds:.2f}"
