"""Fits of little data against scikit-learn's estimators: processor milliseconds of a whole `fit`.

A peer does not prove gaps: it is told the largest of its tolerances with which its objective, in float64 and by our
formula, is within 1e-3 of a lower bound of ours at 1e-9. Ours proves a gap of 1e-3. Neither has an intercept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import geometric_mean
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import LinearSVC

import bmrm
from benchmarks.harness import Table
from bmrm.data.dataset import Dataset
from bmrm.estimators import Classifier, Regressor
from bmrm.losses import LOSSES
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.linear import LinearRisk

SIZES = (100, 5), (150, 6), (600, 25), (2_000, 60)
LAMBDAS = 1e-3, 1e-1
TARGET, NEARLY = 1e-3, 1e-9
LADDER = tuple(10.0**-k for k in range(1, 10))
"""Tolerances that peers are told."""
FITS = 30
"""The least time of so many counts."""
CLASSES = 3


@dataclass(frozen=True)
class Family:
    """A problem of ours, and who else solves it.

    Attributes
    ----------
    loss, penalty, options : of ours; lambda is the same for all.
    peer : makes the estimator from lambda, the number of rows and its tolerance.
    """

    loss: str
    penalty: str
    peer: Callable[[float, int, float], Any]
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """Of the loss."""
        return LOSSES.make(self.loss).task

    def rows(self, m: int, d: int) -> tuple[Any, Any]:
        """Normal features with a mean of 0, and targets from a noisy linear model."""
        rng = np.random.default_rng([m, d])
        X = rng.standard_normal((m, d)) * np.exp(0.5 * rng.standard_normal(d))
        f = X @ rng.standard_normal((d, CLASSES)) / np.sqrt(d) + rng.standard_normal((m, CLASSES))
        if self.task == "multiclass":
            return X, np.argmax(f, axis=1)
        if self.loss == "poisson":
            return X, rng.poisson(np.exp(np.clip(f[:, 0], -3.0, 3.0))).astype(np.float64)
        return X, np.where(f[:, 0] > 0.0, 1, -1) if self.task == "binary" else f[:, 0]


def _logistic(lam: float, m: int, tolerance: float) -> Any:
    return LogisticRegression(C=1.0 / (lam * m), tol=tolerance, fit_intercept=False, max_iter=100_000)


def _sparse_logistic(lam: float, m: int, tolerance: float) -> Any:
    options = {"l1_ratio": 1.0, "solver": "liblinear", "fit_intercept": False, "max_iter": 100_000}
    return LogisticRegression(C=1.0 / (lam * m), tol=tolerance, **options)


def _machine(loss: str, factor: float = 1.0, **options: Any) -> Callable[[float, int, float], Any]:
    given = {"loss": loss, "fit_intercept": False, "max_iter": 1_000_000, **options}
    return lambda lam, m, tolerance: LinearSVC(C=factor / (lam * m), tol=tolerance, **given)


FAMILIES = (
    Family("logistic", "l2", _logistic),
    Family("hinge", "l2", _machine("hinge", dual=True)),
    Family("squared_hinge", "l2", _machine("squared_hinge", 0.5, dual="auto")),
    Family("least_squares", "l2", lambda lam, m, tol: Ridge(alpha=lam * m, tol=tol, fit_intercept=False)),
    Family("poisson", "l2", lambda lam, m, tol: PoissonRegressor(alpha=lam, tol=tol, fit_intercept=False)),
    Family("softmax", "l2", _logistic),
    Family("multiclass_hinge", "l2", _machine("hinge", multi_class="crammer_singer")),
    Family("logistic", "l1", _sparse_logistic),
    Family("least_squares", "l1", lambda lam, m, tol: Lasso(alpha=lam, tol=tol, fit_intercept=False)),
    Family(
        "least_squares",
        "elastic_net",
        lambda lam, m, tol: ElasticNet(alpha=lam, l1_ratio=0.5, tol=tol, fit_intercept=False),
        {"l1_ratio": 0.5},
    ),
)


def measure() -> Table:
    """A line for each family and size."""
    rows, ratios, estimators = [], list[float](), list[float]()
    for family in FAMILIES:
        for m, d in SIZES:
            cells = [_cells(family, m, d, lam) for lam in LAMBDAS]
            ours, drop_in, theirs = (geometric_mean(part) for part in zip(*cells, strict=True))
            ratios.append(ours / theirs)
            estimators.append(drop_in / theirs)
            figures = (
                f"{ours:.2f}",
                f"{drop_in:.2f}",
                f"{theirs:.2f}",
                f"{ours / theirs:.2f}",
                f"{drop_in / theirs:.2f}",
            )
            rows.append((family.loss, family.penalty, f"{m:,} x {d}", *figures))
    return Table(
        "Little data against scikit-learn",
        f"A whole `fit`, processor milliseconds, the least of {FITS}, one thread, geometric means over lambda"
        f" {' and '.join(f'{lam:g}' for lam in LAMBDAS)}; no intercept. Ours (`bmrm.fit`, and `Classifier` or"
        f" `Regressor`) proves a relative gap of {TARGET:g}; an estimator of scikit-learn is told the largest of its"
        " tolerances (1e-1, 1e-2, ...) with which it is that near. All lines:"
        f" {geometric_mean(ratios):.2f} by `bmrm.fit`, at most {max(ratios):.2f};"
        f" {geometric_mean(estimators):.2f} by the estimators, at most {max(estimators):.2f}.",
        ("loss", "regularizer", "data", "`bmrm.fit`", "estimator", "scikit-learn", "ratio", "ratio of the estimator"),
        tuple(rows),
    )


def _cells(family: Family, m: int, d: int, lam: float) -> tuple[float, float, float]:
    """Milliseconds of `bmrm.fit`, of the estimator and of the peer."""
    X, y = family.rows(m, d)
    penalty = REGULARIZERS.make(family.penalty, {"lambda": lam, **family.options})
    given = {"loss": family.loss, "regularizer": penalty, "bias": "none", "threads": 1}
    best = bmrm.fit(X, y, tolerance=NEARLY, **given).solution.lower_bound
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(family.loss), threads=1)

    def above(peer: Any) -> float:
        w = np.ascontiguousarray(np.atleast_2d(peer.coef_).T).ravel()
        return (risk.value_and_subgradient(w)[0] + penalty.value(w) - best) / abs(best)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        told = next(t for t in LADDER if above(family.peer(lam, m, t).fit(X, y)) <= TARGET)
        theirs = _least(lambda: family.peer(lam, m, told).fit(X, y))
    kind = Regressor if family.task == "regression" else Classifier
    drop_in = kind(loss=family.loss, regularizer=penalty, fit_intercept=False, tol=TARGET, threads=1)
    return _least(lambda: bmrm.fit(X, y, tolerance=TARGET, **given)), _least(lambda: drop_in.fit(X, y)), theirs


def _least(fit: Callable[[], Any]) -> float:
    """Milliseconds of the fastest."""
    found = []
    for _ in range(FITS):
        begin = time.process_time()
        fit()
        found.append(1e3 * (time.process_time() - begin))
    return min(found)
