"""Paths of l2 against separate fits of the same lambdas, in passes over the rows, whatever else the machine does."""

from __future__ import annotations

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
    """2,000 made rows of 50 features, two classes."""
    return make_classification(2_000, 50, n_informative=20, random_state=0)  # type: ignore[no-any-return]


def numbers() -> tuple[Any, Any]:
    """2,000 made rows of 50 features; targets with noise."""
    return make_regression(2_000, 50, noise=20.0, random_state=0)  # type: ignore[no-any-return]


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


PROBLEMS = (
    Problem("hinge", "made, 2,000 x 50", classes),
    Problem("hinge", "breast_cancer, 569 x 30", breast_cancer),
    Problem("logistic", "made, 2,000 x 50", classes, smooth=True),
    Problem("logistic", "breast_cancer, 569 x 30", breast_cancer, smooth=True),
    Problem("quantile", "made, 2,000 x 50", numbers),
    Problem("quantile", "diabetes, 442 x 10", diabetes),
    Problem("huber", "made, 2,000 x 50", numbers, smooth=True),
)


def measure() -> Table:
    """A line for each problem and gap."""
    rows: list[tuple[str, ...]] = []
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for problem in PROBLEMS:
        X, y = problem.data()
        for target in TARGETS:
            given: Any = {"loss": problem.loss, "tolerance": target, "threads": 1}
            path = bmrm.path(X, y, n_lambdas=POINTS, **given)
            fits = [bmrm.fit(X, y, regularizer=bmrm.L2(float(lam)), **given).solution for lam in path.lambdas]
            assert path.gaps.max() <= target
            assert max(one.relative_gap for one in fits) <= target
            together, apart = float(path.passes.sum()), sum(one.passes for one in fits)
            ratios[problem.smooth].append(apart / together)
            cells = (f"{together:.0f}", f"{apart:.0f}", f"{apart / together:.1f}", f"{path.gaps.max():.1e}")
            rows.append((problem.loss, problem.name, f"{target:g}", *cells))
            print(rows[-1], flush=True)
    return table(rows, ratios)


def table(rows: list[tuple[str, ...]], ratios: dict[bool, list[float]]) -> Table:
    """Of the lines; ratios by whether the loss is smooth."""
    smooth, kinked = (f"{geometric_mean(part):.1f} ({min(part):.1f} to {max(part):.1f})" for part in ratios.values())
    note = (
        f"`auto`, l2, {POINTS} lambdas from lambda_max down by the default ratio, features standardized, a free "
        "intercept: passes over the rows that all points of a path take, and those of `bmrm.fit` for each lambda by "
        "itself, all to the certified gap. The search for lambda_max is not counted. Separate fits take "
        f"{smooth} times the passes of the path where the loss is smooth, and {kinked} times where it has kinks "
        "(geometric mean, least to most): of these a path keeps only the last solution."
    )
    head = ("loss", "rows", "gap", "passes of the path", "of separate fits", "fits / path", "largest gap of the path")
    return Table("Paths of l2 against separate fits", note, head, tuple(rows))
