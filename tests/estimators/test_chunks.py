"""Estimators of rows in chunks: the model and the attributes of all rows at once; others name `bmrm.fit`."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.base import clone

import bmrm
from bmrm import Classifier, ClassifierCV, Regressor, RegressorCV
from bmrm.data.dataset import Dataset
from bmrm.estimators import MultilabelClassifier, NoveltyDetector, OrdinalClassifier, Ranker
from bmrm.problem import InputError

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(90, 3))
NUMBERS = X @ [1.0, -2.0, 0.5] + RANDOM.normal(size=90)
TWO = np.where(NUMBERS > 0.5, "yes", "no")
THREE = np.digitize(NUMBERS, [-1.0, 1.0])
WEIGHTS = np.where(np.arange(90) < 5, 0.0, RANDOM.random(90))
PARTS = slice(0, 30), slice(30, 40), slice(40, 90)
FOLD = np.arange(90) % 3
ATTRIBUTES = "coef_", "intercept_", "n_features_in_", "alpha_", "scores_"


def cut(*arrays):
    return [tuple(array[part] for array in arrays) for part in PARTS]


def alike(found, expected, rows):
    """What was found in chunks is what all rows at once give, to the last gap."""
    for name in ATTRIBUTES:
        if name in vars(expected):
            assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-6, err_msg=name)
    assert vars(found).keys() == vars(expected).keys()
    assert np.array_equal(found.predict(rows), expected.predict(rows)) or isinstance(found, Regressor)
    assert_allclose(found.model_.decision_function(rows), expected.model_.decision_function(rows), rtol=1e-5, atol=1e-6)


TIGHT = {"alpha": 1e-2, "tol": 1e-10}
FOLDS = {"alphas": [1e-1, 1e-2], "cv": FOLD, "tol": 1e-10}
CASES = {
    "two classes": (Classifier("logistic", **TIGHT), TWO),
    "three classes": (Classifier("logistic", **TIGHT), THREE),
    "one against the others": (Classifier("squared_hinge", classes="one_vs_rest", **TIGHT), THREE),
    "weights of classes": (Classifier("logistic", class_weight={"yes": 3.0}, **TIGHT), TWO),
    "balanced": (Classifier("softmax", class_weight="balanced", **TIGHT), THREE),
    "calibrated": (Classifier("squared_hinge", calibrate={"method": "sigmoid", "folds": 3}, **TIGHT), TWO),
    "shares": (Classifier("softmax", **TIGHT), np.abs(X) / np.abs(X).sum(axis=1, keepdims=True)),
    "truth values": (Classifier("logistic", **TIGHT), NUMBERS > 0.0),
    "a number": (Regressor(**TIGHT), NUMBERS),
    "two numbers": (Regressor(**TIGHT), np.stack([NUMBERS, -NUMBERS], axis=1)),
    "a count": (Regressor("poisson", **TIGHT), THREE),
    "folds": (ClassifierCV("logistic", class_weight="balanced", **FOLDS), TWO),
    "folds of numbers": (RegressorCV(**FOLDS), NUMBERS),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_all_rows(case):
    estimator, y = CASES[case]
    found, expected = clone(estimator).fit(cut(X, y)), clone(estimator).fit(X, y)
    alike(found, expected, X)
    if isinstance(found, Classifier):
        assert found.classes_.tolist() == expected.classes_.tolist()
        assert found.classes_.dtype == expected.classes_.dtype


@pytest.mark.parametrize("kind", ["sparse", "float32", "factory", "datasets"])
def test_all_that_fit_takes_as_chunks(kind):
    rows = {"sparse": csr_array(X * (X > 0.0)), "float32": X.astype(np.float32)}.get(kind, X)
    chunks = cut(rows, TWO, WEIGHTS)
    if kind == "datasets":
        chunks = [Dataset.from_arrays(*chunk) for chunk in chunks]
    given = (lambda: iter(chunks)) if kind == "factory" else chunks
    made = Classifier("logistic", **TIGHT)
    alike(clone(made).fit(given), clone(made).fit(rows, TWO, WEIGHTS), rows)


def test_data_frames_and_record_batches_keep_their_columns():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0.0, "Oslo", "Bergen")})
    made = Classifier("logistic", **TIGHT)
    expected = clone(made).fit(frame, TWO, WEIGHTS, NUMBERS)
    table = arrow.table({**frame, "answer": TWO.tolist(), "weight": WEIGHTS, "exposure": NUMBERS})
    batches = table.to_batches(max_chunksize=40)
    for found in (
        clone(made).fit(lambda: iter(batches), "answer", "weight", "exposure"),
        clone(made).fit(batches, "answer", sample_weight="weight", offset="exposure"),
    ):
        assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist() == ["age", "town"]
        assert found.encoding_.names == expected.encoding_.names == ("age", "town=Bergen", "town=Oslo")
        assert_allclose(found.coef_, expected.coef_, atol=1e-6)
        assert found.predict(frame, NUMBERS).tolist() == expected.predict(frame, NUMBERS).tolist()
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame.rename(columns={"age": "years"}), NUMBERS)


def test_an_estimator_forgets_the_names_of_an_earlier_fit():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    made = Regressor(**TIGHT).fit(cut(frame, NUMBERS))
    assert made.feature_names_in_.tolist() == ["a", "b", "c"]
    assert made.fit(cut(X[:, :2], NUMBERS)).n_features_in_ == 2
    assert "feature_names_in_" not in vars(made)
    assert made.fit(frame, NUMBERS).feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(("made", "y"), [(Classifier("logistic", tol=1e-8), TWO), (Regressor(tol=1e-8), NUMBERS)])
def test_a_path(made, y):
    found, expected = made.path(cut(X, y), alphas=[1e-1, 1e-2]), made.path(X, y, alphas=[1e-1, 1e-2])
    assert_allclose(found.objectives, expected.objectives, rtol=1e-6)


@pytest.mark.parametrize(
    ("made", "chunks", "y", "said"),
    [
        (Classifier(), cut(X, TWO), TWO, "y beside chunks is"),
        (Classifier(), [*cut(X, TWO), (X, TWO[:5])], None, "chunk 3: y has 5 entries, X has 90 rows"),
        (Classifier(), iter(cut(X, TWO)), None, "X is an iterator, which is at its end after one pass"),
        (Classifier(), cut(X, NUMBERS), None, "Unknown label type: continuous"),
        (Classifier(), cut(X, np.stack([THREE, THREE], axis=1)), None, "Classifier: y should be a 1d array"),
        (Classifier("squared_hinge"), cut(X, THREE), None, "Only binary classification is supported"),
        (Classifier(categorical=["town"]), cut(X, TWO), None, "town"),
        (Classifier(alpha=-1.0), cut(X, TWO), None, "alpha is -1.0"),
        (Regressor(), cut(X, TWO), None, "Regressor: y holds labels, expected numbers"),
        (
            Regressor(),
            cut(X, NUMBERS.astype("datetime64[s]")),
            None,
            "Regressor: y holds datetime64[s], expected numbers",
        ),
        (ClassifierCV(), [], None, "requires y to be passed"),
    ],
)
def test_what_is_wrong_is_said(made, chunks, y, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        made.fit(chunks, y)


@pytest.mark.parametrize(
    ("made", "y"),
    [
        (Ranker(), THREE),
        (OrdinalClassifier(), THREE),
        (MultilabelClassifier(), np.eye(3)[THREE]),
        (NoveltyDetector(), TWO),
    ],
)
def test_other_estimators_name_what_takes_chunks(made, y):
    with pytest.raises(InputError) as caught:
        made.fit(cut(X, y), y)
    said = str(caught.value)
    assert said.startswith(f"{type(made).__name__}: X are chunks, which Classifier, Regressor, ")
    assert said.endswith("take; `bmrm.fit` does, for every loss")


def test_rows_at_once_need_targets():
    for made in (Classifier(), Regressor(), ClassifierCV(), RegressorCV()):
        with pytest.raises(ValueError, match="requires y to be passed"):
            made.fit(X)


def test_the_model_is_that_of_fit():
    found = Classifier("logistic", **TIGHT).fit(cut(X, TWO)).model_
    expected = bmrm.fit(cut(X, TWO), loss="logistic", lam=1e-2, tolerance=1e-10)
    assert_allclose(found.weights, expected.weights, atol=1e-6)
