"""Regularized risk minimization with a certified optimality gap.

    model = bmrm.fit(X, y, loss="hinge", regularizer=bmrm.L2(1e-4), tolerance=1e-6)
    model.solution.relative_gap, model.predict(X)

Names are imported when they are first used; `import bmrm` itself imports nothing but this file.
"""

from __future__ import annotations

import sys

if (  # `python -m bmrm.run` looks for modules in the working folder first; registry.py does so for plug-ins alone
    sys.argv[:1] == ["-m"]
    and "".join(sys.orig_argv[-len(sys.argv) :][:1]).removeprefix("-m").startswith("bmrm.")
    and not getattr(sys.flags, "safe_path", sys.flags.isolated)
):
    del sys.path[0]

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmrm.app.fit import fit as fit
    from bmrm.app.fit import minimize as minimize
    from bmrm.app.model import Model as Model
    from bmrm.app.model import load_model as load_model
    from bmrm.checks.losses import check_loss as check_loss
    from bmrm.checks.regularizers import check_regularizer as check_regularizer
    from bmrm.checks.risks import check_risk as check_risk
    from bmrm.data.dataset import Dataset as Dataset
    from bmrm.estimators import Classifier as Classifier
    from bmrm.estimators import MultilabelClassifier as MultilabelClassifier
    from bmrm.estimators import NoveltyDetector as NoveltyDetector
    from bmrm.estimators import OrdinalClassifier as OrdinalClassifier
    from bmrm.estimators import Ranker as Ranker
    from bmrm.estimators import Regressor as Regressor
    from bmrm.estimators import SequenceTagger as SequenceTagger
    from bmrm.losses import register as register_loss
    from bmrm.losses.base import MarginLoss as MarginLoss
    from bmrm.losses.base import MulticlassLoss as MulticlassLoss
    from bmrm.losses.base import RegressionLoss as RegressionLoss
    from bmrm.losses.base import row as row
    from bmrm.problem import BmrmError as BmrmError
    from bmrm.problem import IncompatibleError as IncompatibleError
    from bmrm.problem import InputError as InputError
    from bmrm.problem import Iteration as Iteration
    from bmrm.problem import Solution as Solution
    from bmrm.problem import Status as Status
    from bmrm.registry import parameter as parameter
    from bmrm.regularizers import register as register_regularizer
    from bmrm.regularizers.elastic_net import ElasticNet as ElasticNet
    from bmrm.regularizers.l1 import L1 as L1
    from bmrm.regularizers.l2 import L2 as L2
    from bmrm.risk.linear import LinearRisk as LinearRisk
    from bmrm.risk.structured import StructuredRisk as StructuredRisk
    from bmrm.solvers import register as register_solver

_HOME = {
    "check_loss": "bmrm.checks.losses",
    "check_regularizer": "bmrm.checks.regularizers",
    "check_risk": "bmrm.checks.risks",
    "Dataset": "bmrm.data.dataset",
    "Classifier": "bmrm.estimators",
    "Regressor": "bmrm.estimators",
    "Ranker": "bmrm.estimators",
    "MultilabelClassifier": "bmrm.estimators",
    "OrdinalClassifier": "bmrm.estimators",
    "NoveltyDetector": "bmrm.estimators",
    "SequenceTagger": "bmrm.estimators",
    "fit": "bmrm.app.fit",
    "minimize": "bmrm.app.fit",
    "MarginLoss": "bmrm.losses.base",
    "MulticlassLoss": "bmrm.losses.base",
    "RegressionLoss": "bmrm.losses.base",
    "row": "bmrm.losses.base",
    "Model": "bmrm.app.model",
    "load_model": "bmrm.app.model",
    "BmrmError": "bmrm.problem",
    "IncompatibleError": "bmrm.problem",
    "InputError": "bmrm.problem",
    "Iteration": "bmrm.problem",
    "Solution": "bmrm.problem",
    "Status": "bmrm.problem",
    "parameter": "bmrm.registry",
    "ElasticNet": "bmrm.regularizers.elastic_net",
    "L1": "bmrm.regularizers.l1",
    "L2": "bmrm.regularizers.l2",
    "LinearRisk": "bmrm.risk.linear",
    "StructuredRisk": "bmrm.risk.structured",
}
_RENAMED = {
    "register_loss": ("bmrm.losses", "register"),
    "register_regularizer": ("bmrm.regularizers", "register"),
    "register_solver": ("bmrm.solvers", "register"),
}

__all__ = [  # noqa: RUF022 (the order of use)
    "fit",
    "minimize",
    "Model",
    "load_model",
    "Classifier",
    "Regressor",
    "Ranker",
    "MultilabelClassifier",
    "OrdinalClassifier",
    "NoveltyDetector",
    "SequenceTagger",
    "Dataset",
    "LinearRisk",
    "StructuredRisk",
    "L1",
    "L2",
    "ElasticNet",
    "Solution",
    "Status",
    "Iteration",
    "MarginLoss",
    "RegressionLoss",
    "MulticlassLoss",
    "parameter",
    "row",
    "register_loss",
    "register_regularizer",
    "register_solver",
    "check_loss",
    "check_regularizer",
    "check_risk",
    "BmrmError",
    "InputError",
    "IncompatibleError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from bmrm.app.model_file import package_version

        return package_version()
    module, attribute = _RENAMED.get(name) or (_HOME.get(name), name)
    if module is None:
        raise AttributeError(f"module 'bmrm' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
