"""The order of grades: of numbers, of categories, or as the user says; never that of the alphabet."""

import importlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm.estimators import OrdinalClassifier, Ranker
from bmrm.problem import InputError

NAMES = ["poor", "fair", "good", "best"]
"""In their order, which is not that of the alphabet."""


@pytest.fixture(scope="module")
def graded():
    """(X, places): 200 rows, of grades 0 to 3 by a linear function."""
    X = np.random.default_rng(4).normal(size=(200, 3))
    return X, np.digitize(X @ [1.0, -1.0, 0.5], [-1.0, 0.2, 1.3])


FORMS = {
    "series": lambda names: pd.Series(names, dtype=pd.CategoricalDtype(NAMES, ordered=True)),
    "categorical": lambda names: pd.Categorical(names, NAMES, ordered=True),
    "index": lambda names: pd.CategoricalIndex(names, NAMES, ordered=True),
    "unused": lambda names: pd.Series(names, dtype=pd.CategoricalDtype(["worst", *NAMES], ordered=True)),
    "enum": lambda names: pl.Series(names.tolist(), dtype=pl.Enum(NAMES)),
}


@pytest.mark.parametrize("form", FORMS)
def test_ordered_categories_give_the_order(graded, form):
    X, places = graded
    text = np.array(NAMES)[places]
    by_number = OrdinalClassifier().fit(X, places)
    model = OrdinalClassifier().fit(X, FORMS[form](text))
    assert list(model.classes_) == NAMES
    np.testing.assert_array_equal(model.coef_, by_number.coef_)
    np.testing.assert_array_equal(model.cut_points_, by_number.cut_points_)
    np.testing.assert_array_equal(model.predict(X), np.array(NAMES)[by_number.predict(X)])
    assert model.score(X, FORMS[form](text)) == by_number.score(X, places) > 0.95


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_a_frame_of_one_column(graded, form):
    X, places = graded
    text = np.array(NAMES)[places]
    series = FORMS["series" if form == "pandas" else "enum"](text)
    frame = importlib.import_module(form).DataFrame({"grade": series})
    with pytest.warns(UserWarning, match="column-vector"):  # scikit-learn's
        assert list(OrdinalClassifier().fit(X, frame).classes_) == NAMES


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "b"]),
        np.array(["a", "b"], object),
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="category"),
        pl.Series(["a", "b"]),
        pl.Series(["a", "b"], dtype=pl.Categorical),
    ],
)
def test_text_without_an_order_is_refused(y):
    with pytest.raises(InputError, match=r"the grades are text \('a'\), whose order is not known; expected classes"):
        OrdinalClassifier().fit(np.eye(2), y)


def test_classes_say_the_order(graded):
    X, places = graded
    text = np.array(NAMES)[places]
    model = OrdinalClassifier(classes=["worst", *NAMES]).fit(X, text)
    assert list(model.classes_) == NAMES
    assert model.score(X, text) > 0.95
    other = OrdinalClassifier(classes=NAMES[::-1]).fit(X, text)
    np.testing.assert_allclose(other.coef_, -model.coef_, atol=0.1)
    falling = OrdinalClassifier(classes=[3, 2, 1, 0]).fit(X, places)
    assert list(falling.classes_) == [3, 2, 1, 0]
    assert falling.score(X, places) > 0.95
    with pytest.raises(InputError, match="is 'good', expected one of the grades"):
        OrdinalClassifier(classes=["poor", "fair", "best"]).fit(X, text)
    with pytest.raises(InputError, match="expected each grade once"):
        OrdinalClassifier(classes=["poor", "fair", "poor"]).fit(X, text)
    with pytest.raises(InputError, match=r"y: row 0 is \d, expected one of the grades"):
        OrdinalClassifier(classes=NAMES).fit(X, places)


def test_missing_grades_are_named():
    with pytest.raises(InputError, match=r"y: row 1 is missing \(nan\)"):
        OrdinalClassifier().fit(np.eye(3), pd.Categorical(["a", None, "b"], ["b", "a"], ordered=True))
    with pytest.raises(InputError, match="y: row 2 is missing"):
        OrdinalClassifier().fit(np.eye(3), np.array(["2020", "2021", "NaT"], "M8[Y]"))


def test_fractions_are_grades_as_for_fit(graded):
    X, places = graded
    y = np.array([1.0, 1.5, 2.0, 2.5])[places]
    model = OrdinalClassifier().fit(X, y)
    assert list(model.classes_) == [1.0, 1.5, 2.0, 2.5]
    engine = bmrm.fit(X, y, loss="ordinal_thresholds", lam=1e-4, tolerance=1e-4)
    np.testing.assert_array_equal(model.predict(X), engine.predict(X))
    assert model.score(X, y) == np.mean(engine.predict(X) == y)
    few = OrdinalClassifier().fit(X[:3], [1.5, 2.0, 2.5])
    assert list(few.classes_) == [1.5, 2.0, 2.5]
    with pytest.raises(InputError, match="Unknown label type: continuous, y has 200 different numbers in 200 rows"):
        OrdinalClassifier().fit(X, X[:, 0])


def test_scores_take_weights(graded):
    X, places = graded
    model = OrdinalClassifier().fit(X, places)
    weights = np.arange(200.0)
    right = model.predict(X) == places
    assert model.score(X, places, weights) == pytest.approx(weights[right].sum() / weights.sum())


@pytest.mark.parametrize("form", ["series", "categorical", "fractions"])
def test_searches_folds_and_pipelines(graded, form):
    X, places = graded
    y = np.array([1.0, 1.5, 2.0, 2.5])[places] if form == "fractions" else FORMS[form](np.array(NAMES)[places])
    pipe = make_pipeline(StandardScaler(), OrdinalClassifier())
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.9
    assert np.mean(cross_val_predict(clone(pipe), X, y, cv=3) == np.asarray(y)) > 0.9
    search = GridSearchCV(pipe, {"ordinalclassifier__alpha": [1e-4, 1e-2]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_rankings_take_ordered_categories(graded):
    X, places = graded
    text = FORMS["series"](np.array(NAMES)[places])
    groups = np.arange(200) // 10
    by_number = Ranker().fit(X, places, groups=groups)
    by_name = Ranker().fit(X, text, groups=groups)
    np.testing.assert_array_equal(by_name.coef_, by_number.coef_)
    assert by_name.score(X, text, groups=groups) == by_number.score(X, places, groups=groups)
    with pytest.raises(InputError, match=r"Ranker: y holds .*, expected numbers"):
        Ranker().fit(X, np.array(NAMES)[places], groups=groups)


@pytest.mark.parametrize("loss", ["ordinal_thresholds", "ordinal", "rank_hinge"])
def test_fit_says_who_takes_text(graded, loss):
    X, places = graded
    groups = None if loss.startswith("ordinal") else np.arange(200) // 10
    with pytest.raises(InputError, match=r"text .* no order of its own; expected numbers, or bmrm\.OrdinalClassifier"):
        bmrm.fit(X, np.array(NAMES)[places], loss=loss, groups=groups)


@pytest.mark.parametrize("classes", [set(NAMES), frozenset(NAMES), "poor", 4])
def test_classes_that_say_no_order(graded, classes):
    X, places = graded
    with pytest.raises(InputError, match=r"classes is .*expected a list from the lowest grade to the highest"):
        OrdinalClassifier(classes=classes).fit(X, np.array(NAMES)[places])
