"""Regularized risk minimization with a certified optimality gap.

    model = bmrm.fit(X, y, loss="hinge", regularizer=bmrm.L2(1e-4), tolerance=1e-6)
    model.solution.relative_gap, model.predict(X)

What a loss, a regularizer, a solver or a risk of one's own is written with is in `bmrm.extend`.

Names are imported when they are first used; `import bmrm` itself imports nothing but this file.
"""

from __future__ import annotations

import sys

if (  # `python -m bmrm.run` looks for modules in the working folder first; registry.py does so for plug-ins alone
    sys.argv[:1] == ["-m"]
    and "".join(sys.orig_argv[-len(sys.argv) :][:1]).removeprefix("-m").partition(".")[0] == "bmrm"
    and not getattr(sys.flags, "safe_path", sys.flags.isolated)
):
    del sys.path[0]

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmrm import extend as extend
    from bmrm.app.complete import Completion as Completion
    from bmrm.app.complete import complete as complete
    from bmrm.app.fit import fit as fit
    from bmrm.app.fit import minimize as minimize
    from bmrm.app.model import Model as Model
    from bmrm.app.model import load_model as load_model
    from bmrm.app.path import Path as Path
    from bmrm.app.path import path as path
    from bmrm.data.dataset import Dataset as Dataset
    from bmrm.data.readers.conll import Conll as Conll
    from bmrm.data.readers.conll import read_conll as read_conll
    from bmrm.estimators import Classifier as Classifier
    from bmrm.estimators import ClassifierCV as ClassifierCV
    from bmrm.estimators import MultilabelClassifier as MultilabelClassifier
    from bmrm.estimators import NoveltyDetector as NoveltyDetector
    from bmrm.estimators import OrdinalClassifier as OrdinalClassifier
    from bmrm.estimators import Ranker as Ranker
    from bmrm.estimators import Regressor as Regressor
    from bmrm.estimators import RegressorCV as RegressorCV
    from bmrm.estimators import SequenceTagger as SequenceTagger
    from bmrm.problem import BmrmError as BmrmError
    from bmrm.problem import IncompatibleError as IncompatibleError
    from bmrm.problem import InputError as InputError
    from bmrm.problem import Iteration as Iteration
    from bmrm.problem import Solution as Solution
    from bmrm.problem import Start as Start
    from bmrm.problem import Status as Status
    from bmrm.regularizers.box import Box as Box
    from bmrm.regularizers.elastic_net import ElasticNet as ElasticNet
    from bmrm.regularizers.group_l2 import GroupL2 as GroupL2
    from bmrm.regularizers.l1 import L1 as L1
    from bmrm.regularizers.l2 import L2 as L2
    from bmrm.regularizers.none import NoRegularizer as NoRegularizer
    from bmrm.regularizers.row_group_l2 import RowGroupL2 as RowGroupL2
    from bmrm.regularizers.sparse_group import SparseGroup as SparseGroup
    from bmrm.search.cross_validation import CrossValidation as CrossValidation
    from bmrm.search.cross_validation import cross_validate as cross_validate
    from bmrm.search.f_measure import FMeasure as FMeasure
    from bmrm.search.f_measure import fit as fit_f_measure

    __version__: str

_HOME = {
    "fit": "bmrm.app.fit",
    "minimize": "bmrm.app.fit",
    "complete": "bmrm.app.complete",
    "Completion": "bmrm.app.complete",
    "path": "bmrm.app.path",
    "Path": "bmrm.app.path",
    "Model": "bmrm.app.model",
    "load_model": "bmrm.app.model",
    "Classifier": "bmrm.estimators",
    "Regressor": "bmrm.estimators",
    "ClassifierCV": "bmrm.estimators",
    "RegressorCV": "bmrm.estimators",
    "Ranker": "bmrm.estimators",
    "MultilabelClassifier": "bmrm.estimators",
    "OrdinalClassifier": "bmrm.estimators",
    "NoveltyDetector": "bmrm.estimators",
    "SequenceTagger": "bmrm.estimators",
    "cross_validate": "bmrm.search.cross_validation",
    "CrossValidation": "bmrm.search.cross_validation",
    "FMeasure": "bmrm.search.f_measure",
    "fit_f_measure": "bmrm.search.f_measure:fit",
    "Dataset": "bmrm.data.dataset",
    "Conll": "bmrm.data.readers.conll",
    "read_conll": "bmrm.data.readers.conll",
    "L1": "bmrm.regularizers.l1",
    "L2": "bmrm.regularizers.l2",
    "ElasticNet": "bmrm.regularizers.elastic_net",
    "NoRegularizer": "bmrm.regularizers.none",
    "GroupL2": "bmrm.regularizers.group_l2",
    "SparseGroup": "bmrm.regularizers.sparse_group",
    "RowGroupL2": "bmrm.regularizers.row_group_l2",
    "Box": "bmrm.regularizers.box",
    "Solution": "bmrm.problem",
    "Status": "bmrm.problem",
    "Iteration": "bmrm.problem",
    "Start": "bmrm.problem",
    "BmrmError": "bmrm.problem",
    "InputError": "bmrm.problem",
    "IncompatibleError": "bmrm.problem",
}
"""Module of each public name; behind a colon the name there, if it is another."""
_MOVED = (
    "LinearRisk",
    "MarginLoss",
    "MulticlassLoss",
    "RegressionLoss",
    "StructuredRisk",
    "check_loss",
    "check_regularizer",
    "check_risk",
    "parameter",
    "register_loss",
    "register_regularizer",
    "register_solver",
    "row",
)
"""Names of `bmrm.extend` that can still be imported from here, as before 0.2."""

__all__ = [  # noqa: RUF022 (the order of use)
    "fit",
    "minimize",
    "path",
    "Path",
    "cross_validate",
    "CrossValidation",
    "Model",
    "load_model",
    "Classifier",
    "ClassifierCV",
    "Regressor",
    "RegressorCV",
    "Ranker",
    "MultilabelClassifier",
    "OrdinalClassifier",
    "NoveltyDetector",
    "SequenceTagger",
    "FMeasure",
    "fit_f_measure",
    "Dataset",
    "Conll",
    "read_conll",
    "L1",
    "L2",
    "ElasticNet",
    "NoRegularizer",
    "GroupL2",
    "SparseGroup",
    "RowGroupL2",
    "Box",
    "Solution",
    "Status",
    "Iteration",
    "Start",
    "BmrmError",
    "InputError",
    "IncompatibleError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from bmrm.app.model_file import package_version

        return package_version()
    if name == "extend":
        return importlib.import_module("bmrm.extend")
    home = "bmrm.extend" if name in _MOVED else _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'bmrm' has no attribute {name!r}")
    module, _, other = home.partition(":")
    value = getattr(importlib.import_module(module), other or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "extend"])
