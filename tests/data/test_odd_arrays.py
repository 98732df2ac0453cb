"""Arrays and frames that hide something: what is missing or no number is named with its row and column."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.estimators import Classifier, MultilabelClassifier, OrdinalClassifier, Ranker, Regressor, SequenceTagger
from bmrm.problem import InputError

X = np.random.default_rng(0).normal(size=(8, 2))
Y = (X[:, 0] > 0.0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b"])
TEXT = ["yes" if one else "no" for one in Y]


def with_missing(values, missing):
    return [missing if k == 3 else value for k, value in enumerate(values)]


MISSING = {
    "None": with_missing(TEXT, None),
    "nan": with_missing(TEXT, np.nan),
    "NA": with_missing(TEXT, pd.NA),
    "array of None": np.array(with_missing(TEXT, None), object),
    "array of nan": np.array(with_missing(TEXT, np.nan), object),
    "array of NA": np.array(with_missing(TEXT, pd.NA), object),
    "series": pd.Series(with_missing(TEXT, None)),
    "string": pd.Series(with_missing(TEXT, None), dtype="string"),
    "boolean": pd.Series(with_missing([bool(one) for one in Y], None), dtype="boolean"),
    "category": pd.Series(with_missing(TEXT, None), dtype="category"),
    "polars": pl.Series(with_missing(TEXT, None)),
    "times": pd.Series(pd.to_datetime(with_missing(["2020-01-0" + str(one + 1) for one in Y], None))),
}


@pytest.mark.parametrize("case", MISSING)
def test_missing_labels_are_named(case):
    for fit in (bmrm.fit, Classifier().fit, MultilabelClassifier().fit):
        with pytest.raises(InputError, match=r"y: row 3 is missing \("):
            fit(X, MISSING[case])


@pytest.mark.parametrize("estimator", [OrdinalClassifier(), Regressor(), Ranker("ordinal")])
def test_missing_numbers_are_named(estimator):
    with pytest.raises(InputError, match="y: row 3 is missing"):
        estimator.fit(X, np.array(with_missing(Y.tolist(), None), object))


MASKED = np.ma.masked_array(X, mask=np.arange(16).reshape(8, 2) == 5)
FEATURES = {
    "masked": (MASKED, "X: row 2, column 1 is masked"),
    "lazy": (pl.LazyFrame({"a": X[:, 0]}), r"X is a LazyFrame, .* expected X.collect\(\)"),
    "null": (pl.DataFrame({"a": with_missing(X[:, 0].tolist(), None)}), "X: row 3, column 'a' is nan"),
    "NA": (FRAME.astype("Float64").mask(X.max() - 1e-9 < FRAME), "X: row ., column '.' is nan"),
    "Arrow": (FRAME.astype("double[pyarrow]").mask(X.max() - 1e-9 < FRAME), "X: row ., column '.' is nan"),
    "numbers as text": (FRAME.assign(c=[str(one) for one in Y]), "X: column 'c' holds text"),
    "times": (FRAME.assign(c=pd.Timestamp("2020-01-01")), "X: column 'c' holds datetime"),
    "dates": (pl.DataFrame({"a": [datetime.date(2020, 1, 1)] * 8}), "X: column 'a' holds date"),
    "lists": (pl.DataFrame({"a": [[1, 2]] * 8}), "X: column 'a' holds ndarray"),
    "array of text": (X.astype(str), "X holds text, expected numbers"),
    "objects of text": (X.astype(str).astype(object), "X holds text"),
    "array of times": (np.full((8, 2), np.datetime64("2020")), "X holds datetime64"),
    "ragged": ([[1, 2], [1], *[[1, 2]] * 6], "X: row 1 has 1 entries, row 0 has 2"),
    "twice": (pd.DataFrame(X, columns=["a", "a"]), None),
    "filled by 1": (pd.DataFrame({"a": pd.arrays.SparseArray(np.ones(8), fill_value=1.0)}), None),
}


@pytest.mark.filterwarnings("ignore:X has feature names")  # the model here was fitted to arrays
@pytest.mark.parametrize("case", FEATURES)
def test_features_that_are_no_numbers(case):
    rows, message = FEATURES[case]
    if message is None:  # taken as they are
        assert bmrm.fit(rows, Y).dim == len(rows.columns)
        return
    trained = Classifier().fit(X, Y)
    for use in (lambda: bmrm.fit(rows, Y), lambda: Classifier().fit(rows, Y), lambda: trained.predict(rows)):
        with pytest.raises(InputError, match=message):
            use()


def test_sparse_frames_whose_fill_is_no_zero():
    table = np.where(X > 0.0, 2.0, 1.0)
    filled = pd.DataFrame({name: pd.arrays.SparseArray(table[:, k], fill_value=1.0) for k, name in enumerate("ab")})
    np.testing.assert_array_equal(bmrm.fit(filled, Y).weights, bmrm.fit(table, Y).weights)
    np.testing.assert_array_equal(Classifier().fit(filled, Y).coef_, Classifier().fit(table, Y).coef_)
    missing = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, *[np.nan] * 7])})
    with pytest.raises(InputError, match="X: row 1, column 'a' is nan"):
        bmrm.fit(missing, Y)
    stored = bmrm.Dataset.from_arrays(pd.DataFrame.sparse.from_spmatrix(sp.csr_array(X)))
    assert not isinstance(stored.X, np.ndarray)


def test_columns_of_one_name_have_no_place_in_an_estimator():
    with pytest.raises(InputError, match="several columns are named 'a'"):
        Classifier().fit(pd.DataFrame(X, columns=["a", "a"]), Y)


@pytest.mark.parametrize("thing", [None, 3.0, "abc", {"a": 1}])
def test_what_is_no_array(thing):
    with pytest.raises(InputError, match=r"X is .*, expected an array"):
        bmrm.fit(thing, Y)
    if thing is not None:
        with pytest.raises(InputError, match=r"y is .*, expected"):
            bmrm.fit(X, thing)


def test_labels_of_other_libraries_and_types():
    names = pd.Series(TEXT)
    for y in (names, names.astype("category"), names.astype("string[pyarrow]"), pl.Series(TEXT, dtype=pl.Categorical)):
        assert list(Classifier().fit(X, y).classes_) == list(bmrm.fit(X, y).labels) == ["no", "yes"]
    assert list(Classifier().fit(X, pd.Series(Y, dtype="Int64")).classes_) == [0, 1]
    assert Classifier().fit(X, pd.Series(Y == 1, dtype="boolean")).classes_.dtype == bool
    amounts = np.array([decimal.Decimal(int(one)) for one in Y], object)
    np.testing.assert_allclose(Regressor().fit(X, amounts).coef_, Regressor().fit(X, Y).coef_)


@pytest.mark.parametrize("y", [["a", 1] * 4, np.array(["a", 1] * 4, object)])
def test_labels_of_two_types(y):
    for fit in (bmrm.fit, Classifier().fit):
        with pytest.raises(InputError, match="row 0 is the text 'a', row 1 is 1; expected labels of one type"):
            fit(X, y)


def test_masked_labels_and_weights():
    mask = np.arange(8) == 4
    for fit in (bmrm.fit, Classifier().fit):
        with pytest.raises(InputError, match="y: row 4 is masked"):
            fit(X, np.ma.masked_array(Y, mask))
        with pytest.raises(InputError, match="weights: row 4 is masked"):
            fit(X, Y, sample_weight=np.ma.masked_array(np.ones(8), mask))
    assert bmrm.fit(np.ma.masked_array(X), np.ma.masked_array(Y)).dim == 2


TOKENS = [[{"word": "a", "size": 1.0}, {"word": "b"}], [{"word": "c"}]]
TAGS = [["A", "B"], ["A"]]


@pytest.mark.parametrize("value", [None, np.nan, np.inf, pd.NA, [1], object(), {"deeper": None}])
def test_features_of_tokens(value):
    tokens = [[{"word": "a", "size": value}, {"word": "b"}], [{"word": "c"}]]
    with pytest.raises(
        InputError, match=r"X: token .*: the feature 'size(:deeper)?' is .*, expected text or a finite number"
    ):
        SequenceTagger().fit(tokens, TAGS)


def test_tokens_and_tags_that_are_missing():
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(InputError, match="y: sequence 1, token 0 is missing"):
            SequenceTagger().fit(TOKENS, [["A", "B"], [missing]])
    with pytest.raises(InputError, match="X: token None is no text or tuple of texts"):
        SequenceTagger().fit([["a", None], ["b"]], TAGS)
    with pytest.raises(InputError, match="X: sequence 0: row 0, column 1 is masked"):
        SequenceTagger().fit([np.ma.masked_array(np.eye(2), [[0, 1], [0, 0]]), np.eye(2)[:1]], TAGS)


@pytest.mark.parametrize("labels", [["a", "a\0"] * 4, np.array(["a", "a\0"] * 4, object)])
def test_labels_that_end_with_a_nul_are_not_merged(labels):
    with pytest.raises(InputError, match=r"^y: row 1 is 'a\\x00', expected text that does not end with a NUL"):
        bmrm.fit(np.eye(8), labels)


class Tensor:
    """One of another library that is on another device, or has a gradient."""

    shape = (8,)

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


@pytest.mark.parametrize("error", [TypeError("can't convert cuda:0"), RuntimeError("requires grad")])
@pytest.mark.parametrize("argument", ["X", "y", "sample_weight", "groups"])
def test_what_cannot_become_an_array_says_why(argument, error):
    given = {"X": np.eye(8), "y": [0.0, 1.0] * 4, argument: Tensor(error)}
    with pytest.raises(InputError, match=f"which is no array \\({error}\\)"):
        bmrm.fit(**given)


@pytest.mark.parametrize("missing", [np.datetime64("NaT"), np.timedelta64("NaT"), pd.NaT, pd.NA, None])
def test_a_missing_entry_among_numbers_is_named(missing):
    numbers = np.array([*range(7), missing], object)
    with pytest.raises(InputError, match=r"^y: row 7 is missing"):
        bmrm.fit(np.eye(8), numbers)
    with pytest.raises(InputError, match=r"^y: row 7 is missing"):
        Regressor().fit(np.eye(8), numbers)


@pytest.mark.parametrize("missing", [pd.NaT, pd.NA])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_a_missing_feature_of_an_estimator_is_named(missing, form):
    X = np.eye(8).astype(object)
    X[3, 2] = missing
    with pytest.raises(InputError, match=r"^X: row 3, column 2 is (missing|nan)"):
        Classifier().fit(form(X), [0, 1] * 4)


@pytest.mark.parametrize("missing", [np.datetime64("NaT"), pd.NaT, pd.NA])
def test_a_missing_weight_group_or_feature_is_named(missing):
    numbers = np.array([*range(7), missing], object)
    for given, message in (
        ({"sample_weight": numbers}, "weights: row 7 is missing"),
        ({"groups": numbers}, "groups: row 7 is missing"),
        ({"X": np.diag(numbers)}, "X: row 7, column 7 is missing"),
    ):
        with pytest.raises(InputError, match=f"^{message}"):
            bmrm.fit(**{"X": np.eye(8), "y": [0.0, 1.0] * 4, **given})
