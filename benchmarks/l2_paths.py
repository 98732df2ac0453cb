"""Paths of l2 against separate fits of the same lambdas: passes over the rows, and processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, make_classification, make_regression
from sklearn.preprocessing import StandardScaler

import bmrm
from benchmarks.harness import Table

POINTS = 20
TARGETS = (1e-3, 1e-6)
Rows = Callable[[], "tuple[Any, Any]"]


def classes() -> tuple[Any, Any]:
    """8,000 made rows of 50 features, two classes."""
    return make_classification(8_000, 50, n_informative=20, random_state=0)  # type: ignore[no-any-return]


def numbers() -> tuple[Any, Any]:
    """8,000 made rows of 50 features; targets with noise."""
    return make_regression(8_000, 50, noise=20.0, random_state=0)  # type: ignore[no-any-return]


def breast_cancer() -> tuple[Any, Any]:
    """569 rows of 30 features, two classes."""
    return load_breast_cancer(return_X_y=True)  # type: ignore[no-any-return]


def diabetes() -> tuple[Any, Any]:
    """442 rows of 10 features, numbers."""
    return load_diabetes(return_X_y=True)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Problem:
    """A loss, and rows, whose features are standardized and whose targets, where they are numbers, have deviation 1."""

    loss: str
    name: str
    rows: Rows
    smooth: bool = False

    def data(self) -> tuple[Any, Any]:
        """The rows."""
        X, y = self.rows()
        return StandardScaler().fit_transform(X), y / y.std() if y.dtype.kind == "f" else y


MADE = "made, 8,000 x 50"
PROBLEMS = (
    Problem("hinge", MADE, classes),
    Problem("logistic", MADE, classes, smooth=True),
    Problem("quantile", MADE, numbers),
    Problem("huber", MADE, numbers, smooth=True),
    Problem("hinge", "breast_cancer, 569 x 30", breast_cancer),
    Problem("logistic", "breast_cancer, 569 x 30", breast_cancer, smooth=True),
    Problem("quantile", "diabetes, 442 x 10", diabetes),
)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of the processor, and what was found; the second time, when all is compiled."""
    work()
    begin = time.process_time()
    found = work()
    return 1e3 * (time.process_time() - begin), found


def measure() -> Table:
    """A line for each problem and gap."""
    rows: list[tuple[str, ...]] = []
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for problem in PROBLEMS:
        X, y = problem.data()
        for target in TARGETS:
            given: Any = {"loss": problem.loss, "tolerance": target, "threads": 1}
            path_ms, path = timed(lambda: bmrm.path(X, y, n_lambdas=POINTS, **given))  # noqa: B023
            fits_ms, fits = timed(lambda: [bmrm.fit(X, y, lam=float(lam), **given) for lam in path.lambdas])  # noqa: B023
            assert path.gaps.max() <= target
            assert max(one.solution.relative_gap for one in fits) <= target
            together, apart = float(path.passes.sum()), sum(one.solution.passes for one in fits)
            if problem.name == MADE:
                ratios[problem.smooth].append(apart / together)
            passes = (f"{together:.0f}", f"{apart:.0f}", f"{apart / together:.1f}")
            times = (f"{path_ms / POINTS:.1f}", f"{fits_ms / POINTS:.1f}")
            rows.append((problem.loss, problem.name, f"{target:g}", *passes, *times))
            print(rows[-1], flush=True)
    return table(rows, ratios)


def table(rows: list[tuple[str, ...]], ratios: dict[bool, list[float]]) -> Table:
    """Of the lines; ratios by whether the loss is smooth."""
    smooth, kinked = (f"{geometric_mean(part):.1f} ({min(part):.1f} to {max(part):.1f})" for part in ratios.values())
    note = (
        f"`auto`, l2, {POINTS} lambdas from lambda_max down by the default ratio, features standardized, a free "
        "intercept, one thread: passes over the rows that all points of a path take, and those of `bmrm.fit` for each "
        "lambda by itself, all to the certified gap, and milliseconds of the processor for each point, the search for "
        f"lambda_max among them. On the made rows separate fits take {smooth} times the passes of the path where the "
        f"loss is smooth, and {kinked} times where it has kinks (geometric mean, least to most). The others are little "
        "data, whose points are found at once, from the last one."
    )
    head = ("loss", "rows", "gap", "passes of the path", "of separate fits", "fits / path", "ms a point", "ms a fit")
    return Table("Paths of l2 against separate fits", note, head, tuple(rows))
