"""`bmrm.fit` and `bmrm.minimize` against closed forms and scikit-learn."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import bmrm
from bmrm.problem import IncompatibleError, InputError


@pytest.fixture(scope="module")
def numbers():
    random = np.random.default_rng(5)
    X = random.normal(size=(200, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 1.0, -2.0]
    return X, X @ [1.0, 0.2, -3.0, 0.5] + 4.0 + 0.1 * random.normal(size=200)


def test_ridge_with_a_free_intercept(numbers):
    X, y = numbers
    model = bmrm.fit(X, y, loss="least_squares", regularizer=bmrm.L2(1e-2), bias="free", tolerance=1e-12)
    expected = Ridge(alpha=1e-2 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.weights, expected.coef_, rtol=1e-4)
    np.testing.assert_allclose(model.intercept[0], expected.intercept_, rtol=1e-4)


def test_weights_are_repetition_and_a_regularized_bias_is_a_feature(numbers):
    X, y = numbers
    random = np.random.default_rng(6)
    label, weights = np.sign(y - np.median(y)), random.integers(0, 3, len(y))
    options = {"loss": "logistic", "regularizer": bmrm.L2(1e-2), "tolerance": 1e-12, "bias": "regularized"}
    weighted = bmrm.fit(X, label, sample_weight=weights, **options)
    repeated = bmrm.fit(np.repeat(X, weights, axis=0), np.repeat(label, weights), **options)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-4)
    ones = np.column_stack((X, np.ones(len(X))))
    expected = LogisticRegression(C=1 / (1e-2 * weights.sum()), fit_intercept=False, tol=1e-10, max_iter=10000)
    expected.fit(ones, label, sample_weight=weights)
    np.testing.assert_allclose([*weighted.weights, *weighted.intercept], expected.coef_[0], atol=1e-3)


@pytest.mark.parametrize("scale", ["standardize", "max_abs"])
def test_scaling_is_the_same_as_scaling_by_hand(numbers, scale):
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X, y = numbers
    by_hand = {"standardize": StandardScaler, "max_abs": MaxAbsScaler}[scale]().fit_transform(X)
    options = {"loss": "least_squares", "regularizer": bmrm.L2(1e-1), "bias": "free", "tolerance": 1e-12}
    ours, theirs = bmrm.fit(X, y, scale=scale, **options), bmrm.fit(by_hand, y, **options)
    assert ours.solution.objective == pytest.approx(theirs.solution.objective, rel=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(by_hand), atol=1e-4)


def test_the_positive_label_can_be_chosen(numbers):
    X, y = numbers
    label = np.where(y > np.median(y), 7, 3)
    options = {"regularizer": bmrm.L2(1e-2), "scale": "standardize", "tolerance": 1e-8}
    plain = bmrm.fit(X, label, **options)
    turned = bmrm.fit(X, label, positive_label=3, **options)
    assert list(plain.labels) == [3, 7]
    assert list(turned.labels) == [7, 3]
    np.testing.assert_allclose(turned.weights, -plain.weights, atol=1e-4)
    assert (turned.predict(X) == plain.predict(X)).mean() > 0.98
    for wrong, words in ((4, "the labels are"), ("7", "the labels are")):
        with pytest.raises(InputError, match=words):
            bmrm.fit(X, label, positive_label=wrong, **options)
    with pytest.raises(InputError, match="needs two labels"):
        bmrm.fit(X, y, loss="least_squares", positive_label=3, **options)


def test_the_callback_sees_every_iteration_and_can_stop(numbers):
    X, y = numbers
    seen = []

    def callback(line):
        seen.append(line)
        return len(seen) == 3

    model = bmrm.fit(X, y, loss="quantile", regularizer=bmrm.L2(1e-6), tolerance=1e-12, callback=callback)
    assert model.solution.status is bmrm.Status.INTERRUPTED
    assert [line.iteration for line in seen] == [0, 1, 2]


def test_options_reach_the_solver_and_an_instance_keeps_its_own(numbers):
    from bmrm.solvers.bundle import Bundle

    X, y = numbers
    few = bmrm.fit(X, y, loss="quantile", regularizer=bmrm.L2(1e-6), solver="bundle", max_iterations=2)
    assert few.solution.status is bmrm.Status.ITERATION_LIMIT
    same = bmrm.fit(X, y, loss="quantile", regularizer=bmrm.L2(1e-6), solver=Bundle(max_iterations=2))
    assert same.solution.objective == few.solution.objective
    with pytest.raises(InputError, match=r"made already; expected \w+ in \w+\(...\) or the \w+ by its name"):
        bmrm.fit(X, y, loss="quantile", regularizer=bmrm.L2(1e-6), solver=Bundle(), max_iterations=2)


WRONG = {
    "loss": ({"loss": "hing"}, "did you mean 'hinge'"),
    "loss without name": ({"loss": {"tau": 1}}, "a name or"),
    "solver": ({"solver": "bundel"}, "did you mean 'bundle'"),
    "option": ({"tolerence": 1}, "did you mean 'tolerance'"),
    "range": ({"tolerance": -1.0}, "tolerance is -1.0"),
    "bias": ({"bias": "fre"}, "did you mean 'free'"),
    "scale": ({"scale": "standardise"}, "did you mean 'standardize'"),
    "threads": ({"threads": 0}, "threads is 0"),
    "weights": ({"sample_weight": [-1.0] * 4}, "weights"),
    "nan": ({"X": [[np.nan], [1.0], [1.0], [2.0]]}, "finite"),
    "length": ({"y": [1, 2, 1]}, "3"),
    "one class": ({"y": [1, 1, 1, 1]}, "class"),
    "three classes": ({"y": [1, 2, 3, 1], "loss": "hinge"}, "two classes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_are_refused_in_one_sentence(what):
    change, words = WRONG[what]
    arguments = {"X": [[1.0], [2.0], [3.0], [4.0]], "y": [0, 0, 1, 1], "regularizer": bmrm.L2(1.0)} | change
    with pytest.raises(InputError, match=words) as caught:
        bmrm.fit(arguments.pop("X"), arguments.pop("y"), **arguments)
    assert len(str(caught.value).splitlines()) == 1


def test_a_pair_that_cannot_work_is_refused():
    with pytest.raises(IncompatibleError, match="intercept"):
        bmrm.fit([[1.0], [2.0]], [0, 1], loss="roc_area", regularizer=bmrm.L2(1.0), bias="free")


class Absolute:
    """|w - 3|: with lambda/2 w^2 the minimum is at min(3, 1 / lambda)."""

    dim, infimum = 1, 0.0

    def value_and_subgradient(self, w):
        return abs(w[0] - 3.0), np.sign(w - 3.0)


def test_a_custom_risk_needs_three_names_only():
    solution = bmrm.minimize(Absolute(), bmrm.L2(0.5), tolerance=1e-9)
    assert solution.converged
    assert solution.objective == pytest.approx(0.25 * 4 + 1.0, rel=1e-8)
    assert solution.lower_bound <= 2.0 + 1e-12
    start = np.array([7.0])
    assert bmrm.minimize(Absolute(), bmrm.L2(0.5), "bundle", start=start, tolerance=1e-9).converged
    assert start[0] == 7.0


def test_importing_the_package_imports_nothing_heavy_and_names_are_all_there():
    code = """
import sys
import bmrm
heavy = {"numpy", "numba", "scipy", "sklearn", "mpi4py", "matplotlib", "pydantic", "rich"} & set(sys.modules)
assert not heavy, heavy
assert all(getattr(bmrm, name) is not None for name in bmrm.__all__)
assert "mpi4py" not in sys.modules
assert "fit" in dir(bmrm)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'fti'"):
        bmrm.fti  # noqa: B018


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"loss": {"name": "logistic", "class_weight": "balanced"}},
            "has no option 'class_weight'; it is an argument of its own",
        ),
        ({"regularizer": {"name": "l2", "C": 1.0}}, "has no option 'C'; use lam: 1 / "),
        ({"loss_options": {"delta": 2.0}}, r"'loss_options'; use loss=\{'name': ..., option: value\}"),
        ({"regularizer_kwargs": {}}, r"'regularizer_kwargs'; use regularizer=\{'name': ..., option: value\}"),
        ({"solver_params": {"memory": 5}}, "'solver_params'; use solver_options"),
        ({"regularizer": bmrm.L2(1.0), "lam": 1.0}, r"expected lam in L2\("),
    ],
)
def test_python_is_answered_in_words_of_python(numbers, given, said):
    with pytest.raises(InputError, match=said):
        bmrm.fit(*numbers, **given)
