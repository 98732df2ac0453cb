"""Columns by their names, labels wherever they stand: what a model makes of files and frames unlike its own."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.cli import main
from bmrm.data.reading import read
from bmrm.data.writers import write_npz
from bmrm.problem import InputError
from tests.mpi.launch import work

NAMES = ("age", "height", "weight", "income")


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 4)) * (1.0, 2.0, 3.0, 4.0)
    y = np.where(X @ (3.0, -2.0, 1.0, 0.5) + random.normal(size=120) > 0, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def frame(rows):
    return pd.DataFrame(rows[0], columns=NAMES)


@pytest.fixture(scope="module")
def model(frame, rows):
    return bmrm.fit(frame, rows[1], regularizer=bmrm.L2(1e-2), bias="regularized")


def csv_text(X, columns, **more):
    return pd.DataFrame(X, columns=list(NAMES)).assign(**more)[list(columns)].to_csv(index=False)


@pytest.fixture(scope="module")
def job(tmp_path_factory, rows):
    """A model that was trained from a csv file whose labels stand last."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "train.csv").write_text(csv_text(rows[0], (*NAMES, "buys"), buys=rows[1]))
    (folder / "job.yaml").write_text(
        f"data: {{train: {folder}/train.csv, bias: regularized}}\nloss: hinge\n"
        f"regularizer: {{name: l2, lambda: 0.01}}\noutput: {{directory: {folder}/out}}\n"
    )
    assert main(["train", str(folder / "job.yaml"), "--quiet"]) == 0
    return folder


def predicted(job, tmp_path, content, name="new.csv", status=0, *words):
    (tmp_path / name).write_text(content)
    out = tmp_path / "out.txt"
    arguments = ["predict", str(job / "out" / "model.npz"), str(tmp_path / name), "--labels", "--out", str(out), *words]
    assert main(arguments) == status
    return out.read_text().split() if status == 0 else None


def test_a_frame_with_its_columns_in_another_order(frame, model):
    assert model.feature_names == NAMES
    expected = model.decision_function(frame)
    np.testing.assert_array_equal(model.decision_function(frame[list(NAMES[::-1])]), expected)
    np.testing.assert_array_equal(model.decision_function(frame.to_numpy()), expected)
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(frame.to_numpy()), columns=NAMES)
    np.testing.assert_allclose(model.decision_function(sparse[["income", "weight", "age", "height"]]), expected)


def test_a_frame_is_what_has_names_and_becomes_an_array(frame, model):
    class Polars:
        """The little that a polars frame has in common with one of pandas."""

        def __init__(self):
            self.columns = list(NAMES[::-1])

        def to_numpy(self):
            return frame.to_numpy()[:, ::-1]

        def __getitem__(self, at):
            return self.to_numpy()[at]

    np.testing.assert_array_equal(model.decision_function(Polars()), model.decision_function(frame))


def test_polars(rows, model):
    import polars

    turned = polars.DataFrame({name: rows[0][:, k] for k, name in reversed(list(enumerate(NAMES)))})
    np.testing.assert_allclose(model.decision_function(turned), model.decision_function(rows[0]), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop(columns="age"), "no column 'age'"),
        (lambda f: f.drop(columns=["age", "height"]), "no columns 'age', 'height'"),
        (lambda f: f.assign(shoe=1.0), "unknown column 'shoe'"),
        (lambda f: f.rename(columns={"height": "hight"}), "no column 'height' (did you mean 'hight'?)"),
        (lambda f: f.assign(**{f"c{k}": 0.0 for k in range(9)}), "unknown columns 'c0', 'c1', 'c2' and 6 more"),
        (lambda f: f.rename(columns={"height": "age"})[["weight", "age", "income"]], "no column 'height'"),
    ],
)
def test_missing_and_unknown_columns_are_named(frame, model, change, said):
    with pytest.raises(InputError) as caught:
        model.predict(change(frame))
    assert said in str(caught.value)
    assert "expected the 4 columns of the training" in str(caught.value)


def test_names_that_are_not_different_tell_no_order(rows):
    twice = pd.DataFrame(rows[0], columns=["a", "a", "b", "c"])
    model = bmrm.fit(twice, rows[1], regularizer=bmrm.L2(1e-2))
    np.testing.assert_array_equal(model.predict(twice), model.predict(rows[0]))
    with pytest.raises(InputError, match="several columns are named 'a'"):
        model.predict(twice.iloc[:, ::-1])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["1.5"] * 120, r"X: column 'city' holds text \(row 0: '1.5'\), expected numbers"),
        ([None] + [1.0] * 119, "X: row 0, column 'city' is nan"),
        (pd.array([1, None] + [2] * 118, dtype="Int64"), "X: row 1, column 'city' is nan"),
        (pd.date_range("2020-01-01", periods=120), "X: column 'city' holds"),
        ([[1.0]] * 120, "X: column 'city' holds list"),
    ],
)
def test_a_column_that_holds_no_numbers_is_named(frame, rows, column, said):
    with pytest.raises(InputError, match=said):
        bmrm.fit(frame.assign(city=column), rows[1], regularizer=bmrm.L2(1e-2))


def test_columns_of_several_number_types(frame, rows):
    mixed = frame.assign(owns=rows[1] == "yes", count=pd.array(range(120), dtype="Int64"))
    model = bmrm.fit(mixed, rows[1], regularizer=bmrm.L2(1e-2))
    numbers = np.column_stack([rows[0], rows[1] == "yes", np.arange(120)])
    np.testing.assert_array_equal(model.decision_function(mixed), model.decision_function(numbers))


def test_numbers_as_names_tell_no_order_and_mixed_names_are_refused(rows):
    model = bmrm.fit(pd.DataFrame(rows[0]), rows[1], regularizer=bmrm.L2(1e-2))
    assert model.feature_names is None
    with pytest.raises(InputError, match="column 1 has a name that is no text"):
        bmrm.fit(pd.DataFrame(rows[0], columns=["a", 1, 2, 3]), rows[1], regularizer=bmrm.L2(1e-2))


def test_the_names_are_in_the_file(frame, model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    assert again.feature_names == NAMES
    assert again.header["format"] == 2
    expected = model.decision_function(frame)
    np.testing.assert_array_equal(again.decision_function(frame[list(NAMES[::-1])]), expected)


def test_strange_names_come_back(tmp_path, rows):
    names = ["", "ä\n", "a" * 300, "nul\0"]
    model = bmrm.fit(pd.DataFrame(rows[0], columns=names), rows[1], regularizer=bmrm.L2(1e-2))
    model.save(tmp_path / "m.npz")
    assert bmrm.load_model(tmp_path / "m.npz").feature_names == tuple(names)


def test_a_file_of_version_1_is_read(rows, tmp_path):
    header = {"format": 1, "loss": {"name": "hinge"}, "dimension": 4, "one_based": True}
    arrays = {"weights": np.arange(4.0), "intercept": np.zeros(1), "labels": np.array([-1.0, 1.0])}
    np.savez(tmp_path / "m.npz", header=np.array(json.dumps(header)), **arrays)
    model = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_allclose(model.decision_function(rows[0]), rows[0] @ np.arange(4.0), rtol=1e-12)
    (tmp_path / "a.svm").write_text("1 2:1\n")
    assert model.decision_function(model.read(tmp_path / "a.svm")) == [1.0]
    model.save(tmp_path / "again.npz")
    assert bmrm.load_model(tmp_path / "again.npz").header["format"] == 2


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ((*NAMES, "buys"), True),
        (("buys", *NAMES[::-1]), True),
        (("income", "buys", "age", "weight", "height"), True),
        (NAMES, False),
        (NAMES[::-1], False),
    ],
)
def test_a_csv_file_with_its_columns_in_another_order_with_labels_or_without(job, rows, tmp_path, columns, labels):
    X, y = rows
    expected = bmrm.load_model(job / "out" / "model.npz").predict(X)
    assert np.mean(expected == y) > 0.9
    assert predicted(job, tmp_path, csv_text(X, columns, buys=y)) == expected.tolist()
    if labels:
        assert main(["evaluate", str(job / "out" / "model.npz"), str(tmp_path / "new.csv")]) == 0


def test_files_of_other_kinds(job, rows, tmp_path):
    X, y = rows
    model = bmrm.load_model(job / "out" / "model.npz")
    expected = model.predict(X).tolist()
    headless = csv_text(X, NAMES).partition("\n")[2]
    assert predicted(job, tmp_path, headless) == expected
    assert predicted(job, tmp_path, csv_text(X, (*NAMES, "buys"), buys=y).partition("\n")[2]) == expected
    semicolons = csv_text(X, NAMES[::-1]).replace(",", ";")
    assert predicted(job, tmp_path, semicolons, "new.data") == expected
    write_npz(tmp_path / "new.npz", bmrm.Dataset.from_arrays(pd.DataFrame(X, columns=NAMES)[list(NAMES[::-1])], y))
    assert model.predict(model.read(tmp_path / "new.npz")).tolist() == expected
    write_npz(tmp_path / "bare.npz", bmrm.Dataset.from_arrays(X))
    assert model.predict(model.read(tmp_path / "bare.npz")).tolist() == expected


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ((*NAMES[1:], "buys"), "no column 'age'; expected the 4 columns"),
        ((*NAMES, "buys", "shoe"), "unknown column 'shoe'"),
        (NAMES[:2], "no columns 'weight', 'income'"),
    ],
)
def test_a_csv_file_without_a_column_or_with_one_more(job, rows, tmp_path, capsys, columns, said):
    predicted(job, tmp_path, csv_text(rows[0], columns, buys=rows[1], shoe=1.0), "new.csv", 2)
    complaint = capsys.readouterr().err
    assert "new.csv" in complaint
    assert said in complaint


def test_to_evaluate_takes_labels(job, rows, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(csv_text(rows[0], NAMES))
    assert main(["evaluate", str(job / "out" / "model.npz"), str(tmp_path / "new.csv")]) == 2
    assert "new.csv: no column 'buys' with the labels" in capsys.readouterr().err
    write_npz(tmp_path / "bare.npz", bmrm.Dataset.from_arrays(rows[0]))
    assert main(["evaluate", str(job / "out" / "model.npz"), str(tmp_path / "bare.npz")]) == 2
    assert "bare.npz: no labels" in capsys.readouterr().err


def accuracy_of_run(job, folder, test):
    (folder / "test.csv").write_text(test)
    words = [f"data.test={folder}/test.csv", f"output.directory={folder}/out"]
    status = main(["train", str(job / "job.yaml"), "--quiet", *(part for word in words for part in ("--set", word))])
    return status, status == 0 and json.loads((folder / "out" / "summary.json").read_text())["metrics"]["test"]


def test_the_test_data_of_a_run_are_aligned_with_the_training_data(job, rows, tmp_path, capsys):
    X, y = rows
    _, expected = accuracy_of_run(job, tmp_path, csv_text(X, (*NAMES, "buys"), buys=y))
    assert expected["accuracy"] > 0.9
    assert accuracy_of_run(job, tmp_path, csv_text(X, ("buys", *NAMES[::-1]), buys=y)) == (0, expected)
    capsys.readouterr()
    assert accuracy_of_run(job, tmp_path, csv_text(X, NAMES[::-1]))[0] == 2
    assert "data.test: " in capsys.readouterr().err
    assert accuracy_of_run(job, tmp_path, csv_text(X, (*NAMES[1:], "buys"), buys=y))[0] == 2
    assert "test.csv: no column 'age'" in capsys.readouterr().err


def test_several_training_files_are_joined_by_name(rows, tmp_path):
    X, y = rows
    (tmp_path / "a.csv").write_text(csv_text(X[:50], (*NAMES, "buys"), buys=y[:50]))
    (tmp_path / "b.csv").write_text(csv_text(X[50:], ("income", "buys", *NAMES[:3]), buys=y[50:]))
    data = read([tmp_path / "a.csv", tmp_path / "b.csv"])
    np.testing.assert_allclose(data.X, X, rtol=1e-12)
    np.testing.assert_array_equal(data.targets.y, y)
    (tmp_path / "b.csv").write_text(csv_text(X[50:], (*NAMES[:3], "buys"), buys=y[50:]))
    with pytest.raises(InputError, match=r"b\.csv: no column 'income'"):
        read([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_rows_of_svmlight_without_labels(tmp_path, capsys):
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 5))
    y = np.where(X[:, 0] > 0, 1, -1)
    rows = [" ".join(f"{k + 1}:{value!r}" for k, value in enumerate(row.tolist())) for row in X]
    (tmp_path / "train.svm").write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows)))
    config = f"data: {{train: {tmp_path}/train.svm}}\nloss: hinge\nregularizer: {{name: l2, lambda: 0.1}}\n"
    config += f"output: {{directory: {tmp_path}/out}}\n"
    (tmp_path / "job.yaml").write_text(config)
    assert main(["train", str(tmp_path / "job.yaml"), "--quiet"]) == 0
    expected = predicted(tmp_path, tmp_path, (tmp_path / "train.svm").read_text(), "new.svm")
    assert predicted(tmp_path, tmp_path, "\n".join(rows), "new.svm") == expected
    assert predicted(tmp_path, tmp_path, "\n".join(rows), "rows.txt") == expected
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "out" / "model.npz"), str(tmp_path / "new.svm")]) == 2
    assert "new.svm, line 1: label is '1:" in capsys.readouterr().err
    predicted(tmp_path, tmp_path, f"{rows[0]}\n1 {rows[1]}\n", "new.svm", 2)
    assert "new.svm, line 2: a label, but the first row has none" in capsys.readouterr().err


def test_an_attribute_file_of_crfsuite_is_told_apart(tmp_path):
    lines = [
        "B-NP\tw[0]=He\tpos[0]=PRP\t__BOS__",
        "B-VP\tw[0]=runs\tpos[0]=VBZ\tw[-1]=He",
        "",
        "O\tw[0]=.\tpos[0]=.",
        "",
    ]
    for name in ("a.conll", "a.txt"):
        path = tmp_path / name
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match=r"an attribute file of CRFsuite .* whose format is crfsuite"):
            read(path, format="conll")
    assert read(path).targets.y.tolist() == ["B-NP", "B-VP", "O"]
    path.write_text("He PRP B-NP\nruns VBZ B-VP\n\n= = O\n")
    assert read(path, format="conll").rows == 3


@pytest.mark.mpi
def test_ranks_agree_on_the_order_of_the_columns(job, rows, tmp_path):
    X, y = rows
    orders = [(*NAMES, "buys"), ("buys", *NAMES[::-1])]
    for rank, columns in enumerate(orders):
        (tmp_path / f"part-{rank}.csv").write_text(csv_text(X[rank::2], columns, buys=y[rank::2]))
    (tmp_path / "test.csv").write_text(csv_text(X, ("weight", "buys", "age", "income", "height"), buys=y))
    config = (job / "job.yaml").read_text().replace(f"{job}/train.csv", '"part-{rank}.csv", test: test.csv')
    (tmp_path / "job.yaml").write_text(config.replace(f"{job}/out", "out"))
    done = work(2, "bmrm.run", "job.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "all.csv").write_text(csv_text(np.r_[X[::2], X[1::2]], orders[0], buys=np.r_[y[::2], y[1::2]]))
    alone = [f"data.train={tmp_path}/all.csv", f"output.directory={tmp_path}/alone"]
    assert main(["train", str(job / "job.yaml"), "--quiet", "--set", alone[0], "--set", alone[1]]) == 0
    two, one = (json.loads((tmp_path / name / "summary.json").read_text()) for name in ("out", "alone"))
    assert two["objective"] == pytest.approx(one["objective"], rel=2e-3)
    assert two["metrics"]["test"]["accuracy"] == pytest.approx(two["metrics"]["train"]["accuracy"])
    (tmp_path / "part-1.csv").write_text(csv_text(X, (*NAMES[1:], "buys"), buys=y))
    done = work(2, "bmrm.run", "job.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "rank 1: part-1.csv: no column 'age'" in done.stderr.replace("\n", " ")
