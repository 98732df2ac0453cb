"""The master problem by our active set and by cvxopt, inside the same bundle method."""

from __future__ import annotations

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

CASES = (
    ("a9a", "l2", 1e-3, ("active_set", "cvxopt")),
    ("a9a", "l2", 1e-5, ("active_set", "cvxopt")),
    ("w8a", "l2", 1e-5, ("active_set",)),
    ("a9a", "l1", 1e-3, ("simplex", "cvxopt")),
    ("a9a", "l1", 1e-5, ("simplex",)),
    ("a9a", "elastic_net", 1e-3, ("active_set", "cvxopt")),
    ("a9a", "elastic_net", 1e-5, ("active_set",)),
)


def measure() -> Table | None:
    """Milliseconds per solution, hinge, line-search bundle to 1e-3; None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows: list[tuple[object, ...]] = []
    for name, regularizer, lam, engines in CASES:
        risk = LinearRisk(read(SHARED / f"{name}.svm.xz"), LOSSES.make("hinge"), threads=1)
        for engine in engines:
            rows.append((name, regularizer, f"{lam:g}", engine, *_run(risk, regularizer, lam, engine)))
    return Table(
        "The master problem",
        "Hinge, `line_search_bundle` to a gap of 1e-3, one thread; all planes are solved for again in each iteration.",
        ("data", "regularizer", "lambda", "engine", "iterations", "ms per solution", "share of the time"),
        tuple(rows),
    )


def _run(risk: LinearRisk, regularizer: str, lam: float, engine: str) -> tuple[str, ...]:
    omega = REGULARIZERS.make(regularizer, {"lambda": lam, "engine": engine})
    solver = SOLVERS.make("line_search_bundle", {"tolerance": 1e-3})
    solver.minimize(risk, omega)
    last = solver.minimize(risk, omega).history[-1]
    each = 1e3 * last.seconds_master / max(1, last.iteration)
    return f"{last.iteration}", f"{each:.2f}", f"{100.0 * last.seconds_master / last.seconds:.0f} %"
