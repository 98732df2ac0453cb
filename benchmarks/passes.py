"""Passes over the data that the two bundle methods need; hinge, L2, no bias."""

from __future__ import annotations

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import Solution
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

TOLERANCES = (1e-3, 1e-4, 1e-6)


def measure() -> Table | None:
    """For a9a and w8a; None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows: list[tuple[object, ...]] = []
    for name in ("a9a", "w8a"):
        risk = LinearRisk(read(SHARED / f"{name}.svm.xz"), LOSSES.make("hinge"), threads=1)
        for lam in (1e-3, 1e-4, 1e-5):
            for solver in ("bundle", "line_search_bundle"):
                rows.append((name, f"{lam:g}", solver, *_run(risk, lam, solver)))
    return Table(
        "Passes of the bundle methods",
        "Hinge loss, L2, no bias, one thread. A pass reads the data once (a product counts one half); the gap is"
        " certified. The last columns are the master problem's share of the time.",
        (
            "data",
            "lambda",
            "solver",
            *(f"passes to {t:g}" for t in TOLERANCES),
            "seconds to 1e-6",
            "master to 1e-3",
            "master to 1e-6",
        ),
        tuple(rows),
    )


def _run(risk: LinearRisk, lam: float, name: str) -> tuple[str, ...]:
    solver = SOLVERS.make(name, {"tolerance": min(TOLERANCES)})
    solver.minimize(risk, L2(lam))
    solution = solver.minimize(risk, L2(lam))
    passes = [next(line.passes for line in solution.history if line.relative_gap <= t) for t in TOLERANCES]
    shares = [_share(solution, tolerance) for tolerance in (TOLERANCES[0], TOLERANCES[-1])]
    return (*(f"{count:.0f}" for count in passes), f"{solution.seconds:.2f}", *shares)


def _share(solution: Solution, tolerance: float) -> str:
    line = next(line for line in solution.history if line.relative_gap <= tolerance)
    return f"{100.0 * line.seconds_master / line.seconds:.0f} %"
