"""Factors of the weights of rows by their class, at every door."""

import json

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_iris
from sklearn.utils.class_weight import compute_sample_weight

import bmrm
from bmrm.cli import main
from bmrm.data.writers import write_svmlight
from bmrm.problem import IncompatibleError, InputError
from tests.mpi.launch import work

TIGHT = {"lam": 1e-2, "tolerance": 1e-9}
GIVEN = ("balanced", {0: 3.0, 2: 0.5})


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    uneven = np.r_[0:50, 50:70, 100:105]
    return X[uneven], y[uneven]


def weights_of(given, y):
    """Those of scikit-learn, of which a dict names all classes."""
    return compute_sample_weight(given if given == "balanced" else {1: 1.0, **given}, y)


@pytest.mark.parametrize("given", GIVEN, ids=str)
@pytest.mark.parametrize("loss", ["softmax", "multiclass_hinge"])
def test_it_is_what_weighted_rows_give(rows, loss, given):
    X, y = rows
    own = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for sample_weight in (None, own):
        model = bmrm.fit(X, y, loss=loss, class_weight=given, sample_weight=sample_weight, **TIGHT)
        mass = np.ones(len(y)) if sample_weight is None else own
        factor = weights_of(given, y)
        if given == "balanced":  # with the weights of the rows
            factor = (mass.sum() / (3 * np.bincount(y, mass)))[y]
        weighted = bmrm.fit(X, y, loss=loss, sample_weight=mass * factor, **TIGHT)
        assert model.solution.objective == pytest.approx(weighted.solution.objective, rel=1e-8)
        classifier = bmrm.Classifier(loss, alpha=1e-2, tol=1e-9, class_weight=given).fit(X, y, sample_weight)
        assert model.solution.objective == pytest.approx(classifier.solution_.objective, rel=1e-8)


@pytest.mark.parametrize("labels", [["ham", "spam", "eggs"], [-1.5, 2.0, 7.0], [True, False, True]], ids=str)
def test_labels_are_as_the_user_has_them(rows, labels):
    X, y = rows
    named = np.array(labels)[y]
    given = {labels[0]: 3.0, labels[1]: 0.5}
    model = bmrm.fit(X, named, loss="softmax", class_weight=given, **TIGHT)
    weighted = bmrm.fit(
        X, named, loss="softmax", sample_weight=[given.get(one, 1.0) for one in named.tolist()], **TIGHT
    )
    assert model.solution.objective == pytest.approx(weighted.solution.objective, rel=1e-8)


def test_a_class_of_factor_0_stays_and_lambda_is_that_of_all_rows(rows):
    X, y = rows
    model = bmrm.fit(X, y, loss="softmax", class_weight={0: 0.0})
    assert model.labels.tolist() == [0, 1, 2]
    assert model.header["regularizer"]["lambda"] == 1.0 / len(y)
    assert 0 not in model.predict(X)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("balance", "class_weight is 'balance', expected a dict of factors by label, 'balanced' or None"),
        (3.0, "class_weight is 3.0, expected a dict of factors by label, 'balanced' or None"),
        ({0: -1.0}, "class_weight of 0 is -1.0, expected a number >= 0 and < inf"),
        ({0: "x"}, "class_weight of 0 is 'x', expected a number >= 0 and < inf"),
        ({0: float("nan")}, "class_weight of 0 is nan, expected a number >= 0 and < inf"),
        ({5: 1.0}, "class_weight has the label 5, which y has not; its labels are [0, 1, 2]"),
        ({0: 0, 1: 0, 2: 0}, "class_weight: all rows have a factor of 0, expected at least one above 0"),
        ([(0, 1.0), (0, 2.0)], "class_weight has the label 0 twice"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(rows, given, said):
    with pytest.raises(InputError) as found:
        bmrm.fit(*rows, loss="softmax", class_weight=given)
    assert said in str(found.value)


def test_rows_without_a_class_have_no_factor(rows):
    with pytest.raises(IncompatibleError, match="least_squares: class_weight needs a loss of rows that have one class"):
        bmrm.fit(rows[0], rows[1] * 1.0, loss="least_squares", class_weight="balanced")


@pytest.fixture
def job(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = rows
    order = np.random.default_rng(1).permutation(len(y))
    write_svmlight("rows.svm", bmrm.Dataset.from_arrays(X[order], y[order]))
    return X[order], y[order]


def objective(folder):
    with open(f"{folder}/summary.json") as file:
        return json.load(file)["objective"]


@pytest.mark.parametrize(("text", "given"), [("balanced", "balanced"), ("{0: 3, 2: .5}", {0: 3.0, 2: 0.5})])
def test_command_line_and_config(job, text, given):
    expected = bmrm.fit(*job, loss="softmax", class_weight=given, **TIGHT).solution.objective
    words = ("--loss", "softmax", "--lambda", "1e-2", "--tolerance", "1e-9", "--quiet")
    assert main(["train", "rows.svm", *words, "--class-weight", text, "--output", "a"]) == 0
    assert objective("a") == pytest.approx(expected, rel=1e-8)
    with open("a/config.yaml") as file:
        kept = yaml.safe_load(file)
    kept["output"]["directory"] = "b"
    with open("b.yaml", "w") as file:
        yaml.safe_dump(kept, file)
    assert main(["train", "b.yaml", "--quiet"]) == 0
    assert objective("b") == objective("a")


def test_another_factor_is_another_problem(job, capsys):
    words = ("train", "rows.svm", "--loss", "softmax", "--quiet", "--output", "a", "--class-weight")
    assert main([*words, "balanced"]) == 0
    for other in ([*words, "{0: 3}"], words[:-1]):
        assert main([*other]) == 2
        assert "class_weight" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["balance", "{0: -1}", "[[0, 1], [0, 2]]", "3"])
def test_a_wrong_one_is_refused_before_rows_are_read(text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "rows.svm", "--class-weight", text, "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bmrm: --class-weight: data.class_weight is ")
    assert said.count("\n") == 1


@pytest.mark.mpi
def test_over_ranks_the_classes_are_those_of_all(job, tmp_path):
    X, y = job
    place = np.argsort(y, kind="stable")  # the third rank has a class alone
    for rank, part in enumerate((place[:30], place[30:60], place[60:])):
        write_svmlight(f"part-{rank}.svm", bmrm.Dataset.from_arrays(X[part], y[part]))
    words = ("--loss", "softmax", "--lambda", "1e-2", "--tolerance", "1e-9", "--quiet")
    done = work(
        3, "bmrm.cli", "train", "part-{rank}.svm", *words, "--class-weight", "balanced", "--output", "o", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    expected = bmrm.fit(X, y, loss="softmax", class_weight="balanced", **TIGHT).solution.objective
    assert objective("o") == pytest.approx(expected, rel=1e-8)
