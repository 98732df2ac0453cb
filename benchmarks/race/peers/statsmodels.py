"""statsmodels: quantile regression by reweighted least squares, which knows no penalty.

It takes part where lambda is so small that it does not matter: the judge adds it all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, rungs
from benchmarks.race.peers import enter, not_installed
from benchmarks.race.problem import Task

NEGLIGIBLE = 1e-7
"""The largest lambda of problems with targets of variance 1 that it may leave out."""


@dataclass(frozen=True)
class QuantReg:
    """`QuantReg.fit` with rising accuracy of the coefficients."""

    name: str = "statsmodels QuantReg"
    family: str = "statsmodels"

    def missing(self) -> str:
        return not_installed("statsmodels")

    def serves(self, task: Task) -> bool:
        absolute = task.loss in ("quantile", "least_absolute_deviation")
        return absolute and not task.sparse and task.problem.lam <= NEGLIGIBLE

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("p_tol", (1e-1, 1e-2, 1e-3, 1e-4, 1e-6))

    def prepare(self, task: Task) -> Prepared:
        from statsmodels.regression.quantile_regression import QuantReg as Model

        X, y = task.copied()
        tau = task.problem.options.get("tau", 0.5)

        def trial(rung: Rung) -> Trial:
            model, found = Model(y, X), []
            options = {"p_tol": rung.options["p_tol"], "max_iter": 5000}
            return Trial(lambda: found.append(model.fit(q=tau, **options)), lambda: np.asarray(found[0].params))

        return trial


enter(QuantReg())
