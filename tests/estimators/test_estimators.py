"""Parameters, attributes and warnings of the estimators."""

import importlib
import os
import pickle
import re
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
import sklearn
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bmrm
from bmrm.estimators import (
    Classifier,
    MultilabelClassifier,
    NoveltyDetector,
    OrdinalClassifier,
    Ranker,
    Regressor,
)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def queries():
    """(X, grades, groups): 40 queries of 10 rows, graded by a linear function."""
    random = np.random.default_rng(3)
    X, groups = random.normal(size=(400, 5)), np.repeat(np.arange(40), 10)
    level = X @ [1.0, -2.0, 0.5, 0.0, 0.0] + 0.3 * random.normal(size=400) + random.normal(size=40)[groups]
    grades = np.concatenate([np.argsort(np.argsort(level[groups == g])) // 3 for g in range(40)])
    return X, grades, groups


def test_the_import_loads_no_numba_and_names_are_at_the_top():
    code = "import sys, bmrm.estimators as e, bmrm; [getattr(e, n) for n in e.__all__]; print('numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"]
    assert bmrm.Classifier is Classifier
    assert bmrm.Ranker is Ranker


def test_the_certificate_is_among_the_attributes(cancer):
    model = Classifier(alpha=1e-3, tol=1e-6).fit(*cancer)
    engine = bmrm.fit(*cancer, loss="hinge", regularizer=bmrm.L2(1e-3), bias="free", tolerance=1e-6)
    assert model.solution_.objective == engine.solution.objective
    assert 0.0 <= model.dual_gap_ <= 1e-6 * model.solution_.objective
    assert model.lower_bound_ == pytest.approx(model.solution_.objective - model.dual_gap_)
    assert model.n_iter_ == engine.solution.iterations
    np.testing.assert_array_equal(model.coef_[0], engine.weights)
    np.testing.assert_array_equal(model.decision_function(cancer[0]), engine.decision_function(cancer[0]))


def test_the_loss_follows_the_classes():
    X, y = load_iris(return_X_y=True)
    assert Classifier("hinge", alpha=1e-2).fit(X, y).model_.loss.name == "multiclass_hinge"
    assert Classifier("logistic", alpha=1e-2).fit(X, y).model_.loss.name == "softmax"
    two = Classifier("softmax", alpha=1e-2).fit(X[:100], y[:100])
    assert two.coef_.shape == (1, 4)
    np.testing.assert_allclose(two.decision_function(X), (X @ two.coef_.T + two.intercept_)[:, 0])
    with pytest.raises(ValueError, match=r"squared_hinge: Only binary.*y has 3 classes.*one_vs_rest"):
        Classifier("squared_hinge").fit(X, y)


def test_losses_of_the_whole_sample(cancer):
    X, y = cancer
    area = Classifier("roc_area", alpha=1e-3).fit(X, y)
    assert area.intercept_ == [0.0]  # it only ranks
    assert roc_auc_score(y, area.decision_function(X)) > 0.99
    with pytest.raises(ValueError, match="gives weights no meaning"):
        Classifier("f_beta", alpha=1e-2).fit(X, y, np.arange(len(y)) + 1.0)


def test_a_loss_of_the_users_own(cancer):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Squared(bmrm.MarginLoss):
        def value(self, f, y):
            return 0.5 * (1.0 - y * f) ** 2

        def slope(self, f, y):
            return -y * (1.0 - y * f)

    X, y = cancer
    ours = Classifier(Squared(), alpha=1e-2, tol=1e-10).fit(X, y)
    numbers = Regressor(alpha=1e-2, tol=1e-10).fit(X, np.where(y == 1, 1.0, -1.0))
    np.testing.assert_allclose(ours.coef_[0], numbers.coef_, atol=1e-4)


def test_probabilities_only_where_the_loss_has_them(cancer):
    assert not hasattr(Classifier("hinge").fit(*cancer), "predict_proba")
    logistic = Classifier("logistic", alpha=1e-3).fit(*cancer)
    p = logistic.predict_proba(cancer[0])
    np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-logistic.decision_function(cancer[0]))), rtol=1e-12)
    far = logistic.model_.loss.probabilities(np.array([-800.0, 800.0]))
    np.testing.assert_array_equal(far, [[1.0, 0.0], [0.0, 1.0]])


def test_an_early_end_is_a_warning_with_the_gap(cancer):
    with pytest.warns(ConvergenceWarning, match=r"ITERATION_LIMIT.*relative gap of .*raise max_iter"):
        early = Classifier(max_iter=1, tol=1e-10).fit(*cancer)
    assert early.dual_gap_ > 0.0
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        Classifier(time_limit=1e-9, tol=1e-10).fit(*cancer)


def test_a_warm_start_goes_on_from_the_last_model(cancer):
    X, y = cancer
    model = Classifier("logistic", solver="lbfgs", alpha=1e-4, tol=1e-6, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    with pytest.raises(ValueError, match="features"):
        model.fit(X[:, :3], y)


WRONG = {
    "loss": (Classifier("hing"), "did you mean 'hinge'"),
    "task": (Classifier("least_squares"), "another task, expected one of .*hinge"),
    "class": (Classifier(bmrm.MarginLoss), "the class MarginLoss"),
    "alpha": (Classifier(alpha=-1.0), r"alpha is -1.0, expected a number >= 0"),
    "text": (Classifier(alpha="much"), "alpha is 'much', expected a number"),
    "ratio": (Regressor(l1_ratio=2), "l1_ratio is 2, expected a number >= 0 and <= 1"),
    "iterations": (Classifier(max_iter=0), "max_iter is 0"),
    "both": (Classifier(regularizer=bmrm.L1(1e-3), alpha=1e-2), "alpha is 0.01 beside a regularizer"),
    "solver": (Classifier(solver="bundel"), "did you mean 'bundle'"),
    "solver's own": (Classifier(solver={"name": "bundle", "tolerance": 0.1}, tol=1e-2), "tol is 0.01 beside a solver"),
    "threads": (Classifier(threads=0), "threads is 0"),
    "ranks": (OrdinalClassifier("ordinal"), "expected one of ordinal_thresholds"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused_in_one_sentence(cancer, what):
    estimator, words = WRONG[what]
    with pytest.raises(ValueError, match=words) as caught:
        estimator.fit(*cancer)
    assert "\n" not in str(caught.value)


def test_regularizers_and_solvers_in_every_form(cancer):
    X, y = cancer
    plain = Classifier("logistic", alpha=1e-2, l1_ratio=1.0, tol=1e-9).fit(X, y)
    for other in (
        Classifier("logistic", regularizer=bmrm.L1(1e-2), tol=1e-9),
        Classifier("logistic", regularizer={"name": "l1", "lambda": 1e-2}, tol=1e-9),
        Classifier("logistic", regularizer=bmrm.L1(1e-2), solver={"name": "proximal_newton", "tolerance": 1e-9}),
    ):
        np.testing.assert_allclose(other.fit(X, y).coef_, plain.coef_, atol=1e-6)
    assert Classifier(regularizer="l2").fit(X, y).model_.header["regularizer"]["lambda"] == pytest.approx(1 / len(y))
    from bmrm.solvers.bundle import Bundle

    assert Classifier(alpha=1e-2, solver=Bundle(tolerance=1e-2)).fit(X, y).solution_.relative_gap <= 1e-2


def test_a_solver_without_free_intercepts_is_told_so(cancer):
    with pytest.raises(bmrm.IncompatibleError, match=r"pegasos draws rows.*fit_intercept=False"):
        Classifier(solver="pegasos").fit(*cancer)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_random_state_seeds_the_solver(cancer):
    def coef(state):
        solver = {"name": "dual_coordinate", "max_iterations": 3}
        return Classifier("logistic", alpha=1e-2, solver=solver, random_state=state).fit(*cancer).coef_

    assert np.array_equal(coef(1), coef(1))
    assert not np.array_equal(coef(1), coef(2))


def test_verbose_prints_the_bounds(cancer, capsys):
    Classifier(verbose=2).fit(*cancer)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        low, high = re.search(r": (\S+) <= min J <= (\S+)$", line).groups()
        assert float(low) <= float(high)


def test_numbers_of_numpy_are_as_those_of_python(cancer, tmp_path):
    model = Classifier(alpha=np.float32(1e-2), l1_ratio=np.int64(0), max_iter=np.int64(50_000)).fit(*cancer)
    model.model_.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match=r"alpha is -1\.0"):
        Classifier(alpha=np.float32(-1.0)).fit(*cancer)


def test_ctrl_c_ends_the_fit(cancer):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Interrupted(bmrm.MarginLoss):
        def value(self, f, y):
            if np.any(f):
                os.kill(os.getpid(), signal.SIGINT)
            return np.maximum(0.0, 1.0 - y * f)

        def slope(self, f, y):
            return np.where(y * f < 1.0, -y, 0.0)

    with pytest.raises(KeyboardInterrupt):
        Classifier(Interrupted(), solver="bundle", fit_intercept=False, tol=1e-9).fit(*cancer)


def test_clone_pickle_and_joblib(cancer, tmp_path):
    X, y = cancer
    model = Classifier("logistic", alpha=1e-2, regularizer=None).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    made = Classifier(model.model_.loss, regularizer=bmrm.L2(1e-2))
    np.testing.assert_array_equal(clone(made).fit(X, y).coef_, model.coef_)
    assert not hasattr(Classifier("hing"), "predict_proba")
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        assert copy.solution_.status is model.solution_.status
    model.model_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(bmrm.load_model(tmp_path / "model.npz").predict(X), model.predict(X))


def test_pipelines_and_grid_search(cancer):
    X, y = cancer
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Classifier()),
        {"classifier__alpha": [1e-4, 1e-2], "classifier__loss": ["hinge", "logistic"]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.95
    assert cross_val_score(Classifier("roc_area"), X, y, scoring="roc_auc", cv=3).min() > 0.97


@pytest.mark.parametrize("form", ["float32", "csr", "csc", "csr_array", "64 bits", "list", "fortran", "memory map"])
def test_rows_in_every_form(cancer, form, tmp_path):
    X, y = np.round(cancer[0], 1), cancer[1]
    np.save(tmp_path / "X.npy", X)
    wide = csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = {
        "float32": X.astype(np.float32),
        "csr": csc_matrix(X).tocsr(),
        "csc": csc_matrix(X),
        "csr_array": csr_array(X),
        "64 bits": wide,
        "list": X.tolist(),
        "fortran": np.asfortranarray(X),
        "memory map": np.load(tmp_path / "X.npy", mmap_mode="r"),
    }
    options = {"alpha": 1e-2, "tol": 1e-10}
    plain = Classifier("logistic", **options).fit(X, y)
    other = Classifier("logistic", **options).fit(forms[form], y)
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(other.decision_function(forms[form]), plain.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(cancer, library):
    frames = importlib.import_module(library)
    X, y = cancer[0][:, :3], np.array(["malignant", "benign"])[cancer[1]]
    frame, target = frames.DataFrame(dict(zip("abc", X.T))), frames.Series(y)
    model = Classifier(alpha=1e-2).fit(frame, target)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.model_.feature_names == ("a", "b", "c")
    assert list(model.classes_) == ["benign", "malignant"]
    np.testing.assert_array_equal(model.predict(frame), Classifier(alpha=1e-2).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("loss", ["ontology_hinge", "ontology_logistic"])
def test_classes_in_a_tree(loss):
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    edges = [("setosa", "iris"), ("large", "iris"), ("versicolor", "large"), ("virginica", "large")]
    model = Classifier({"name": loss, "edges": edges}, alpha=1e-2).fit(X, names)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    decision = model.decision_function(X)
    np.testing.assert_allclose(decision, X @ model.coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])
    engine = bmrm.fit(X, names, loss=model.model_.loss, regularizer=bmrm.L2(1e-2), bias="free", tolerance=1e-4)
    assert (engine.predict(X) == names).mean() == model.score(X, names) > 0.95
    weights = dict(zip(model.model_.labels, model.model_.weights.T))
    np.testing.assert_allclose(model.coef_[1], weights["versicolor"] + weights["large"] + weights["iris"])
    with pytest.raises(ValueError, match="no leaf of the tree"):
        clone(model).fit(X, np.where(names == "setosa", "large", names))
    search = GridSearchCV(model, {"alpha": [1e-3, 1e-2]}, cv=3).fit(X, names)
    assert search.best_score_ > 0.9


def test_sets_of_labels_are_for_the_multilabel_classifier():
    with pytest.raises(ValueError, match="loss multilabel_hinge is for another task"):
        Classifier("multilabel_hinge").fit(*load_iris(return_X_y=True))


def test_ranking(queries):
    X, y, groups = queries
    model = Ranker(alpha=1e-3).fit(X, y, groups=groups)
    scores = model.predict(X)
    assert model.coef_.shape == (5,)
    np.testing.assert_allclose(scores, X @ model.coef_)
    theirs = np.mean([ndcg_score([2.0 ** y[groups == g] - 1], [scores[groups == g]]) for g in range(40)])
    assert model.score(X, y, groups=groups) == pytest.approx(theirs)
    assert theirs > 0.95
    with pytest.raises(ValueError, match="no groups"):
        Ranker().fit(X, y)
    with pytest.raises(ValueError, match="expected no groups"):
        Ranker("ordinal").fit(X, y, groups=groups)
    names = np.char.add("query ", groups.astype(str))
    np.testing.assert_allclose(Ranker(alpha=1e-3).fit(X, y, groups=names).coef_, model.coef_)


def test_groups_are_routed(queries):
    X, y, groups = queries
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = Ranker().set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(make_pipeline(StandardScaler(), ranker), {"ranker__alpha": [1e-3, 1.0]}, cv=GroupKFold(4))
        search.fit(X, y, groups=groups)
    assert search.best_score_ > 0.9


def test_several_labels_a_row():
    X, Y = make_multilabel_classification(200, 8, n_classes=4, random_state=1)
    model = MultilabelClassifier(alpha=1e-3).fit(X, Y)
    assert model.coef_.shape == (4, 8)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.model_.predict(X))
    assert (model.predict(X) == Y).mean() > 0.7
    sparse = MultilabelClassifier(alpha=1e-3).fit(X, csr_array(Y)).predict(X)
    np.testing.assert_array_equal(sparse.toarray(), model.predict(X))


@pytest.mark.parametrize(("loss", "C"), [("logistic", 1.0), ("squared_hinge", 0.5)])
def test_a_problem_for_each_label_as_one_vs_rest_of_scikit_learn(loss, C):
    X, Y = make_multilabel_classification(200, 8, n_classes=4, random_state=1)
    own = MultilabelClassifier(loss, alpha=C / (10.0 * len(X)), tol=1e-10).fit(X, Y)
    one = LogisticRegression(C=10.0, tol=1e-10, max_iter=10_000) if loss == "logistic" else None
    if one is not None:
        peer = OneVsRestClassifier(one).fit(X, Y)
        np.testing.assert_allclose(own.predict_proba(X), peer.predict_proba(X), atol=1e-3)
        np.testing.assert_array_equal(own.predict(X), peer.predict(X))
    else:
        assert not hasattr(own, "predict_proba")
    for k in range(4):
        single = Classifier(loss, alpha=C / (10.0 * len(X)), tol=1e-10).fit(X, Y[:, k])
        np.testing.assert_allclose(own.decision_function(X)[:, k], single.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(own.decision_function(X), X @ own.coef_.T + own.intercept_, atol=1e-9)
    sparse = MultilabelClassifier(loss, alpha=C / (10.0 * len(X)), tol=1e-10).fit(X, csr_array(Y)).predict(X)
    np.testing.assert_array_equal(sparse.toarray(), own.predict(X))
    names = np.array(["a", "b", "c"])[Y[:, 0] + Y[:, 1]]
    several = MultilabelClassifier(loss, alpha=1e-3).fit(X, names)
    np.testing.assert_array_equal(several.predict(X), several.classes_[several.decision_function(X).argmax(axis=1)])
    if loss == "logistic":
        np.testing.assert_allclose(several.predict_proba(X).sum(axis=1), 1.0)


def test_several_labels_a_row_of_which_each_has_one_are_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    several = MultilabelClassifier(alpha=1e-2, tol=1e-8).fit(X, names)
    single = Classifier("multiclass_hinge", alpha=1e-2, tol=1e-8).fit(X, names)
    assert several.solution_.objective == pytest.approx(single.solution_.objective, rel=1e-6)
    assert list(several.classes_) == list(single.classes_)
    assert accuracy_score(single.predict(X), several.predict(X)) > 0.98


def test_grades():
    random = np.random.default_rng(4)
    X = random.normal(size=(300, 4))
    level = X @ [1.0, -1.0, 0.5, 0.0]
    y = np.digitize(level, [-1.0, 0.2, 1.3]) + 1
    model = OrdinalClassifier(alpha=1e-4).fit(X, y)
    assert list(model.classes_) == [1, 2, 3, 4]
    assert model.cut_points_.shape == (3,)
    assert np.all(np.diff(model.cut_points_) > 0.0)
    assert model.score(X, y) > 0.95
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict(X) - 1)
    np.testing.assert_array_equal(model.model_.predict(X), model.predict(X))
    text = np.array(["poor", "fair", "good", "best"])[y - 1]
    named = OrdinalClassifier(classes=["poor", "fair", "good", "best"], alpha=1e-4).fit(X, text)
    assert list(named.classes_) == ["poor", "fair", "good", "best"]
    np.testing.assert_array_equal(named.coef_, model.coef_)
    assert (named.predict(X) == text).mean() == named.score(X, text) == model.score(X, y)


def test_novelty():
    random = np.random.default_rng(5)
    X = np.vstack((random.normal([4.0, 4.0], 0.5, (100, 2)), [[0.1, 0.1], [-3.0, 1.0]]))
    model = NoveltyDetector({"name": "novelty", "rho": 2.0}, alpha=0.1).fit(X[:100])
    assert model.offset_ == 2.0
    assert list(model.predict(X[100:])) == [-1, -1]
    np.testing.assert_allclose(model.score_samples(X), X @ model.coef_[0])
    assert set(model.fit_predict(X)) == {-1, 1}


def test_a_subclass_of_a_users_keeps_its_parameters_or_names_its_own():
    class Described(bmrm.Classifier):
        coef_: np.ndarray  # an annotation makes no parameter

    class Own(bmrm.Classifier):
        def __init__(self, *, alpha=1.0, shrink=2.0):
            super().__init__("logistic", alpha=alpha)
            self.shrink = shrink

    assert Described()._get_param_names() == bmrm.Classifier._get_param_names()
    assert clone(Own(shrink=3.0)).get_params() == {"alpha": 1.0, "shrink": 3.0}
    assert Own().loss == "logistic"
