"""Estimators that are written and read: by pickle, joblib and the rules of skops, which runs no code."""

import json
import pickle
from types import FunctionType

import joblib
import numpy as np
import pytest

import bmrm
from bmrm.estimators import (
    Classifier,
    MultilabelClassifier,
    NoveltyDetector,
    OrdinalClassifier,
    Ranker,
    Regressor,
    SequenceTagger,
)
from bmrm.problem import Status

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
GRADES = np.digitize(X[:, 0], [-0.5, 0.5])
TOKENS, TAGS = [["a", "b"], ["c"]], [["A", "B"], ["A"]]
DICTS = [[{"word": token} for token in sequence] for sequence in TOKENS]
FITTED = {
    "Classifier": lambda: (Classifier(regularizer=bmrm.L1(1e-2)).fit(X, GRADES > 0), X),
    "softmax": lambda: (Classifier("logistic").fit(X, np.array(["a", "b", "c"])[GRADES]), X),
    "Regressor": lambda: (Regressor().fit(X, X[:, 0]), X),
    "Ranker": lambda: (Ranker().fit(X, GRADES, groups=np.arange(60) // 10), X),
    "MultilabelClassifier": lambda: (MultilabelClassifier().fit(X, np.eye(3)[GRADES]), X),
    "OrdinalClassifier": lambda: (OrdinalClassifier().fit(X, GRADES), X),
    "NoveltyDetector": lambda: (NoveltyDetector().fit(np.abs(X)), X),
    "texts": lambda: (SequenceTagger().fit(TOKENS, TAGS), TOKENS),
    "features": lambda: (SequenceTagger().fit(DICTS, TAGS), DICTS),
}


def rebuilt(one):
    """As skops loads it (0.16, `io/_general.py`): numbers and text by JSON, else by `__reduce__` or `__new__`."""
    if isinstance(one, (np.ndarray, np.generic, type, FunctionType)):
        return one
    if isinstance(one, dict):
        return type(one)((key, rebuilt(value)) for key, value in one.items())
    if isinstance(one, (list, tuple, set)):
        return type(one)(map(rebuilt, one))
    try:
        return json.loads(json.dumps(one))
    except TypeError:
        pass
    made_by = one.__reduce__()
    if made_by[0] is type(one) and all(part is None for part in made_by[2:]):
        return type(one)(*rebuilt(made_by[1]))
    new = type(one).__new__(type(one))
    state = rebuilt(one.__getstate__() if hasattr(one, "__getstate__") else one.__dict__)
    if hasattr(new, "__setstate__"):
        new.__setstate__(state)
    else:
        new.__dict__.update(state or {})
    return new


@pytest.mark.parametrize("name", FITTED)
def test_estimators_come_back(name, tmp_path):
    model, rows = FITTED[name]()
    expected = list(map(list, map(np.atleast_1d, model.predict(rows))))
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [pickle.loads(pickle.dumps(model, protocol)) for protocol in (2, pickle.HIGHEST_PROTOCOL)]
    for copy in (*copies, joblib.load(tmp_path / "model.joblib"), rebuilt(model)):
        assert copy is not model
        assert list(map(list, map(np.atleast_1d, copy.predict(rows)))) == expected
        assert copy.solution_.status is model.solution_.status
        assert copy.solution_.history == model.solution_.history


@pytest.mark.parametrize("status", Status)
def test_a_status_is_kept_by_its_name(status):
    """Its advice may be worded otherwise in the version that reads it."""
    assert status.value.encode() not in pickle.dumps(status)
    assert pickle.loads(pickle.dumps(status)) is status
    assert rebuilt(status) is status
    assert Status(status.value) is status
    with pytest.raises(ValueError, match="is not a valid Status"):
        Status("FINE")
