"""PROBE with and without dormant rows: what leaving rows out saves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.problem import Solution
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.probe import Probe

DATA = ("a9a", "w8a", "ijcnn1-cont", "farm-ads")
LAMBDAS = (1e-3, 1e-4, 1e-5)
NEAR = tuple(np.linspace(0.9, 1.1, 7))
"""Factors of a lambda: one step more or less changes all that follow, so that a single run tells little."""
WAYS: Mapping[str, Mapping[str, Any]] = {
    "all rows": {"dormant": False},
    "exact": {"dormant": True, "minimum": "exact"},
    "partial": {"dormant": True, "minimum": "partial"},
}


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows = [row for name in DATA for row in _rows(name)]
    return Table(
        "Dormant rows of PROBE",
        "Hinge, L2, no bias, one thread, `tolerance: 0`: runs to PROBE's own rule with all rows, and with dormant rows"
        f" and an `exact` or a `partial` minimum. Medians over {len(NEAR)} lambdas within 10 % of the one named."
        " Seconds are of the processor, the share of the rows that a step evaluates, J against that of all rows.",
        ("data", "lambda", "rows", "seconds", "times all rows", "steps", "share of rows", "J / J of all rows - 1"),
        tuple(rows),
    )


def _rows(name: str) -> list[tuple[object, ...]]:
    risk = LinearRisk(read(SHARED / f"{name}.svm.xz"), LOSSES.make("hinge"), threads=1)
    lines: list[tuple[object, ...]] = []
    for lam in LAMBDAS:
        runs: dict[str, list[tuple[float, Solution]]] = {way: [] for way in WAYS}
        for near in NEAR:
            for way, options in WAYS.items():  # in turn, so that a noisy moment hits all of them
                begin = time.process_time()
                solution = Probe(tolerance=0.0, **options).minimize(risk, L2(lam * near))
                runs[way].append((time.process_time() - begin, solution))
        base = np.median([seconds for seconds, _ in runs["all rows"]])
        objectives = [solution.objective for _, solution in runs["all rows"]]
        for way, found in runs.items():
            seconds = np.median([taken for taken, _ in found])
            steps = np.median([solution.iterations + 1 for _, solution in found])
            share = np.median([np.mean(solution.details["active"]) for _, solution in found])
            above = np.median([found[k][1].objective / objective - 1.0 for k, objective in enumerate(objectives)])
            figures = f"{seconds:.3f}", f"{seconds / base:.2f}", f"{steps:.0f}", f"{share:.2f}", f"{above:+.1e}"
            lines.append((name, f"{lam:g}", way, *figures))
    return lines
