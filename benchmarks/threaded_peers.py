"""Two threads of ours against two of liblinear-multicore, to the same objective, by the clock.

`make .venv/peers` installs that beside the environment, since its package has the name of LIBLINEAR's own.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import Table, alternated, ratio
from bmrm.data.dataset import Dataset
from bmrm.kernels.workers import usable_cores
from bmrm.losses import LOSSES
from bmrm.problem import Vector
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

FOLDER = Path(sys.prefix) / "multicore"
THREADS, TURNS, ACCURACIES, CLOSE = 2, 3, (1e-3, 1e-6), 1e-8
"""CLOSE is the gap of the run that says what the minimum is."""
SETTINGS, PATIENCE = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5), 3.0
"""The peer's `-e`, of which the loosest that is accurate enough counts; no other follows one of so many seconds."""
SOLVED_BY = {"logistic": ((0,), 1.0), "hinge": ((3,), 1.0), "squared_hinge": ((1, 2), 0.5)}
"""Its `-s` that take threads, and the weight of a row's loss in its terms over ours."""
LAMBDAS = (1e-4,)


def measure() -> Table | None:
    """None on one core, or where the peer is not installed."""
    if usable_cores() < THREADS or not FOLDER.is_dir():
        return None
    sys.path.insert(0, str(FOLDER))
    peer = importlib.import_module("liblinear.liblinearutil")
    rows = [
        (name, *line)
        for name, X in {"sparse": _sparse(), "dense": _dense()}.items()
        for loss in SOLVED_BY
        for lam in LAMBDAS
        for line in _lines(peer, X, loss, lam)
    ]
    return Table(
        "Two threads against liblinear-multicore",
        f"{THREADS} threads, l2, no intercept: `auto` to a certified gap, the peer at the loosest `-e` of"
        f" {', '.join(f'{one:g}' for one in SETTINGS)} whose objective is within the gap of ours at {CLOSE:g}, which"
        f" nobody would know, and the fastest `-s` that takes threads. Seconds by the clock, medians of {TURNS}, in"
        " turn; - where no setting gets there. Sparse: 20,000 rows of up to 90 of 50,000 words, few of them popular,"
        " scaled to length 1; dense: 60,000 x 50, correlated.",
        ("rows", "loss", "lambda", "to", "ours", "liblinear-multicore", "ours over its"),
        tuple(rows),
    )


def _sparse() -> Any:
    rng = np.random.default_rng(0)
    m, d, words = 20_000, 50_000, 90
    columns = (d * rng.random((m, words)) ** 3.0).astype(np.int64).ravel()
    X = sp.csr_matrix((np.ones(columns.size), columns, np.arange(m + 1) * words), shape=(m, d))
    X.sum_duplicates()
    return sp.csr_matrix(sp.diags(1.0 / sp.linalg.norm(X, axis=1)) @ X)


def _dense() -> Any:
    rng = np.random.default_rng(1)
    return rng.standard_normal((60_000, 50)) @ (np.eye(50) + 0.3 * rng.standard_normal((50, 50)))


def _signs(X: Any) -> Vector:
    rng = np.random.default_rng(2)
    scores = X @ rng.standard_normal(X.shape[1])
    return np.where(scores + scores.std() * rng.standard_normal(len(scores)) > 0.0, 1.0, -1.0)


def _lines(peer: Any, X: Any, loss: str, lam: float) -> Iterator[tuple[object, ...]]:
    y = _signs(X)
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss), threads=THREADS)
    omega = L2(lam)

    def ours(tolerance: float) -> Any:
        return SOLVERS.make("auto", {"tolerance": tolerance}).minimize(risk, omega)

    def objective(w: Vector) -> float:
        return risk.value_and_subgradient(w)[0] + omega.value(w)

    least = ours(CLOSE).objective
    tried = list(_ladder(peer, X, y, loss, lam, objective))
    for accuracy in ACCURACIES:
        good = [(seconds, run) for seconds, value, run in tried if value <= least + accuracy * abs(least)]
        timed: dict[str, Callable[[], object]] = {"ours": partial(ours, accuracy)}
        timed |= {"its": min(good, key=lambda each: each[0])[1]} if good else {}
        times = alternated(timed, TURNS)
        its = (times["its"], ratio(times["ours"], times["its"])) if good else ("-", "-")
        yield loss, f"{lam:g}", f"{accuracy:g}", times["ours"], *its


def _ladder(
    peer: Any, X: Any, y: Vector, loss: str, lam: float, objective: Callable[[Vector], float]
) -> Iterator[tuple[float, float, Callable[[], object]]]:
    """Seconds and objective of each setting, and its run."""
    solvers, weight = SOLVED_BY[loss]
    given = sys.modules["liblinear.liblinear"].problem(y, sp.csr_matrix(X), bias=-1)  # type: ignore[attr-defined]
    for solver in solvers:
        for setting in SETTINGS:
            options = f"-s {solver} -c {weight / (lam * len(y))!r} -e {setting!r} -m {THREADS} -q"
            run, begin = partial(peer.train, given, options), time.perf_counter()
            model = run()
            seconds = time.perf_counter() - begin
            w = np.zeros(X.shape[1])
            w[: model.nr_feature] = np.ctypeslib.as_array(model.w, (model.nr_feature,))
            yield seconds, objective(w if model.label[0] > 0 else -w), run
            if seconds > PATIENCE:
                break
