"""Estimators of scikit-learn: one class for a task, `bmrm.fit` behind each.

Names are imported when they are first used. Nothing here loads numba: the engine is loaded by the first `fit`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bmrm.estimators.classifier import Classifier as Classifier
    from bmrm.estimators.classifier import MultilabelClassifier as MultilabelClassifier
    from bmrm.estimators.classifier import OrdinalClassifier as OrdinalClassifier
    from bmrm.estimators.cross_validated import ClassifierCV as ClassifierCV
    from bmrm.estimators.cross_validated import RegressorCV as RegressorCV
    from bmrm.estimators.regressor import NoveltyDetector as NoveltyDetector
    from bmrm.estimators.regressor import Ranker as Ranker
    from bmrm.estimators.regressor import Regressor as Regressor
    from bmrm.estimators.tagger import SequenceTagger as SequenceTagger

_HOME = {
    "Classifier": "classifier",
    "ClassifierCV": "cross_validated",
    "RegressorCV": "cross_validated",
    "Regressor": "regressor",
    "Ranker": "regressor",
    "MultilabelClassifier": "classifier",
    "OrdinalClassifier": "classifier",
    "NoveltyDetector": "regressor",
    "SequenceTagger": "tagger",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bmrm.estimators' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"bmrm.estimators.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
