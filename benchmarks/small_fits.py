"""What a fit of little data costs: the whole, what is outside the solver, its start and end, and an iteration."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bmrm
from benchmarks.harness import Table
from bmrm.losses import LOSSES
from bmrm.problem import Callback, Regularizer, Risk, Solution, Solver, Vector
from bmrm.solvers import SOLVERS

SIZES = (100, 5), (4_600, 57)
CASES = (
    ("hinge", "l2", "auto"),
    ("hinge", "l2", "dual_coordinate"),
    ("squared_hinge", "l2", "auto"),
    ("squared_hinge", "l2", "newton"),
    ("logistic", "l2", "auto"),
    ("logistic", "l2", "newton"),
    ("logistic", "l2", "lbfgs"),
    ("logistic", "l1", "auto"),
    ("logistic", "l1", "coordinate_descent"),
    ("least_squares", "l2", "auto"),
    ("least_squares", "l2", "newton"),
    ("least_squares", "l1", "auto"),
    ("least_squares", "l1", "coordinate_descent"),
    ("softmax", "l2", "auto"),
    ("softmax", "l2", "newton"),
    ("multiclass_hinge", "l2", "auto"),
    ("multiclass_hinge", "l2", "dual_coordinate"),
)
CLASSES = 3
"""Of the losses of several scores."""
LAMBDA = 1e-3
FITS = 200


@dataclass
class Watched:
    """A solver that measures the processor seconds of its runs, and from the first line of each to the last."""

    inner: Solver
    seconds: float = 0.0
    iterating: float = 0.0

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of the solver inside."""
        lines: list[float] = []
        begin = time.process_time()
        solution = self.inner.minimize(
            risk, regularizer, start=start, callback=lambda line: lines.append(time.process_time())
        )
        self.seconds, self.iterating = time.process_time() - begin, lines[-1] - lines[0]
        return solution


def measure() -> Table:
    """Every loss and solver on noisy linear data of each size."""
    rows = [
        (f"{m:,} x {d}", loss, penalty, f"`{solver}`", *_costs(m, d, loss, penalty, solver))
        for m, d in SIZES
        for loss, penalty, solver in CASES
    ]
    return Table(
        "Fits of little data",
        f"`bmrm.fit` of dense arrays, lambda {LAMBDA:g}, gap 1e-3, one thread: processor time, the least of"
        f" {FITS} fits, and of as many that are told of each iteration; what of these is outside the solver's"
        " `minimize`, and within, but not between its first line and its last; and what is, per iteration.",
        (
            "data",
            "loss",
            "regularizer",
            "solver",
            "iterations",
            "ms per fit",
            "told",
            "outside the solver",
            "start and end",
            "us per iteration",
        ),
        tuple(rows),
    )


def _costs(m: int, d: int, loss: str, penalty: str, solver: str) -> tuple[str, ...]:
    X, y = _data(m, d, loss)
    watched, regularizer = Watched(SOLVERS.make(solver)), bmrm.L2(LAMBDA) if penalty == "l2" else bmrm.L1(LAMBDA)
    seconds, iterations = [], 0
    for _ in range(FITS):
        begin = time.process_time()
        bmrm.fit(X, y, loss=loss, regularizer=regularizer, bias="none", solver=watched.inner, threads=1)
        plain, begin = time.process_time() - begin, time.process_time()
        model = bmrm.fit(X, y, loss=loss, regularizer=regularizer, bias="none", solver=watched, threads=1)
        whole, inside, between = time.process_time() - begin, watched.seconds, watched.iterating
        seconds.append((plain, whole, whole - inside, inside - between, between))
        iterations = max(1, model.solution.iterations)
    *parts, between = np.min(seconds, axis=0)
    milliseconds = (f"{1e3 * part:.2f}" for part in parts)
    return f"{iterations}", *milliseconds, f"{1e6 * between / iterations:.0f}"


def _data(m: int, d: int, loss: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Normal features, and a noisy linear function of them, its sign, or the class whose function is the largest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    if LOSSES.make(loss).task == "multiclass":
        scores = X @ rng.normal(size=(d, CLASSES))
        return X, np.argmax(scores + 0.5 * np.sqrt(d) * rng.normal(size=scores.shape), axis=1)
    f = X @ rng.normal(size=d) + 0.5 * np.sqrt(d) * rng.normal(size=m)
    return X, f if loss == "least_squares" else np.where(f > 0.0, 1.0, -1.0)
