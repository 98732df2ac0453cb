"""scikit-learn's HuberRegressor, which learns a scale sigma with the weights.

At its sigma it solves our problem with delta = epsilon sigma and lambda = alpha sigma / m. The epsilon whose sigma
gives the delta asked for is searched beforehand, untimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import enter, not_installed
from benchmarks.race.problem import Task

MOST_ENTRIES = 2_000_000
"""The search takes a dozen runs."""


@dataclass(frozen=True)
class Huber:
    """With the epsilon and the alpha that belong to delta and lambda."""

    name: str = "sk HuberRegressor"
    family: str = "scikit-learn"

    def missing(self) -> str:
        return not_installed("sklearn")

    def serves(self, task: Task) -> bool:
        return task.loss == "huber" and task.problem.penalty == "l2" and task.dataset.nnz <= MOST_ENTRIES

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("tol", (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7))

    def prepare(self, task: Task) -> Prepared:
        from scipy.optimize import brentq

        X, y = task.copied()
        delta, lam = task.problem.options.get("delta", 1.0), task.problem.l2 * task.rows
        sigma = [1.0]

        def tight(epsilon: float) -> float:
            for _ in range(3):  # alpha follows sigma, which hardly depends on it
                sigma[0] = _fitted(X, y, epsilon, lam / sigma[0], 1e-8).scale_
            return float(epsilon * sigma[0]) - delta

        epsilon = brentq(tight, 1.001, 50.0, xtol=1e-7, rtol=1e-9)
        alpha = lam / sigma[0]

        def trial(rung: Rung) -> Trial:
            found: list[Any] = []
            return Trial(
                lambda: found.append(_fitted(X, y, epsilon, alpha, rung.options["tol"])), lambda: found[0].coef_
            )

        return trial


def _fitted(X: Any, y: Any, epsilon: float, alpha: float, tol: float) -> Any:
    from sklearn.linear_model import HuberRegressor

    return HuberRegressor(epsilon=epsilon, alpha=alpha, tol=tol, max_iter=10_000, fit_intercept=False).fit(X, y)


enter(Huber())
