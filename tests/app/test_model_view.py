"""What a model shows of itself."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import bmrm
from bmrm.problem import InputError

X, Y = load_breast_cancer(return_X_y=True)
NAMES = [f"<{k}>" for k in range(30)]


@pytest.fixture(scope="module")
def model():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    return bmrm.fit(
        frame, Y, loss="logistic", scale="standardize", validation=(frame, Y), follow=["auc"], tolerance=1e-6
    )


def test_a_line_says_the_problem_and_its_end(model):
    assert repr(model) == (
        "<Model logistic + l2 (lambda 0.001757), free intercept; 30 features; labels 0, 1; CONVERGED, relative gap "
        f"{model.solution.relative_gap:.2g}; chosen: lambda 1 / m>"
    )
    assert "labels 0, 1, 2;" in repr(bmrm.fit(*load_iris(return_X_y=True)))
    unproved = bmrm.fit(X, Y, regularizer=bmrm.L2(1e-2), solver="pegasos", max_iterations=3, bias="none")
    assert "ITERATION_LIMIT" in repr(unproved)
    assert "(lambda 0.01), no intercept;" in repr(unproved)
    constant = bmrm.fit(X, Y, regularizer=bmrm.L2(1e-2), bias="regularized")
    assert "(lambda 0.01), constant feature;" in repr(constant)


def test_html_is_escaped_and_has_certificate_measures_and_picture(model):
    page = ElementTree.fromstring(model._repr_html_())
    rows = {row[0].text: row[1].text for row in page.iter("tr")}
    assert rows["loss"] == "logistic"
    objective, bound = map(float, re.findall(r"\d\.\d+", rows["certificate"]))
    assert objective == pytest.approx(model.solution.objective)
    assert bound == pytest.approx(model.solution.lower_bound)
    assert float(rows["validation auc"]) > 0.99
    heights = [float(mark.get("cy")) for mark in page.iter("circle")]
    gaps = [line.relative_gap for line in model.solution.history if 0 < line.relative_gap < np.inf]
    assert len(heights) == len(gaps)
    assert np.argmin(heights) == np.argmax(gaps)  # y counts downwards


def test_a_model_from_a_file_shows_what_it_knows(model, tmp_path):
    model.save(tmp_path / "model.npz")
    read = bmrm.load_model(tmp_path / "model.npz")
    assert repr(read).startswith("<Model logistic + l2 (lambda 0.001757), free intercept; 30 features;")
    assert "certificate" in read._repr_html_()
    assert "svg" not in read._repr_html_()
    assert read.top_weights(3) == model.top_weights(3)
    with pytest.raises(InputError, match="keeps no solution"):
        read.plot()


def test_the_largest_weights_by_name(model):
    top = model.top_weights(5)
    order = np.argsort(-np.abs(model.weights))[:5]
    assert [weight.feature for weight in top] == [NAMES[k] for k in order]
    np.testing.assert_array_equal([weight.weight for weight in top], model.weights[order])
    assert top[0].label is None
    flowers = bmrm.fit(*load_iris(return_X_y=True)).top_weights(2)
    assert [weight.label for weight in flowers] == [0, 0, 1, 1, 2, 2]
    assert {weight.feature for weight in flowers} <= {"x0", "x1", "x2", "x3"}
    lasso = bmrm.fit(X, X[:, 0], regularizer="l1", lam=100.0)
    assert len(lasso.top_weights()) == np.count_nonzero(lasso.weights)


def test_the_plot_has_objective_and_bound(model):
    figure = model.plot()
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["objective (best so far)", "lower bound"]


def test_the_title_of_a_plot_is_short(model):
    title = model.plot().get_suptitle()
    assert title == f"{model.header['loss']['name']} + l2: CONVERGED, relative gap {model.solution.relative_gap:.2g}"
    long = replace(model, header={**model.header, "loss": {"name": "a_package.of_mine.with_losses:" + "Huber" * 9}})
    figure = long.plot()
    figure.canvas.draw()
    box = figure._suptitle.get_window_extent()
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1
