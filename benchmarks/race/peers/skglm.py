"""skglm: working sets and coordinate descent in numba; each kind of problem compiles once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.race.peers import enter
from benchmarks.race.peers.estimators import L2, Estimator, total
from benchmarks.race.problem import Task

TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
FIXED = {"fit_intercept": False, "max_iter": 1000, "max_epochs": 50_000}


def _svc(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import LinearSVC

    return LinearSVC(C=total(task), **FIXED, **o)


def _logistic(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(alpha=task.problem.lam, l1_ratio=_share(task), **FIXED, **o)


def _elastic_net(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import ElasticNet, Lasso

    if not task.problem.l2:
        return Lasso(alpha=task.problem.l1, **FIXED, **o)
    return ElasticNet(alpha=task.problem.lam, l1_ratio=_share(task), **FIXED, **o)


def _huber(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Huber
    from skglm.penalties import L1_plus_L2
    from skglm.solvers import AndersonCD

    penalty = L1_plus_L2(task.problem.lam, _share(task))
    return GeneralizedLinearEstimator(Huber(task.problem.options.get("delta", 1.0)), penalty, AndersonCD(**FIXED, **o))


def _poisson(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Poisson
    from skglm.penalties import L1_plus_L2
    from skglm.solvers import ProxNewton

    fixed = {"fit_intercept": False, "max_iter": 1000}
    return GeneralizedLinearEstimator(Poisson(), L1_plus_L2(task.problem.lam, _share(task)), ProxNewton(**fixed, **o))


def _quantile(task: Task, o: Mapping[str, Any]) -> Any:
    from skglm import GeneralizedLinearEstimator
    from skglm.experimental import PDCD_WS, Pinball
    from skglm.penalties import L1

    datafit = Pinball(task.problem.options.get("tau", 0.5))
    return GeneralizedLinearEstimator(datafit, L1(task.problem.l1), PDCD_WS(fit_intercept=False, **o))


def _share(task: Task) -> float:
    return task.problem.l1 / task.problem.lam


ANY = ("l2", "l1", "elastic_net")
ABOUT: dict[str, Any] = {"tolerances": TOLERANCES, "family": "skglm", "module": "skglm", "compiles": True}
enter(Estimator("skglm LinearSVC", {"hinge": L2}, _svc, **ABOUT))
enter(Estimator("skglm logistic", {"logistic": ANY}, _logistic, columns=True, **ABOUT))
enter(Estimator("skglm ElasticNet", {"least_squares": ("l1", "elastic_net")}, _elastic_net, columns=True, **ABOUT))
enter(Estimator("skglm Huber", {"huber": ANY}, _huber, columns=True, **ABOUT))
enter(Estimator("skglm Poisson", {"poisson": ANY}, _poisson, columns=True, **ABOUT))
enter(Estimator("skglm PDCD_WS", {"quantile": ("l1",)}, _quantile, columns=True, **ABOUT))
