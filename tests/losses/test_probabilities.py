"""What losses document of probabilities is what `predict_proba` gives."""

import inspect

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

import bmrm
from bmrm.estimators import Classifier
from bmrm.losses import LOSSES
from bmrm.problem import facts_of
from bmrm.problem.loss import HasProbabilities

DOCUMENTED = {
    "logistic": lambda f: 1.0 / (1.0 + np.exp(-f)),
    "exponential": lambda f: 1.0 / (1.0 + np.exp(-2.0 * f)),
    "modified_huber": lambda f: (1.0 + np.minimum(np.maximum(f, -1.0), 1.0)) / 2.0,
}
"""Of the positive class, by the docstrings."""


def test_who_speaks_of_the_probability_of_a_class_gives_it():
    said = {
        entry.name
        for entry in LOSSES.all()
        if facts_of(entry.cls).task in ("binary", "multiclass") and "robability of" in (inspect.getdoc(entry.cls) or "")
    }
    assert said == {*DOCUMENTED, "softmax"}
    assert all(issubclass(LOSSES.get(name).cls, HasProbabilities) for name in said)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_probabilities_are_the_documented_ones(name, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 3))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=100) > 0.0, "yes", "no")
    model = Classifier(name, alpha=1e-2).fit(X, y)
    f = model.decision_function(X)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], DOCUMENTED[name](f), atol=1e-15)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(model.model_.predict_proba(X), p)
    model.model_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(bmrm.load_model(tmp_path / "model.npz").predict_proba(X), p)
    np.testing.assert_array_equal(model.predict(X), np.array(["no", "yes"])[(p[:, 1] > 0.5).astype(int)])


def test_modified_huber_is_that_of_scikit_learn():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 2))
    y = (X[:, 0] > 0.3 * random.normal(size=80)).astype(int)
    theirs = SGDClassifier("modified_huber", random_state=0).fit(X, y)
    ours = LOSSES.make("modified_huber").probabilities(theirs.decision_function(X))
    np.testing.assert_allclose(ours, theirs.predict_proba(X), atol=1e-15)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_scores_as_large_as_can_be(name):
    far = LOSSES.make(name).probabilities(np.array([-1e300, 0.0, 1e300]))
    np.testing.assert_array_equal(far, [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
