"""scikit-learn: estimators whose objective is one of ours up to a factor, without an intercept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, MANY, Estimator, Make, total
from benchmarks.race.problem import Task


def _svc(loss: str, dual: bool, factor: float, penalty: str = "l2") -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from sklearn.svm import LinearSVC

        fixed = {"fit_intercept": False, "random_state": 0, "max_iter": 3000 if dual else MANY}
        return LinearSVC(penalty=penalty, loss=loss, dual=dual, C=factor * total(task), **o, **fixed)

    return make


def _crammer_singer(task: Task, o: Mapping[str, Any]) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(
        multi_class="crammer_singer", C=total(task), fit_intercept=False, random_state=0, max_iter=MANY, **o
    )


def _svr(loss: str, dual: bool, factor: float) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from sklearn.svm import LinearSVR

        options = task.problem.options
        scale = {"quantile": 0.5}.get(task.loss, 1.0) * factor
        return LinearSVR(
            loss=loss,
            dual=dual,
            C=scale * total(task),
            epsilon=options.get("epsilon", 0.0),
            fit_intercept=False,
            random_state=0,
            max_iter=10_000 if dual else MANY,
            **o,
        )

    return make


def _median(task: Task) -> bool:
    """Not a quantile other than the median."""
    return task.problem.options.get("tau", 0.5) == 0.5


def _logistic(solver: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from sklearn.linear_model import LogisticRegression

        mixture: dict[str, Any] = {"l1_ratio": task.problem.l1 / task.problem.lam}
        if LogisticRegression().get_params()["penalty"] != "deprecated":  # before scikit-learn 1.8
            mixed = task.problem.penalty == "elastic_net"
            mixture = {"penalty": "elasticnet", **mixture} if mixed else {"penalty": task.problem.penalty}
        fixed = {"fit_intercept": False, "random_state": 0, "max_iter": 3000 if solver in ("sag", "saga") else MANY}
        return LogisticRegression(solver=solver, C=total(task), **mixture, **o, **fixed)

    return make


def _ridge(solver: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge(
            alpha=task.problem.l2 * task.rows, solver=solver, fit_intercept=False, max_iter=MANY, random_state=0, **o
        )

    return make


def _lasso(task: Task, o: Mapping[str, Any]) -> Any:
    from sklearn.linear_model import ElasticNet

    problem = task.problem
    return ElasticNet(
        alpha=problem.lam, l1_ratio=problem.l1 / problem.lam, fit_intercept=False, max_iter=MANY, copy_X=True, **o
    )


def _poisson(solver: str) -> Make:
    def make(task: Task, o: Mapping[str, Any]) -> Any:
        from sklearn.linear_model import PoissonRegressor

        return PoissonRegressor(alpha=task.problem.l2, solver=solver, fit_intercept=False, max_iter=MANY, **o)

    return make


def _quantile(task: Task, o: Mapping[str, Any]) -> Any:
    from sklearn.linear_model import QuantileRegressor

    tau = task.problem.options.get("tau", 0.5)
    options = {"primal_feasibility_tolerance": o["tol"], "dual_feasibility_tolerance": o["tol"]}
    return QuantileRegressor(
        quantile=tau, alpha=task.problem.l1, fit_intercept=False, solver="highs", solver_options=options
    )


BINARY = {"logistic": L2}
BOTH = {"logistic": L2, "softmax": L2}
enter(Estimator("sk LinearSVC", {"hinge": L2}, _svc("hinge", True, 1.0)))
enter(Estimator("sk LinearSVC dual", {"squared_hinge": L2}, _svc("squared_hinge", True, 0.5)))
enter(Estimator("sk LinearSVC primal", {"squared_hinge": L2}, _svc("squared_hinge", False, 0.5)))
enter(Estimator("sk LinearSVC l1", {"squared_hinge": ("l1",)}, _svc("squared_hinge", False, 0.5, "l1")))
enter(Estimator("sk LinearSVC CS", {"multiclass_hinge": L2}, _crammer_singer))
_ABSOLUTE = {"least_absolute_deviation": L2, "epsilon_insensitive": L2, "quantile": L2}
enter(Estimator("sk LinearSVR", _ABSOLUTE, _svr("epsilon_insensitive", True, 1.0), limit=_median))
_SQUARED = {"squared_epsilon_insensitive": L2}
enter(Estimator("sk LinearSVR primal", _SQUARED, _svr("squared_epsilon_insensitive", False, 0.5)))
for _solver in ("lbfgs", "newton-cg", "newton-cholesky"):
    enter(Estimator(f"sk {_solver}", BOTH, _logistic(_solver)))
enter(Estimator("sk saga", {"logistic": ("l2", "l1", "elastic_net"), "softmax": L2}, _logistic("saga")))
enter(Estimator("sk liblinear", {"logistic": ("l2", "l1")}, _logistic("liblinear")))
for _solver in ("cholesky", "lsqr", "sparse_cg"):
    enter(Estimator(f"sk Ridge {_solver}", {"least_squares": L2}, _ridge(_solver)))
enter(Estimator("sk Lasso", {"least_squares": ("l1", "elastic_net")}, _lasso))
for _solver in ("lbfgs", "newton-cholesky"):
    enter(Estimator(f"sk Poisson {_solver}", {"poisson": L2}, _poisson(_solver)))
enter(Estimator("sk QuantileRegressor", {"quantile": ("l1",)}, _quantile, (1e-3, 1e-7)))
