"""The same choice as other programs make, on the same folds: *Choosing lambda* of docs/coming-from.md."""

import numpy as np
import pycrfsuite
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

import bmrm
from bmrm.data.readers.conll import Conll, read_conll


def test_doubled_values_of_c_as_liblinear_tries_them():
    X, y = load_breast_cancer(return_X_y=True)
    X, folds = scale(X)[:400], StratifiedKFold(5, shuffle=True, random_state=1)
    y, m = y[:400], 320  # rows of a fold that are trained on
    values = 2.0 ** np.arange(-8.0, 6.0)
    program = LogisticRegression(solver="liblinear", fit_intercept=False, tol=1e-8, max_iter=10_000)
    theirs = GridSearchCV(program, {"C": values}, cv=folds, scoring="accuracy").fit(X, y)
    found = bmrm.cross_validate(
        X,
        y,
        loss="logistic",
        bias="none",
        lambdas=1.0 / (values * m),
        folds=folds,
        measures=["accuracy"],
        tolerance=1e-7,
        refit=False,
    )
    means = {trial.lam: np.mean(trial.by_fold["accuracy"]) for trial in found.trials}
    for c, mean in zip(values, theirs.cv_results_["mean_test_score"]):
        assert means[1.0 / (c * m)] == pytest.approx(mean, abs=1e-12)
    best = np.flatnonzero(theirs.cv_results_["mean_test_score"] >= theirs.best_score_ - 1e-12)
    assert found.lam == pytest.approx(1.0 / (values[best[0]] * m))  # the smallest C of those that are as good


@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_lambda_min_and_lambda_1se_of_glmnet(rule):
    """scikit-learn's LassoCV has the objective and the folds; one standard error is by glmnet's definition."""
    X, y = load_diabetes(return_X_y=True)
    X, folds = scale(X), KFold(10, shuffle=True, random_state=0)
    alphas = np.geomspace(50.0, 0.05, 40)
    theirs = LassoCV(alphas=alphas, cv=folds, tol=1e-10, max_iter=100_000).fit(X, y)
    means = theirs.mse_path_.mean(axis=1)
    errors = theirs.mse_path_.std(axis=1, ddof=1) / np.sqrt(10)
    least = int(np.argmin(means))
    expected = theirs.alphas_[least]
    if rule == "one_standard_error":
        expected = theirs.alphas_[means <= means[least] + errors[least]].max()
    found = bmrm.cross_validate(
        X,
        y,
        loss="least_squares",
        regularizer="l1",
        lambdas=alphas,
        folds=folds,
        measures=["mse"],
        choose=rule,
        tolerance=1e-8,
    )
    np.testing.assert_allclose([np.mean(trial.by_fold["mse"]) for trial in found.trials], means, rtol=1e-4)
    assert found.lam == pytest.approx(expected)


def test_c_of_svmrank_by_held_out_queries():
    """Pairs of documents as rows of scikit-learn's LIBLINEAR, Kendall's tau on held-out queries."""
    rng = np.random.default_rng(0)
    X, query = rng.standard_normal((240, 12)), np.repeat(np.arange(24), 10)
    y = np.digitize(X[:, 0] - X[:, 1] + 2.0 * rng.standard_normal(240), [-1.0, 1.5]).astype(float)
    folds, lambdas = GroupKFold(4), [1e-3, 1e-2, 1e-1, 1.0, 10.0]
    taus = np.zeros((len(lambdas), 4))
    for fold, (train, held) in enumerate(folds.split(X, y, query)):
        D, E = pairs(X, y, query, train), pairs(X, y, query, held)
        signs = np.tile([1, -1], len(D))[: len(D)]
        both = len(E) * len(np.unique(query[held])) * 45  # pairs of unequal y x pairs of unequal score
        for k, lam in enumerate(lambdas):
            svm = LinearSVC(loss="hinge", C=1.0 / (lam * len(D)), fit_intercept=False, tol=1e-8, max_iter=1_000_000)
            order = np.sign(E @ svm.fit(D * signs[:, None], signs).coef_[0])
            taus[k, fold] = order.sum() / np.sqrt(both)
    found = bmrm.cross_validate(
        X,
        y,
        groups=query,
        loss="rank_hinge",
        lambdas=lambdas,
        folds=folds,
        measures=["kendall_tau"],
        tolerance=1e-7,
        refit=False,
    )
    np.testing.assert_allclose([trial.by_fold["kendall_tau"] for trial in found.trials], taus, atol=0.01)
    assert found.lam == lambdas[int(np.argmax(taus.mean(axis=1)))]


def pairs(X, y, query, rows):
    """Differences of a better and a worse document of a query."""
    each = (rows[query[rows] == q] for q in np.unique(query[rows]))
    return np.array([X[a] - X[b] for which in each for a in which for b in which if y[a] > y[b]])


def test_c2_of_crfsuite_by_held_out_sentences(tmp_path):
    rng, lines = np.random.default_rng(4), []
    for _ in range(60):
        words = rng.integers(0, 12, size=int(rng.integers(2, 8)))
        lines += [f"w{w} t{w % 4} L{w % 3 if rng.random() < 0.7 else rng.integers(3)}\n" for w in words] + ["\n"]
    (tmp_path / "a.txt").write_text("".join(lines))
    data, vocabulary = read_conll(tmp_path / "a.txt", Conll(templates="w=%x[0,0]\nv=%x[0,1]"))
    sentence, y = data.targets.groups, data.targets.y
    folds, values = GroupKFold(3), [0.03, 0.3, 3.0, 30.0]
    X = data.X.to_scipy().tocsr()
    tokens = [[vocabulary.names[j] for j in sorted(row.indices)] for row in X]
    shares = np.zeros((len(values), 3))
    for fold, (train, held) in enumerate(folds.split(X, y, sentence)):
        for k, c2 in enumerate(values):
            tagged = crfsuite([(tokens, y, rows) for rows in (train, held)], sentence, c2, tmp_path)
            shares[k, fold] = np.mean(tagged == y[held])
    sentences = 40  # of a fold that are trained on
    lambdas = [2.0 * c2 / sentences for c2 in values]
    given = {"folds": folds, "measures": ["token_accuracy"], "tolerance": 1e-7, "refit": False}
    found = bmrm.cross_validate(data, loss="chain_crf", lambdas=lambdas, bias="none", **given)
    np.testing.assert_allclose([trial.by_fold["token_accuracy"] for trial in found.trials], shares, atol=0.02)
    assert found.lam == lambdas[int(np.argmax(shares.mean(axis=1)))]


def crfsuite(parts, sentence, c2, folder):
    """Labels of the second part by a model of the first."""
    (tokens, y, train), (_, _, held) = parts
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({"c1": 0.0, "c2": c2, "epsilon": 1e-6, "delta": 1e-9, "max_iterations": 2000} | every)
    for rows in (train[sentence[train] == s] for s in np.unique(sentence[train])):
        trainer.append([tokens[k] for k in rows], [str(y[k]) for k in rows])
    trainer.train(str(folder / "model.crf"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model.crf"))
    each = (held[sentence[held] == s] for s in np.unique(sentence[held]))
    return np.array([label for rows in each for label in tagger.tag([tokens[k] for k in rows])])
