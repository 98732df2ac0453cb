"""glum: generalized linear models by iteratively reweighted least squares; tolerances are of the gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import Estimator, Make
from benchmarks.race.problem import Task

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)


class _Labelled:
    """Labels of 0 and 1 in place of -1 and 1."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, X: Any, y: Any) -> Any:
        return self._model.fit(X, (y > 0.0).astype(float))

    @property
    def coef_(self) -> Any:
        return self._model.coef_


def _model(family: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from glum import GeneralizedLinearRegressor

        lam = task.problem.lam
        options = {"alpha": lam, "l1_ratio": task.problem.l1 / lam, "gradient_tol": o["tol"], "max_iter": 1_000}
        model = GeneralizedLinearRegressor(family=family, fit_intercept=False, scale_predictors=False, **options)
        return _Labelled(model) if family == "binomial" else model

    return make


ABOUT: dict[str, Any] = {"tolerances": TOLERANCES, "family": "glum", "module": "glum"}
ALL = ("l2", "l1", "elastic_net")
enter(Estimator("glum binomial", {"logistic": ALL}, _model("binomial"), **ABOUT))
enter(Estimator("glum normal", {"least_squares": ALL}, _model("normal"), **ABOUT))
