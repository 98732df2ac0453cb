"""Kernel features, 500 of them: ours with a certified solver, against Nystroem and LinearSVC of scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import bmrm
from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read

RANK, COST = 500, 1.0
USPS_GAMMA, COVTYPE_GAMMA = 1.0 / 128.0, 2.0
COVTYPE_ROWS = 50_000
"""For training, and as many others for the test."""


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows = [*_lines("usps", *_usps(), USPS_GAMMA), *_lines("covtype", *_covtype(), COVTYPE_GAMMA)]
    return Table(
        "Kernel features",
        f"{RANK} features of the kernel rbf, C = {COST:g}, one thread, kernels compiled; seconds of the processor, of"
        f" the whole fit and of the predictions. usps: ten classes, gamma {USPS_GAMMA:g}, the multiclass hinge here,"
        f" one-vs-rest squared hinges there. covtype: {COVTYPE_ROWS} rows drawn for training and as many for the test,"
        f" columns divided by their largest size, class 2 against the rest, gamma {COVTYPE_GAMMA:g}, squared hinge. The"
        " gap is certified.",
        ("data", "rows", "method", "test accuracy", "seconds of fit", "seconds of predictions", "relative gap"),
        tuple(rows),
    )


Part = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def _usps() -> tuple[Part, Part]:
    train, test = (read(SHARED / f"usps.{part}.svm.xz") for part in ("train", "test"))
    return (_dense(train.X), train.targets.y), (_dense(test.X), test.targets.y)


def _covtype() -> tuple[Part, Part]:
    data = read(SHARED / "covtype.svm.xz")
    chosen = np.random.default_rng(0).permutation(data.rows)[: 2 * COVTYPE_ROWS]
    X, y = _dense(data.select(chosen).X), (data.targets.y[chosen] == 2).astype(int)
    X /= np.maximum(np.abs(X).max(axis=0), 1e-300)
    return (X[:COVTYPE_ROWS], y[:COVTYPE_ROWS]), (X[COVTYPE_ROWS:], y[COVTYPE_ROWS:])


def _dense(X: Any) -> np.ndarray[Any, Any]:
    return np.asarray(X if isinstance(X, np.ndarray) else X.to_dense(), np.float64)


def _lines(name: str, train: Part, test: Part, gamma: float) -> Iterator[tuple[object, ...]]:
    several, m = len(np.unique(train[1])) > 2, len(train[1])
    loss, lam = ("multiclass_hinge", 1.0 / (COST * m)) if several else ("squared_hinge", 0.5 / (COST * m))

    def ours(map: str) -> Callable[[], Any]:
        given = {"name": map, "rank": RANK, "gamma": gamma}
        return lambda: bmrm.fit(*train, loss=loss, lam=lam, tolerance=1e-3, features=given, threads=1)

    def theirs() -> Any:
        return make_pipeline(Nystroem(gamma=gamma, n_components=RANK, random_state=0), LinearSVC(C=COST)).fit(*train)

    bmrm.fit(train[0][:300], train[1][:300], loss=loss, features={"name": "incomplete_cholesky", "rank": 9})  # compiles
    methods = {
        "incomplete_cholesky": ours("incomplete_cholesky"),
        "nystroem": ours("nystroem"),
        "Nystroem + LinearSVC": theirs,
    }
    for method, fit in methods.items():
        begin = time.process_time()
        model = fit()
        fitted = time.process_time()
        right = float(np.mean(model.predict(test[0]) == test[1]))
        predicted = time.process_time() - fitted
        gap = f"{model.solution.relative_gap:.1e}" if isinstance(model, bmrm.Model) else "-"
        yield name, m, method, f"{right:.4f}", f"{fitted - begin:.1f}", f"{predicted:.2f}", gap
