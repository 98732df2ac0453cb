"""Labels of every type: predictions have the type that the labels had, through fit, file and ranks."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.cli import main
from bmrm.data.label_types import restored, restored_rows, stored
from bmrm.data.labels import LabelSets
from bmrm.data.reading import read
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.losses.multilabel_hinge import best_thresholds
from bmrm.problem import InputError
from tests.mpi.launch import work

BIG = 2**60 + 1, 2**60 + 3


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 3))
    return X, (X[:, 0] + 0.3 * random.normal(size=90) > 0).astype(int)


def pair(first, second, dtype=None):
    return np.array([first, second], dtype)


PAIRS = {
    "bool": pair(False, True),
    "int8": pair(-3, 7, np.int8),
    "uint16": pair(2, 9, np.uint16),
    "int64": pair(*BIG),
    "float32": pair(0.1, 0.2, np.float32),
    "float64": pair(-1.0, 2.5),
    "days": pair("2020-01-01", "2020-02-01", "M8[D]"),
    "nanoseconds": pair("2020-01-01T00:00:00.000000001", "2020-01-01T00:00:00.000000003", "M8[ns]"),
    "durations": pair(1, 2, "m8[h]"),
    "text": pair("no", "yes"),
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("loss", ["hinge", "softmax", "roc_area"])
def test_predictions_have_the_type_of_the_labels(rows, kind, loss, tmp_path):
    X, which = rows
    labels = PAIRS[kind]
    model = bmrm.fit(X, labels[which], loss=loss, regularizer=bmrm.L2(1e-2))
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert np.array_equal(model.labels, labels)
    assert np.mean(predicted == labels[which]) > 0.8
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    assert again.labels.dtype == labels.dtype
    assert np.array_equal(again.predict(X), predicted)


@pytest.mark.parametrize(
    "y",
    [
        lambda which: [bool(k) for k in which],
        lambda which: [BIG[k] for k in which],
        lambda which: np.array([BIG[k] for k in which], object),
        lambda which: pd.Series([BIG[k] for k in which]),
        lambda which: pd.Series(np.array(["b", "a"])[which], dtype="category"),
        lambda which: pd.Series(pd.to_datetime(np.array(["2020-01-01", "2021-01-01"])[which])),
        lambda which: [datetime.date(2020, 1, 1 + k) for k in which],
        lambda which: pd.array(np.array([True, False])[which], dtype="boolean"),
        lambda which: pd.DataFrame({"y": np.array([4, 5])[which]}),
    ],
)
def test_lists_objects_and_series(rows, y):
    X, which = rows
    given = y(which)
    model = bmrm.fit(X, given, regularizer=bmrm.L2(1e-2))
    truth = np.asarray(given).ravel()
    predicted = model.predict(X)
    assert len(set(model.labels.tolist())) == 2
    assert np.mean(predicted == (truth.astype(predicted.dtype) if predicted.dtype.kind in "Mb" else truth)) > 0.8


@pytest.mark.parametrize(
    ("kind", "positive"), [("bool", False), ("int64", BIG[0]), ("days", np.datetime64("2020-01-01"))]
)
def test_the_positive_label_is_found_in_every_type(rows, kind, positive):
    X, which = rows
    model = bmrm.fit(X, PAIRS[kind][which], regularizer=bmrm.L2(1e-2), positive_label=positive)
    assert model.labels[1] == positive
    assert np.mean(model.predict(X) == PAIRS[kind][which]) > 0.8


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([1.0, None, 2.0], "y: row 1 is missing"),
        (["a", None, "b"], "y: row 1 is missing"),
        (["a", 1, "b"], "y: row 0 is the text 'a', row 1 is 1; expected labels of one type"),
        (pd.Series([True, None, False], dtype="boolean"), "y: row 1 is missing"),
        (np.array(["2020-01-01", "NaT", "2020"], "M8[D]"), "y: row 1 is missing"),
        (pd.Series(pd.date_range("2020-01-01", periods=3, tz="UTC")), "time zone"),
        (np.array([1, 2**63 + 5, 3], np.uint64), r"y: row 1 is 9223372036854775813, expected integers below 2\^63"),
        ([1, 2**70, 3], "more than 64 bits"),
        ([[1], [1, 2], [3]], "y: row 1 has 2 entries, row 0 has 1"),
        (np.array([b"a", b"b", b"a"]), "y holds bytes"),
        ([object(), 1, 2], "y: row 0 is <object"),
    ],
)
def test_labels_of_no_type_are_refused_by_row(y, said):
    with pytest.raises(InputError, match=said):
        bmrm.fit(np.eye(3), y, regularizer=bmrm.L2(1.0))


@pytest.mark.parametrize("kind", PAIRS)
def test_stored_and_restored(kind):
    labels = PAIRS[kind]
    codes, dtype = stored(labels)
    assert codes.dtype.kind in "fiU"
    back = restored(codes.tolist(), dtype)
    assert back.dtype == labels.dtype
    assert np.array_equal(back, labels)
    assert np.array_equal(restored_rows(codes, dtype), labels)


def train(folder, *words):
    (folder / "job.yaml").write_text(
        f"loss: hinge\nregularizer: {{name: l2, lambda: 0.01}}\noutput: {{directory: {folder}/out}}\n"
    )
    parts = [part for word in words for part in ("--set", word)]
    assert main(["train", str(folder / "job.yaml"), "--quiet", *parts]) == 0
    return bmrm.load_model(folder / "out" / "model.npz")


@pytest.mark.parametrize("suffix", ["csv", "svm", "npz"])
def test_integers_that_float64_does_not_hold_come_from_files(rows, tmp_path, suffix):
    X, which = rows
    y = np.array(BIG)[which]
    path = tmp_path / f"a.{suffix}"
    data = bmrm.Dataset.from_arrays(X, y)
    if suffix == "csv":
        path.write_text("".join(",".join(map(repr, row)) + f",{label}\n" for row, label in zip(X.tolist(), y)))
    elif suffix == "svm":
        write_svmlight(path, data)
    else:
        write_npz(path, data)
    model = train(tmp_path, f"data.train={path}", f"data.test={path}")
    assert model.labels.tolist() == list(BIG)
    assert model.labels.dtype == np.int64
    predicted = model.predict(X)
    assert np.mean(predicted == y) > 0.8
    metrics = json.loads((tmp_path / "out" / "summary.json").read_text())["metrics"]
    assert metrics["test"]["accuracy"] == pytest.approx(np.mean(predicted == y))
    assert (
        main(["predict", str(tmp_path / "out" / "model.npz"), str(path), "--labels", "--out", str(tmp_path / "p")]) == 0
    )
    assert [int(line) for line in (tmp_path / "p").read_text().split()] == predicted.tolist()


def test_whole_numbers_of_files_are_integers_and_others_are_not(tmp_path):
    for text, dtype in (("1,2\n3,-4\n", np.int64), ("1,2\n3,4.0\n", np.float64), ("1,a\n3,b\n", np.dtype("<U1"))):
        (tmp_path / "a.csv").write_text(text)
        t = read(tmp_path / "a.csv").targets
        assert restored_rows(t.y, t.dtype).dtype == dtype
    for text, dtype in (("1 1:1\n-1 2:1\n", np.int64), ("0.5 1:1\n1 2:1\n", np.float64)):
        (tmp_path / "a.svm").write_text(text)
        t = read(tmp_path / "a.svm").targets
        assert restored_rows(t.y, t.dtype).dtype == dtype


@pytest.mark.mpi
@pytest.mark.parametrize("loss", ["hinge", "roc_area"])
def test_ranks_tell_big_integers_apart(rows, tmp_path, loss):
    X, which = rows
    y = np.array([3, BIG[1]])[which]  # small and large labels, which the ranks keep as different types
    order = np.argsort(which, kind="stable")
    for rank, part in enumerate(np.array_split(order, 2)):
        write_svmlight(tmp_path / f"part-{rank}.svm", bmrm.Dataset.from_arrays(X[part], y[part]))
    train_words = [f"data.train={tmp_path}/part-*.svm", f"loss={loss}"]
    one = train(tmp_path, *train_words)
    words = (*train_words, "output.directory=two")
    done = work(2, "bmrm.run", "job.yaml", *(word for each in words for word in ("--set", each)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    two = bmrm.load_model(tmp_path / "two" / "model.npz")
    assert two.labels.tolist() == one.labels.tolist() == [3, BIG[1]]
    assert two.labels.dtype == np.int64
    assert two.header["objective"] == pytest.approx(one.header["objective"], rel=2e-3)


@pytest.fixture(scope="module")
def several():
    """Rows with some of three labels each."""
    random = np.random.default_rng(3)
    X = random.normal(size=(150, 4))
    return X, X @ random.normal(size=(4, 3)) + 0.1 * random.normal(size=(150, 3)) > 0.2


FORMS = {
    "sets": lambda table: [{("a", "b", "c")[k] for k in np.flatnonzero(row)} for row in table],
    "sets of integers": lambda table: [{BIG[0] + int(k) for k in np.flatnonzero(row)} for row in table],
    "frozen sets": lambda table: np.array([frozenset(np.flatnonzero(row).tolist()) for row in table], object),
    "truth values": lambda table: table,
    "integers": lambda table: table.astype(np.int8),
    "sparse": lambda table: sp.csc_array(table.astype(np.int64)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("averaged", [False, True])
def test_sets_of_labels_come_out_as_they_went_in(several, form, averaged, tmp_path):
    X, table = several
    y = FORMS[form](table)
    loss = {"name": "multilabel_hinge", "averaged": averaged}
    model = bmrm.fit(X, y, loss=loss, regularizer=bmrm.L2(1e-3), bias="regularized", tolerance=1e-2)
    model.save(tmp_path / "m.npz")
    for one in (model, bmrm.load_model(tmp_path / "m.npz")):
        predicted = one.predict(X)
        if "sets" in form:
            assert isinstance(predicted, list)
            names = sorted(set().union(*y))
            assert set().union(*predicted) <= set(names)
            assert {type(label) for row in predicted for label in row} == {type(names[0])}
            found = np.array([[name in row for name in names] for row in predicted])
        else:
            assert type(predicted) is (sp.csr_array if form == "sparse" else np.ndarray)
            assert predicted.dtype == y.dtype
            found = (predicted.toarray() if form == "sparse" else predicted).astype(bool)
        assert np.mean(found == table) > 0.8
        assert not found.all(axis=1).all()


def test_a_label_that_no_row_has_keeps_its_column(several):
    X, table = several
    wide = np.insert(table, 1, False, axis=1)
    model = bmrm.fit(X, wide, loss="multilabel_hinge", regularizer=bmrm.L2(1e-3), tolerance=1e-2)
    assert model.predict(X).shape == wide.shape
    assert np.mean(model.predict(X) == wide) > 0.85


def test_the_threshold_of_a_row_makes_the_fewest_mistakes():
    random = np.random.default_rng(0)
    f, relevant = random.normal(size=(200, 5)), random.random((200, 5)) < 0.4
    thresholds = best_thresholds(f, relevant)
    mistakes = ((f > thresholds[:, None]) != relevant).sum(axis=1)
    for row in range(200):
        cuts = [*f[row] - 1e-9, *f[row] + 1e-9]
        assert mistakes[row] == min(((f[row] > cut) != relevant[row]).sum() for cut in cuts)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([{1}, 2, {3}], "y: row 1 is 2, expected a set of labels"),
        ([{1}, {"a"}, {3}], "the labels of y: row 1 is the text 'a', row 0 is 1; expected labels of one type"),
        (np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 1.0]]), r"y: row 0, column 1 is 2\.0, expected 0 or 1"),
    ],
)
def test_sets_that_are_none(y, said):
    with pytest.raises(InputError, match=said):
        bmrm.fit(np.eye(3), y, loss="multilabel_hinge", regularizer=bmrm.L2(1.0))


def test_sets_go_through_files(several, tmp_path):
    X, table = several
    for sets in (FORMS["sets"](table), FORMS["sets of integers"](table)):
        write_npz(tmp_path / "a.npz", bmrm.Dataset.from_arrays(X, sets))
        model = train(
            tmp_path,
            f"data.train={tmp_path}/a.npz",
            "loss=multilabel_hinge",
            "solver.tolerance=0.01",
            "output.overwrite=true",
        )
        truth = read(tmp_path / "a.npz").targets.y
        assert isinstance(truth, LabelSets)
        predicted = model.predict(X)
        assert np.mean([a == b for a, b in zip(predicted, sets)]) > 0.5
        words = [str(tmp_path / "out" / "model.npz"), str(tmp_path / "a.npz"), "--labels", "--out", str(tmp_path / "p")]
        assert main(["predict", *words]) == 0
        lines = (tmp_path / "p").read_text().splitlines()
        assert lines == [",".join(map(str, sorted(row))) for row in predicted]


@pytest.mark.mpi
def test_ranks_agree_on_the_threshold(several, tmp_path):
    X, table = several
    sets = FORMS["sets"](table)
    for rank in range(2):
        write_npz(tmp_path / f"part-{rank}.npz", bmrm.Dataset.from_arrays(X[rank::2], sets[rank::2]))
    (tmp_path / "job.yaml").write_text(
        "data: {train: 'part-{rank}.npz'}\nloss: multilabel_hinge\nregularizer: {name: l2, lambda: 0.01}\n"
        "solver: {tolerance: 1.0e-8}\noutput: {directory: out}\n"
    )
    done = work(2, "bmrm.run", "job.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    two = bmrm.load_model(tmp_path / "out" / "model.npz")
    one = bmrm.fit(X, sets, loss="multilabel_hinge", regularizer=bmrm.L2(0.01), tolerance=1e-8)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(two.arrays["threshold"], one.arrays["threshold"], atol=1e-2)


@pytest.mark.mpi
def test_a_third_label_is_reported_with_rank_and_file(rows, tmp_path):
    X, which = rows
    for rank in range(3):
        y = which[rank::3].copy()
        y[3] = 7 if rank == 2 else y[3]
        write_svmlight(tmp_path / f"part-{rank}.svm", bmrm.Dataset.from_arrays(X[rank::3], y))
    (tmp_path / "job.yaml").write_text(
        "data: {train: 'part-{rank}.svm'}\nloss: hinge\nregularizer: {name: l2, lambda: 0.1}\n"
        "output: {directory: out}\n"
    )
    done = work(3, "bmrm.run", "job.yaml", cwd=tmp_path)
    assert done.returncode == 2
    message = " ".join(done.stderr.split())
    assert "rank 2: hinge: 3 labels: 0, 1, 7; expected two classes (multiclass_hinge takes more)" in message
    assert "; part-2.svm has the label 7" in message
    assert not (tmp_path / "out").exists()


def test_a_third_label_is_reported_with_its_row(rows):
    X, which = rows
    with pytest.raises(InputError, match=r"hinge: 3 labels: 0, 1, 7; expected two classes .*; row 4 has the label 7"):
        bmrm.fit(X, np.where(np.arange(90) == 4, 7, which), loss="hinge", regularizer=bmrm.L2(1.0))


def test_groups_may_be_text(rows):
    X, which = rows
    numbers = np.repeat(np.arange(9), 10)
    expected = bmrm.fit(X, which, loss="rank_hinge", regularizer=bmrm.L2(1e-2), groups=numbers)
    for names in (np.array([f"q{k}" for k in numbers]), [f"q{k}" for k in numbers], pd.Series(numbers).map(str)):
        model = bmrm.fit(X, which, loss="rank_hinge", regularizer=bmrm.L2(1e-2), groups=names)
        assert np.array_equal(model.weights, expected.weights)


ARGUMENTS = {
    "no columns": ((np.zeros((5, 0)), [0, 1, 0, 1, 0]), "X has shape (5, 0), expected at least one column"),
    "no y": ((np.eye(2), None), "y is None, expected a label or a number for each row of X"),
    "ragged X": (([[1, 2], [3]], [0, 1]), "X: row 1 has 1 entries, row 0 has 2; expected rows of one length"),
    "ragged y": ((np.eye(2), [[1, 2], [3]]), "y: row 1 has 1 entries, row 0 has 2"),
    "ragged weights": ((np.eye(2), [0, 1], [[1], [1, 2]]), "weights: row 1 has 2 entries"),
    "text in X": (([["a", "b"], ["c", "d"]], [0, 1]), "X holds text"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_wrong_arguments_are_named(what):
    (X, y, *weights), said = ARGUMENTS[what]
    with pytest.raises(InputError) as caught:
        bmrm.fit(X, y, regularizer=bmrm.L2(1.0), sample_weight=weights[0] if weights else None)
    assert str(caught.value).startswith(said)


def test_novelty_needs_no_y(rows):
    X = np.abs(rows[0])
    model = bmrm.fit(X, None, loss="novelty", regularizer=bmrm.L2(1e-2))
    assert set(model.predict(X)) <= {-1.0, 1.0}


def test_data_without_labels_name_the_part(rows, tmp_path, capsys):
    write_npz(tmp_path / "a.npz", bmrm.Dataset.from_arrays(rows[0]))
    (tmp_path / "job.yaml").write_text(
        f"data: {{train: {tmp_path}/a.npz}}\nloss: hinge\nregularizer: {{name: l2, lambda: 0.1}}\n"
        f"output: {{directory: {tmp_path}/out}}\n"
    )
    assert main(["train", str(tmp_path / "job.yaml"), "--quiet"]) == 2
    assert "data.train: no labels (y), expected a label per row for hinge" in capsys.readouterr().err
    (tmp_path / "only.csv").write_text("y\n1\n2\n")
    with pytest.raises(InputError, match=r"only\.csv: one column, 'y', expected features beside the label"):
        read(tmp_path / "only.csv", format={"name": "csv", "header": True})
