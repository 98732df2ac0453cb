"""F1 on rows that no choice has seen: hinge, hinge with a tuned threshold, the search over costs, f_beta itself."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.metrics import f1_score

import bmrm
from benchmarks.harness import SHARED, Table
from bmrm.app.model import Model
from bmrm.app.pipeline.solve import Problem, solve, unwatched
from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.search.f_measure import FMeasure, best_threshold
from bmrm.solvers.line_search_bundle import LineSearchBundle

LAMBDAS = (1e-5, 1e-4, 1e-3, 1e-2)


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows: list[tuple[object, ...]] = []
    for name in ("a9a", "w8a", "ijcnn1-cont"):
        train, validation, test = _parts(read(SHARED / f"{name}.svm.xz"))
        share = f"{100.0 * np.mean(_positive(test)):.1f} %"
        for way, run in WAYS.items():
            begin = time.perf_counter()
            found = [run(train, validation, lam) for lam in LAMBDAS]
            seconds = time.perf_counter() - begin
            best = max(found, key=lambda model: _f1(model, validation))
            rows.append((name, share, way, f"{100.0 * _f1(best, test):.2f}", f"{seconds:.1f}"))
    return Table(
        "F-measure",
        "F1 in per cent on a fifth of the rows; three fifths train, a fifth decides on lambda (1e-5 to 1e-2), threshold"
        " and costs. Regularized bias, tolerance 1e-3; seconds are for all lambdas.",
        ("data", "positive", "trained with", "F1", "seconds"),
        tuple(rows),
    )


def _parts(data: Dataset) -> tuple[Dataset, Dataset, Dataset]:
    order = np.random.default_rng(0).permutation(data.rows)
    cuts = [0, 3 * data.rows // 5, 4 * data.rows // 5, data.rows]
    one, two, three = (data.select(np.sort(order[a:b])) for a, b in itertools.pairwise(cuts))
    return one, two, three


def _positive(data: Dataset) -> np.ndarray:
    return (data.targets.y == data.targets.y.max()).astype(float)


def _f1(model: Model, data: Dataset) -> float:
    return float(f1_score(_positive(data), model.decision_function(data) > 0.0))


def _problem(loss: str, lam: float) -> Problem:
    return Problem(LOSSES.make(loss), bmrm.L2(lam), LineSearchBundle(), "regularized")


def _trained(loss: str, lam: float, train: Dataset) -> Model:
    model = solve(train, _problem(loss, lam), Alone())
    assert model is not None
    return model


def _tuned(loss: str) -> Callable[[Dataset, Dataset, float], Model]:
    def run(train: Dataset, validation: Dataset, lam: float) -> Model:
        model = _trained(loss, lam, train)
        threshold, _ = best_threshold(_positive(validation), model.decision_function(validation), None, 1.0)
        return replace(model, intercept=model.intercept - threshold)

    return run


def _search(train: Dataset, validation: Dataset, lam: float) -> Model:
    parts = {"train": train, "validation": validation}
    model, _ = FMeasure().fit(parts, _problem("hinge", lam), Alone(), unwatched)
    assert model is not None
    return model


WAYS: dict[str, Callable[[Dataset, Dataset, float], Model]] = {
    "hinge": lambda train, validation, lam: _trained("hinge", lam, train),
    "hinge, threshold tuned": _tuned("hinge"),
    "search f_measure": _search,
    "f_beta": lambda train, validation, lam: _trained("f_beta", lam, train),
    "f_beta, threshold tuned": _tuned("f_beta"),
}
