"""The model, its file, and what is refused as one."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.problem import InputError


@pytest.fixture(scope="module")
def classes():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6)) + 3.0
    y = np.array(["no", "yes"])[(X @ np.arange(6.0) + random.normal(size=120) > 45.0).astype(int)]
    return X, y


@pytest.fixture(scope="module")
def model(classes):
    return bmrm.fit(*classes, loss="hinge", regularizer=bmrm.L2(1e-2), bias="free", scale="standardize", tolerance=1e-4)


def test_scores_are_those_of_the_weights_and_labels_the_users_own(classes, model):
    X, _ = classes
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.weights + model.intercept[0], rtol=1e-12)
    assert list(model.labels) == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    assert ((scores > 0) == (model.predict(X) == "yes")).all()


def test_dense_sparse_and_dataset_give_the_same_scores(classes, model):
    X, y = classes
    expected = model.decision_function(X)
    for other in (sp.csr_array(X), sp.csc_matrix(X), bmrm.Dataset.from_arrays(X, y), X.tolist()):
        np.testing.assert_allclose(model.decision_function(other), expected, rtol=1e-12)


def test_what_is_saved_is_what_is_loaded(classes, model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    again = bmrm.load_model(path)
    X, _ = classes
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert (again.predict(X) == model.predict(X)).all()
    assert again.header["status"] == "CONVERGED"
    assert again.header["objective"] == model.solution.objective
    with pytest.raises(InputError, match=r"read from a file, which keeps no solution, .* header has status, objective"):
        _ = again.solution


def test_the_file_has_plain_arrays_as_the_design_says(model, tmp_path):
    path = tmp_path / "m.npz"
    model.save(path)
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"weights", "intercept", "labels", "header"}
        assert file["weights"].dtype == np.float64
        assert file["weights"].shape == (6,)
        assert file["intercept"].shape == (1,)
        header = json.loads(str(file["header"]))
    assert header["loss"] == {"name": "hinge"}
    assert header["regularizer"]["lambda"] == 1e-2
    assert {"format", "dimension", "objective", "lower_bound", "status", "version"} <= set(header)


def test_several_scores_per_row(tmp_path):
    random = np.random.default_rng(1)
    X, y = random.normal(size=(90, 4)), np.arange(90) % 3 + 10
    model = bmrm.fit(X, y, loss="softmax", regularizer=bmrm.L2(1e-2), bias="regularized")
    assert model.weights.shape == (4, 3)
    assert model.intercept.shape == (3,)
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    np.testing.assert_allclose(again.decision_function(X), X @ model.weights + model.intercept, rtol=1e-12)
    assert set(again.predict(X)) <= {10.0, 11.0, 12.0}


def test_parameters_of_the_loss_come_back(tmp_path):
    X = np.arange(20.0)[:, None]
    model = bmrm.fit(X, X[:, 0], loss={"name": "quantile", "tau": 0.9}, regularizer=bmrm.L1(1e-3))
    model.save(tmp_path / "m.npz")
    assert bmrm.load_model(tmp_path / "m.npz").loss.tau == 0.9
    assert len(bmrm.load_model(tmp_path / "m.npz").labels) == 0


def test_rows_of_unit_norm_are_made_by_the_model(classes, tmp_path):
    X, y = classes
    model = bmrm.fit(X, y, regularizer=bmrm.L2(1e-3), bias="none", scale="unit_norm")
    model.save(tmp_path / "m.npz")
    again = bmrm.load_model(tmp_path / "m.npz")
    expected = (X / np.linalg.norm(X, axis=1, keepdims=True)) @ model.weights
    np.testing.assert_allclose(again.decision_function(X), expected, rtol=1e-10)
    np.testing.assert_allclose(again.decision_function(5 * sp.csr_array(X)), expected, rtol=1e-10)
    assert again.decision_function(np.zeros((1, 6)))[0] == 0.0


def test_sparse_rows_may_be_narrower_than_the_model_but_never_wider(classes, model):
    X, _ = classes
    narrow = model.decision_function(sp.csr_array(X[:, :4]))
    np.testing.assert_allclose(narrow, X[:, :4] @ model.weights[:4] + model.intercept[0], rtol=1e-12)
    for wrong in (np.ones((2, 7)), np.ones((2, 5)), sp.csr_array(np.ones((2, 7)))):
        with pytest.raises(InputError, match=r"features, the model has 6"):
            model.decision_function(wrong)


def test_a_loss_of_ones_own_is_not_imported_because_a_file_says_so(classes, model, tmp_path):
    X, _ = classes
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"])) | {"loss": {"name": "antigravity:Loss"}}
    np.savez(tmp_path / "m.npz", **(arrays | {"header": np.array(json.dumps(header))}))
    again = bmrm.load_model(tmp_path / "m.npz")
    assert len(again.decision_function(X)) == len(X)
    with pytest.raises(InputError, match="hand it over"):
        again.predict(X)
    assert (bmrm.load_model(tmp_path / "m.npz", loss=model.loss).predict(X) == model.predict(X)).all()


HEADER = json.dumps({"format": 1, "loss": {"name": "hinge"}, "dimension": 2})
GOOD = {"weights": np.zeros(2), "intercept": np.zeros(1), "labels": np.array([-1.0, 1.0]), "header": np.array(HEADER)}


def changed(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **(GOOD | arrays))
    return stream.getvalue()


def header_with(**entries):
    return changed(header=np.array(json.dumps(json.loads(HEADER) | entries)))


def archive_without(name):
    stream = io.BytesIO()
    np.savez(stream, **{key: value for key, value in GOOD.items() if key != name})
    return stream.getvalue()


def single_array():
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


def other_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("word/document.xml", "<w/>")
    return stream.getvalue()


REFUSED = {
    "empty": (b"", "not a model file"),
    "text": (b"hello, world\n", "not a model file"),
    "pickle": (pickle.dumps({"weights": [1]}), "pickled objects"),
    "truncated": (changed()[:200], "not a model file"),
    "a single array": (single_array(), "a single array"),
    "another zip": (other_zip(), "it has no"),
    "no weights": (archive_without("weights"), "it has no weights"),
    "pickled weights": (changed(weights=np.array([{}, 1], dtype=object)), "pickled objects"),
    "pickled labels": (changed(labels=np.array(["a", None], dtype=object)), "pickled objects"),
    "pickled header": (changed(header=np.array({"format": 1}, dtype=object)), "pickled objects"),
    "integer weights": (changed(weights=np.zeros(2, int)), "float64"),
    "weights of no feature": (changed(weights=np.zeros(0)), "float64 vector or matrix"),
    "weights of three axes": (changed(weights=np.zeros((2, 1, 1))), "float64 vector or matrix"),
    "nan": (changed(weights=np.array([np.nan, 0.0])), "not finite"),
    "a wrong intercept": (changed(intercept=np.zeros(2)), "intercept"),
    "a wrong dimension": (header_with(dimension=3), "dimension 3"),
    "another format": (header_with(format=9), "model format 9"),
    "no loss": (header_with(loss="hinge"), "names no loss"),
    "an unknown scaling": (header_with(row_scale="sideways"), "row_scale"),
    "a header that is no JSON": (changed(header=np.array("{")), "header"),
    "a header that is a list": (changed(header=np.array("[]")), "header"),
    "a header of numbers": (changed(header=np.zeros(2)), "header"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_is_not_ours_is_refused_with_its_name(what, tmp_path):
    content, complaint = REFUSED[what]
    path = tmp_path / "strange.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        bmrm.load_model(path)
    assert "strange.npz" in str(caught.value)


def test_the_good_file_of_that_table_is_read(tmp_path):
    (tmp_path / "m.npz").write_bytes(changed())
    assert bmrm.load_model(tmp_path / "m.npz").dim == 2


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.npz: cannot be read: No such file"):
        bmrm.load_model(tmp_path / "none.npz")


def test_nothing_is_left_where_a_model_cannot_be_saved(model, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        model.save(tmp_path / "none" / "m.npz")
    assert list(tmp_path.iterdir()) == []
