"""Rows in chunks: the model is that of all rows at once, what is wrong is named by its chunk, memory is for a chunk."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.problem import InputError

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(60, 3))
TOWNS = np.array(["Oslo", "Bergen"])[RANDOM.integers(0, 2, 60)]
Y = np.where(X[:, 0] + (TOWNS == "Oslo") > 0.3, "yes", "no")
WEIGHTS = RANDOM.random(60)
CUTS = [slice(0, 25), slice(25, 25), slice(25, 60)]
SETTINGS = {"loss": "logistic", "lam": 1e-2, "tolerance": 1e-10}


def cut(*arrays):
    """The rows of the arrays in three chunks, one of them empty, or with one row the less."""
    return [tuple(array[some] for array in arrays) for some in (CUTS[0], CUTS[2])]


def alike(found, expected):
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-6, atol=1e-8)
    assert list(found.labels) == list(expected.labels)


@pytest.mark.parametrize("factory", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "datasets", "weights"])
def test_the_model_is_that_of_all_rows(kind, factory):
    weights = WEIGHTS if kind in ("weights", "datasets") else None
    rows = {"float32": X.astype(np.float32), "sparse": csr_array(X * (X > 0.0))}.get(kind, X)
    chunks = cut(rows, Y, WEIGHTS) if kind == "weights" else cut(rows, Y)
    if kind == "datasets":
        chunks = [Dataset.from_arrays(*chunk) for chunk in cut(rows, Y, WEIGHTS)]
    given = (lambda: iter(chunks)) if factory else chunks
    expected = bmrm.fit(rows, Y, sample_weight=weights, **SETTINGS)
    alike(bmrm.fit(given, **SETTINGS), expected)


def record_batches(columns):
    arrow = pytest.importorskip("pyarrow")
    return arrow.table(columns).to_batches(max_chunksize=17)


COLUMNS = {"age": X[:, 0], "town": TOWNS.tolist(), "answer": Y.tolist(), "weight": WEIGHTS}


def test_record_batches_with_text_are_encoded_by_what_all_of_them_have():
    pandas = pytest.importorskip("pandas")
    batches = record_batches(COLUMNS)
    found = bmrm.fit(lambda: iter(batches), "answer", sample_weight="weight", **SETTINGS)
    frame = pandas.DataFrame({"age": X[:, 0], "town": TOWNS})
    expected = bmrm.fit(frame, Y, sample_weight=WEIGHTS, **SETTINGS)
    alike(found, expected)
    assert found.feature_names == expected.feature_names == ("age", "town=Bergen", "town=Oslo")
    assert found.predict(frame).tolist() == expected.predict(frame).tolist()


@pytest.mark.parametrize("left_out", [["town"], ["age"], []])
def test_an_offset_is_a_column_of_record_batches_beside_text_too(left_out):
    pandas = pytest.importorskip("pandas")
    columns = {name: column for name, column in COLUMNS.items() if name not in left_out}
    found = bmrm.fit(record_batches(columns), "answer", offset="weight", **SETTINGS)
    frame = pandas.DataFrame({"age": X[:, 0], "town": TOWNS}).drop(columns=left_out)
    alike(found, bmrm.fit(frame, Y, offset=WEIGHTS, **SETTINGS))


def test_data_frames_whose_first_chunk_lacks_a_level():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": X[:, 0], "town": np.where(np.arange(60) < 30, "Oslo", TOWNS)})
    chunks = [(frame.iloc[some], Y[some]) for some in (CUTS[0], CUTS[2])]
    alike(bmrm.fit(chunks, **SETTINGS), bmrm.fit(frame, Y, **SETTINGS))
    whole = [(frame.assign(town=1.0 * np.arange(60)).iloc[some], Y[some]) for some in (CUTS[0], CUTS[2])]
    assert bmrm.fit(whole, **SETTINGS).feature_names == ("age", "town")


def test_a_path_and_folds_take_chunks_too():
    chunks, lambdas = cut(X, Y), [1e-1, 1e-2]
    found = bmrm.path(chunks, loss="logistic", lambdas=lambdas)
    expected = bmrm.path(X, Y, loss="logistic", lambdas=lambdas)
    np.testing.assert_allclose(found.objectives, expected.objectives, rtol=2e-4)


@pytest.mark.parametrize(
    ("chunks", "more", "words"),
    [
        (iter(cut(X, Y)), {}, "X is an iterator, which is at its end after one pass"),
        ([*cut(X, Y), (X[:, :2], Y)], {}, "chunk 2: X: rows of (2,) float64, those before had (3,) float64"),
        ([*cut(X, Y), (np.where(X > 2.0, np.nan, X), Y)], {}, "chunk 2: X: row"),
        ([*cut(X, Y), (X, Y[:5])], {}, "chunk 2: y has 5 entries, X has 60 rows"),
        ([*cut(X, Y), 3], {}, "chunk 2: 3, expected (X, y)"),
        (cut(X, Y), {"y": Y}, "y beside chunks is"),
        (cut(X, Y), {"y": "answer"}, "chunk 0: y is the column 'answer', which only record batches of Arrow have"),
        (lambda: 3, {}, "X() is 3, expected an iterator of chunks"),
        (lambda: [], {}, "X: no rows"),
    ],
)
def test_what_is_wrong_is_named_by_its_chunk(chunks, more, words, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError) as said:
        bmrm.fit(chunks, **SETTINGS, **more)
    assert str(said.value).startswith(words)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("role", ["y", "sample_weight", "groups", "offset"])
def test_a_column_that_batches_lack_is_named(role):
    with pytest.raises(InputError, match=r"^chunk 0: .*'weigt'"):
        bmrm.fit(record_batches(COLUMNS), **{"y": "answer", role: "weigt"}, **SETTINGS)


def test_an_offset_of_text_is_refused():
    with pytest.raises(InputError, match=r"^chunk 0: column 'town' holds string, expected numbers"):
        bmrm.fit(record_batches(COLUMNS), "answer", offset="town", **SETTINGS)


MEASURED = """
import sys, numpy as np, bmrm
def own():
    return max(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
most = 0
def chunks(count):
    global most
    random = np.random.default_rng(0)
    for _ in range(count):
        X = random.normal(size=(5000, 50))
        yield X, np.where(X[:, 0] > 0.0, 1, -1)
        most = max(most, own())
settings = {"loss": "logistic", "lam": 1e-3, "threads": 1, "solver": "lbfgs"}
bmrm.fit(lambda: chunks(4), **settings)
before, most = own(), 0
bmrm.fit(lambda: chunks(40), **settings, callback=lambda line: globals().update(most=max(most, own())))
print(most - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
def test_chunks_are_trained_in_memory_for_a_chunk():
    """80 MB in chunks of 2 MB: the memory of the process rises by a third at most, scores and labels included."""
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 27_000
