"""The tables of docs/coming-from.md: each row gives the objective of the other program, at its minimum and elsewhere.

The lambda, the options and the objective are computed from the cells of the page. What a program minimises is written
here as a function of the weights, from its documentation; where the program can be imported it also trains, and its
minimum must be ours to 1e-6.
"""

import ctypes
import itertools
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
import yaml
from scipy.special import logsumexp, xlogy
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import bmrm

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
SAME = 1e-6


def tables():
    """(program, cells by heading) of every row of the page."""
    rows, program, head = [], "", []
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            program, head = line[3:], []
        if line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if head:
                rows.append((program, dict(zip(head, cells, strict=True))))
            else:
                head = cells
        if not line.startswith("|"):
            head = []
    return rows


ROWS = tables()


def plain(cell):
    return cell.strip("`")


def value(expression, names):
    """A cell that is a formula of the options, with numbers."""
    return eval(expression, {"__builtins__": {}}, dict(names))


def plug_in(cell, names):
    """`{name: huber, delta: epsilon * s}` with numbers."""
    section = yaml.safe_load(plain(cell))
    if isinstance(section, str):
        return {"name": section}
    return {
        key: value(text, names) if key != "name" and isinstance(text, str) and text != "queries" else text
        for key, text in section.items()
    }


# ---- what the programs minimise ----------------------------------------------------------------------------------


def logistic(f, y):
    return np.logaddexp(0.0, -y * f)


def hinge(f, y):
    return np.maximum(0.0, 1.0 - y * f)


def squared_hinge(f, y):
    return hinge(f, y) ** 2


def tube(f, y, p):
    return np.maximum(0.0, np.abs(f - y) - p)


def own(f, y):
    return f[np.arange(len(y)), y.astype(int)]


def crammer_singer(f, y):
    reach = 1.0 + f - own(f, y)[:, None]
    reach[np.arange(len(y)), y.astype(int)] = 0.0
    return reach.max(axis=1)


def cross_entropy(f, y):
    return logsumexp(f, axis=1) - own(f, y)


def pinball(f, y, tau):
    return np.where(y >= f, tau * (y - f), (1.0 - tau) * (f - y))


def half_square(w):
    return 0.5 * float(np.sum(w**2))


def size(w):
    return float(np.abs(w).sum())


@dataclass
class Case:
    """A problem of some program: its options, its objective at weights and intercept, and its minimum if it is here."""

    X: Any
    y: Any
    options: dict
    objective: Any
    minimum: float | None = None
    groups: Any = None
    scale: str = "none"

    @property
    def names(self):
        return {"m": len(self.y), **self.options}


# ---- data --------------------------------------------------------------------------------------------------------

TUMOURS, MALIGNANT = load_breast_cancer(return_X_y=True)
TUMOURS, SIGNS = scale(TUMOURS)[:, :12], np.where(MALIGNANT > 0, 1.0, -1.0)
FLOWERS, SPECIES = load_iris(return_X_y=True)
FLOWERS = np.column_stack((scale(FLOWERS), np.ones(len(FLOWERS))))
PATIENTS, PROGRESS = load_diabetes(return_X_y=True)
PATIENTS, PROGRESS = scale(PATIENTS), PROGRESS / 50.0
COUNTS = np.floor(PROGRESS * 2.0) + 1.0


# ---- LIBLINEAR ---------------------------------------------------------------------------------------------------


def liblinear_weights(X, y, flags):
    """Weights by class in ascending order, intercept (0 without), and rho of a one-class model."""
    from liblinear.liblinearutil import train
    from scipy.sparse import csr_matrix

    ctypes.CDLL(None).srand(1)  # its order of coordinates, and with it where it stops, comes from the C library
    model = train(y, csr_matrix(X), f"{flags} -q")
    labels = model.get_labels()
    several = len(labels) > 2
    count = len(labels) if several else 1
    table = np.array(model.w[: (X.shape[1] + (model.bias > 0)) * count]).reshape(-1, count)
    if several:
        table = table[:, np.argsort(labels)]
    elif labels and labels[0] < 0:
        table = -table
    w = table[: X.shape[1]]
    b = table[-1] if model.bias > 0 else np.zeros(count)
    return (w if several else w[:, 0]), (b if several else b[0]), model.rho


LIBLINEAR_LOSS = {0: logistic, 1: squared_hinge, 2: squared_hinge, 3: hinge, 4: crammer_singer, 5: squared_hinge}
LIBLINEAR_LOSS |= {6: logistic, 7: logistic}


def liblinear(option):
    flags = option.split()
    number, penalized = int(flags[1]), "-R" not in flags
    if number == 21:
        return one_class()
    if number in (11, 12, 13):
        X, y, options = PATIENTS, PROGRESS - PROGRESS.mean(), {"C": 0.05, "p": 0.3}
        power = 1 if number == 13 else 2

        def losses(f, y):
            return tube(f, y, 0.3) ** power

    else:
        X, y, options = (FLOWERS, SPECIES, {"C": 0.1}) if number == 4 else (TUMOURS, SIGNS, {"C": 0.01})
        losses = LIBLINEAR_LOSS[number]
    norm = size if number in (5, 6) else half_square

    def objective(w, b):
        penalty = norm(w) + (norm(np.atleast_1d(b)) if penalized else 0.0)
        return penalty + options["C"] * losses(X @ w + b, y).sum()

    more = f" -c {options['C']} -e {1e-10 if number in (0, 2, 11) else 1e-8} -p {options.get('p', 0)}"
    w, b, _ = liblinear_weights(X, y, option + more)
    return Case(X, y, options, objective, objective(w, b))


def one_class():
    X, nu = np.abs(FLOWERS), 0.3
    w, _, rho = liblinear_weights(X, np.ones(len(X)), f"-s 21 -n {nu} -e 1e-9")

    def objective(w, b):
        return half_square(w) + np.maximum(0.0, rho - X @ w).sum() - nu * len(X) * rho

    return Case(X, np.ones(len(X)), {"nu": nu, "rho": rho}, objective, objective(w, 0.0))


# ---- scikit-learn ------------------------------------------------------------------------------------------------


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    w, b = model.coef_, model.intercept_
    w = w.T if np.ndim(w) == 2 and w.shape[0] > 1 else np.ravel(w)
    return w, (b if np.size(b) > 1 else float(np.ravel(b)[0] if np.size(b) else 0.0))


def of_sklearn(model, X, y, options, objective):
    return Case(X, y, options, objective, objective(*fitted(model, X, y)))


def logistic_regression(C=0.05, l1_ratio=0.0, **options):
    def objective(w, b):
        penalty = l1_ratio * size(w) + (1.0 - l1_ratio) * half_square(w)
        return penalty + C * logistic(TUMOURS @ w + b, SIGNS).sum()

    solver = {0.0: "newton-cholesky", 1.0: "liblinear"}.get(l1_ratio, "saga")
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):  # l1_ratio had to be asked for
        options["penalty"] = {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet")
    model = linear_model.LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-9, max_iter=20000, solver=solver, **options)
    return of_sklearn(model, TUMOURS, SIGNS, {"C": C, "l1_ratio": l1_ratio}, objective)


def multinomial():
    def objective(w, b):
        return half_square(w) + 0.1 * cross_entropy(FLOWERS @ w, SPECIES).sum()

    model = linear_model.LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10, solver="newton-cg", max_iter=1000)
    return of_sklearn(model, FLOWERS, SPECIES, {"C": 0.1}, objective)


def linear_svc(losses, **options):
    def objective(w, b):
        return half_square(w) + 0.5 * b * b + 0.01 * losses(TUMOURS @ w + b, SIGNS).sum()

    model = svm.LinearSVC(C=0.01, tol=1e-9, max_iter=1_000_000, random_state=0, **options)
    return of_sklearn(model, TUMOURS, SIGNS, {"C": 0.01}, objective)


def crammer_singer_svc():
    def objective(w, b):
        return half_square(w) + 0.1 * crammer_singer(FLOWERS @ w, SPECIES).sum()

    more = {"multi_class": "crammer_singer", "fit_intercept": False, "max_iter": 1_000_000}
    model = svm.LinearSVC(C=0.1, tol=1e-9, random_state=0, **more)
    return of_sklearn(model, FLOWERS, SPECIES, {"C": 0.1}, objective)


def linear_svr():
    def objective(w, b):
        return half_square(w) + 0.5 * b * b + 0.05 * tube(PATIENTS @ w + b, PROGRESS, 0.3).sum()

    model = svm.LinearSVR(C=0.05, epsilon=0.3, tol=1e-9, max_iter=1_000_000, random_state=0)
    return of_sklearn(model, PATIENTS, PROGRESS, {"C": 0.05, "epsilon": 0.3}, objective)


def sgd():
    def objective(w, b):
        return 0.01 * half_square(w) + hinge(TUMOURS @ w + b, SIGNS).mean()

    return Case(TUMOURS, SIGNS, {"alpha": 0.01}, objective)


def ridge():
    def objective(w, b):
        return float(np.sum((PATIENTS @ w + b - PROGRESS) ** 2)) + 2.0 * 3.0 * half_square(w)

    return of_sklearn(linear_model.Ridge(alpha=3.0, tol=1e-12), PATIENTS, PROGRESS, {"alpha": 3.0}, objective)


def elastic_net(model, alpha, l1_ratio, family=None, scaled=True):
    def objective(w, b):
        penalty = alpha * (l1_ratio * size(w) + (1.0 - l1_ratio) * half_square(w))
        return 0.5 * np.mean((PATIENTS @ w + b - PROGRESS) ** 2) + penalty

    return of_sklearn(model, PATIENTS, PROGRESS, {"alpha": alpha, "l1_ratio": l1_ratio}, objective)


def quantile_regressor():
    def objective(w, b):
        return pinball(PATIENTS[:100] @ w + b, PROGRESS[:100], 0.8).mean() + 0.02 * size(w)

    options = {"quantile": 0.8, "alpha": 0.02}
    return of_sklearn(linear_model.QuantileRegressor(**options), PATIENTS[:100], PROGRESS[:100], options, objective)


def huber_regressor():
    epsilon, alpha, y = 1.35, 1.0, PROGRESS - PROGRESS.mean()
    more = {"fit_intercept": False, "tol": 1e-12, "max_iter": 10000}
    model = linear_model.HuberRegressor(epsilon=epsilon, alpha=alpha, **more).fit(PATIENTS, y)
    s = model.scale_

    def objective(w, b):
        z = np.abs(PATIENTS @ w - y) / s
        parts = s + s * np.where(z < epsilon, z**2, 2.0 * epsilon * z - epsilon**2)
        return parts.sum() + 2.0 * alpha * half_square(w)

    options = {"epsilon": epsilon, "alpha": alpha, "s": s}
    return Case(PATIENTS, y, options, objective, objective(model.coef_, 0.0))


def half_deviance(f, y, power):
    """Per row; 0 for a perfect fit."""
    mu = np.exp(f)
    if power == 1.0:
        return xlogy(y, y / mu) - y + mu
    if power == 2.0:
        return np.log(mu / y) + y / mu - 1.0
    a, b = 1.0 - power, 2.0 - power
    return y**b / (a * b) - y * mu**a / a + mu**b / b


def counted(model, power):
    perfect = half_deviance(np.log(COUNTS), COUNTS, power)
    assert np.abs(perfect).max() < 1e-9
    ours = {1.0: lambda f: np.exp(f) - COUNTS * f, 2.0: lambda f: f + COUNTS * np.exp(-f)}
    plain_loss = ours.get(
        power, lambda f: np.exp((2 - power) * f) / (2 - power) + COUNTS * np.exp((1 - power) * f) / (power - 1)
    )
    c = -float(plain_loss(np.log(COUNTS)).mean())

    def objective(w, b):
        return half_deviance(PATIENTS @ w + b, COUNTS, power).mean() + 0.05 * half_square(w)

    return of_sklearn(model, PATIENTS, COUNTS, {"alpha": 0.05, "power": power, "c": c}, objective)


COUNTED = {"alpha": 0.05, "tol": 1e-10, "max_iter": 10000}
SKLEARN = {
    "`LogisticRegression(C)`": lambda: logistic_regression(),
    "`LogisticRegression(C)`, several classes": multinomial,
    "`LogisticRegression(C, l1_ratio=1)`": lambda: logistic_regression(l1_ratio=1.0, fit_intercept=False),
    "`LogisticRegression(C, l1_ratio)`": lambda: logistic_regression(l1_ratio=0.4, fit_intercept=False),
    "`LinearSVC(C)`": lambda: linear_svc(squared_hinge),
    '`LinearSVC(C, loss="hinge")`': lambda: linear_svc(hinge, loss="hinge"),
    '`LinearSVC(C, multi_class="crammer_singer")`': crammer_singer_svc,
    "`LinearSVR(C, epsilon)`": linear_svr,
    "`SGDClassifier(alpha)`": sgd,
    "`Ridge(alpha)`": ridge,
    "`Lasso(alpha)`": lambda: elastic_net(linear_model.Lasso(alpha=0.1, tol=1e-12), 0.1, 1.0),
    "`ElasticNet(alpha, l1_ratio)`": lambda: elastic_net(
        linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12), 0.1, 0.3
    ),
    "`QuantileRegressor(quantile, alpha)`": quantile_regressor,
    "`HuberRegressor(epsilon, alpha)`": huber_regressor,
    "`PoissonRegressor(alpha)`": lambda: counted(
        linear_model.PoissonRegressor(solver="newton-cholesky", **COUNTED), 1.0
    ),
    "`GammaRegressor(alpha)`": lambda: counted(linear_model.GammaRegressor(solver="newton-cholesky", **COUNTED), 2.0),
    '`TweedieRegressor(power, alpha, link="log")`': lambda: counted(
        linear_model.TweedieRegressor(power=1.5, link="log", solver="newton-cholesky", **COUNTED), 1.5
    ),
}


# ---- SVMperf: losses in percent, labelings of the whole sample (Joachims 2005) ------------------------------------

FEW = np.concatenate((np.flatnonzero(SIGNS > 0)[:5], np.flatnonzero(SIGNS < 0)[:6]))
"""Rows whose labelings can be listed."""


def percent_off(kind, y, other):
    """100 minus the measure of the labeling `other`, in percent; None where the measure does not look at it."""
    both, said, true = np.sum((other > 0) & (y > 0)), np.sum(other > 0), np.sum(y > 0)
    if kind == "F1":
        return 100.0 - 200.0 * both / (said + true)
    if kind == "PRBEP":
        return 100.0 - 100.0 * both / true if said == true else None
    return 100.0 * np.mean(other != y)


def svm_perf(kind):
    X, y, C = TUMOURS[FEW], SIGNS[FEW], 0.02
    labelings = [np.array(signs) for signs in itertools.product((-1.0, 1.0), repeat=len(y))]

    def slack(f):
        """max over labelings of loss + w (Psi(labeling) - Psi(y)), Psi = 50/m sum of y x: a wrong row costs 100/m."""
        off = [(percent_off(kind, y, other), other) for other in labelings]
        return max(loss + 50.0 / len(y) * (other - y) @ f for loss, other in off if loss is not None)

    def pairs(f):
        return 100.0 * np.mean(np.maximum(0.0, 1.0 - (f[y > 0][:, None] - f[y < 0][None, :])))

    def objective(w, b):
        f = X @ w + b
        return half_square(w) + 0.5 * b * b + C * (pairs(f) if kind == "ROC area" else slack(f))

    return Case(X, y, {"C": C}, objective)


# ---- SVMrank: C/n times the pairs of all queries, or their share in each ------------------------------------------


def svm_rank(option):
    random, C, n = np.random.default_rng(5), 0.3, 8
    groups = np.repeat(np.arange(n), random.integers(4, 9, size=n))
    X, y = random.normal(size=(len(groups), 4)), random.integers(3, size=len(groups)).astype(float)
    pairs = [
        [(i, j) for i, j in itertools.product(np.flatnonzero(groups == q), repeat=2) if y[i] > y[j]] for q in range(n)
    ]
    assert all(pairs)

    def objective(w, b):
        f = X @ w
        sums = [sum(max(0.0, 1.0 - (f[i] - f[j])) for i, j in query) for query in pairs]
        if option == "-l 2":
            sums = [total / len(query) for total, query in zip(sums, pairs, strict=True)]
        return half_square(w) + C / n * sum(sums)

    return Case(X, y, {"C": C, "n": n, "P": sum(map(len, pairs))}, objective, groups=groups)


# ---- CRFsuite ----------------------------------------------------------------------------------------------------


def crf_suite(c1, c2):
    import pycrfsuite

    random = np.random.default_rng(1)
    lengths = random.integers(2, 6, size=40)
    groups = np.repeat(np.arange(40), lengths)
    X = (random.random((len(groups), 6)) < 0.4).astype(float)
    y = (X @ [1.0, 2.0, 0.0, 1.0, 0.0, 0.5] + random.normal(size=len(groups))).round().astype(int) % 3
    sequences = [np.flatnonzero(groups == k) for k in range(40)]
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for rows in sequences:
        trainer.append([[f"a{j}" for j in np.flatnonzero(X[row])] for row in rows], [str(y[row]) for row in rows])
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    more = {"epsilon": 1e-9, "delta": 1e-13, "max_iterations": 5000}
    trainer.set_params({"c1": c1, "c2": c2, **every, **more})

    def objective(w, b, transitions):
        f, total = X @ w, c1 * (size(w) + size(transitions)) + 2.0 * c2 * (half_square(w) + half_square(transitions))
        for rows in sequences:
            scores = [
                sum(f[row, label] for row, label in zip(rows, labels))
                + sum(transitions[a, b] for a, b in itertools.pairwise(labels))
                for labels in itertools.product(range(3), repeat=len(rows))
            ]
            right = y[rows]
            score = f[rows, right].sum() + sum(transitions[a, b] for a, b in itertools.pairwise(right))
            total += logsumexp(scores) - score
        return total

    def minimum(folder):
        trainer.train(str(folder / "model.crf"))
        return trainer.logparser.last_iteration["loss"]

    return Case(X, y, {"c1": c1, "c2": c2, "n": 40}, objective, minimum, groups=groups)


CRFSUITE = {
    "`-a lbfgs`, c1 = 0": lambda: crf_suite(0.0, 0.3),
    "`-a lbfgs`, c2 = 0": lambda: crf_suite(0.2, 0.0),
    "`-a lbfgs`": lambda: crf_suite(0.2, 0.3),
}


# ---- glmnet, Vowpal Wabbit: formulas of their documentation -------------------------------------------------------

DATA_OF = {"gaussian": (PATIENTS, PROGRESS), "binomial": (TUMOURS, SIGNS), "multinomial": (FLOWERS, SPECIES)}
DATA_OF |= {"poisson": (PATIENTS, COUNTS)}
NEGATIVE_LOG_LIKELIHOOD = {
    "gaussian": lambda f, y: 0.5 * (f - y) ** 2,
    "binomial": logistic,
    "multinomial": cross_entropy,
    "poisson": lambda f, y: np.exp(f) - y * f,
}


def glmnet(option):
    family = option.split('"')[1]
    found = re.search(r"alpha = (\d)", option)
    alpha, lam = (0.3 if found is None else float(found[1])), 0.05
    X, y = DATA_OF[family]

    def objective(w, b):
        losses = NEGATIVE_LOG_LIKELIHOOD[family](X @ w + b, y)
        return losses.mean() + lam * ((1.0 - alpha) * half_square(w) + alpha * size(w))

    return Case(X, y, {"lam": lam, "alpha": alpha}, objective)


def vowpal_wabbit(option):
    kind = re.search(r"--loss_function (\w+)", option)[1]
    X, y = (PATIENTS, PROGRESS) if kind in ("squared", "quantile") else (TUMOURS, SIGNS)
    per_example = {
        "logistic": logistic,
        "hinge": hinge,
        "squared": lambda f, y: (f - y) ** 2,
        "quantile": lambda f, y: pinball(f, y, 0.7),
    }[kind]
    strength, norm = 0.02, size if option.endswith("--l1") else half_square

    def objective(w, b):
        losses = per_example(X @ w, y)
        return losses.sum() + strength * norm(w) if "--bfgs" in option else (losses + strength * norm(w)).mean()

    return Case(X, y, {"l1": strength, "l2": strength, "t": 0.7}, objective)


PROGRAMS = {
    "LIBLINEAR": lambda option: liblinear(plain(option)),
    "scikit-learn": lambda option: SKLEARN[option](),
    "SVMperf": lambda option: svm_perf(re.search(r"\((.*)\)", option)[1]),
    "SVMrank": lambda option: svm_rank(plain(option)),
    "CRFsuite": lambda option: CRFSUITE[option](),
    "glmnet": lambda option: glmnet(plain(option)),
    "Vowpal Wabbit": lambda option: vowpal_wabbit(plain(option)),
}
SOLVED = [(program, row) for program, row in ROWS if program in PROGRAMS]


def ours(case, row, tolerance):
    """Our model by the cells of a row, and its objective in the terms of the other program."""
    names = case.names
    regularizer = plug_in(row["regularizer"], names) | {"lambda": value(plain(row["lambda"]), names)}
    loss, bias = plug_in(row["loss"], names), plain(row["intercept"])
    model = bmrm.fit(
        case.X, case.y, loss=loss, regularizer=regularizer, bias=bias, groups=case.groups, tolerance=tolerance
    )
    return model, value(plain(row["objective there"]), names | {"J": model.solution.objective})


def at(case, model):
    """The other program's objective at our weights."""
    b = model.intercept if model.weights.ndim == 2 else float(model.intercept[0])
    return float(case.objective(model.weights, b, *model.arrays.values()))


@pytest.mark.parametrize(
    ("program", "row"), SOLVED, ids=[f"{program} {plain(row['option'])}" for program, row in SOLVED]
)
def test_equal_settings_give_equal_objectives(program, row, tmp_path):
    case = PROGRAMS[program](row["option"])
    rough, there = ours(case, row, 0.3)
    assert there == pytest.approx(at(case, rough), rel=1e-9), "far from the minimum it is the same function"
    model, there = ours(case, row, 1e-8)
    assert model.solution.converged
    assert there == pytest.approx(at(case, model), rel=1e-9)
    if case.minimum is not None:
        minimum = case.minimum(tmp_path) if callable(case.minimum) else case.minimum
        assert there == pytest.approx(minimum, rel=SAME)


def test_standardized_features_are_those_of_standard_scaler():
    """Standard deviations with 1/m, the penalty on the scaled weights: glmnet's default, and a pipeline's."""
    X = load_diabetes(scaled=False)["data"]
    peer = linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12).fit(scale(X), PROGRESS)
    regularizer = {"name": "elastic_net", "lambda": 0.1, "l1_ratio": 0.3}
    options = {"bias": "free", "scale": "standardize", "tolerance": 1e-9}
    model = bmrm.fit(X, PROGRESS, loss="least_squares", regularizer=regularizer, **options)
    np.testing.assert_allclose(model.weights * X.std(axis=0), peer.coef_, atol=1e-4)


def test_sample_weights_take_the_place_of_the_rows():
    weights = np.where(SIGNS > 0, 2.0, 0.5)
    peer = linear_model.LogisticRegression(C=0.05, tol=1e-10, solver="newton-cholesky", fit_intercept=False)
    w = peer.fit(TUMOURS, SIGNS, sample_weight=weights).coef_[0]
    there = half_square(w) + 0.05 * weights @ logistic(TUMOURS @ w, SIGNS)
    lam = 1.0 / (0.05 * weights.sum())
    options = {"sample_weight": weights, "bias": "none", "tolerance": 1e-8}
    model = bmrm.fit(TUMOURS, SIGNS, loss="logistic", regularizer=bmrm.L2(lam), **options)
    assert model.solution.objective / lam == pytest.approx(there, rel=SAME)


LIGHTGBM = [row for program, row in ROWS if program == "LightGBM"]


@pytest.mark.parametrize("row", LIGHTGBM, ids=[plain(row["objective"]) for row in LIGHTGBM])
def test_metrics_of_lightgbm_are_means_of_our_losses(row):
    """At scores that are given: a round of trees that changes nothing."""
    import lightgbm

    name, options = plain(row["objective"]), {"alpha": 0.7, "rho": 1.4}
    X, y = {"binary": (TUMOURS, MALIGNANT), "multiclass": (FLOWERS, SPECIES)}.get(name, (PATIENTS, COUNTS))
    random = np.random.default_rng(0)
    f = random.normal(size=(len(y), 3) if name == "multiclass" else len(y))
    data = lightgbm.Dataset(X, y.astype(float), init_score=f)
    given = {"objective": name, "metric": plain(row["metric"]), "learning_rate": 1e-12, "verbosity": -1}
    given |= {"alpha": 0.7, "tweedie_variance_power": 1.4, "num_threads": 1, "boost_from_average": False}
    if name == "multiclass":
        given["num_class"] = 3
    seen: dict = {}
    lightgbm.train(given, data, 1, [data], ["train"], callbacks=[lightgbm.record_evaluation(seen)])
    loss = plug_in(row["loss"], options)
    from bmrm.data.dataset import Dataset
    from bmrm.losses import LOSSES
    from bmrm.risk.linear import LinearRisk

    made = LOSSES.make(loss.pop("name"), loss)
    columns = f if f.ndim == 2 else f[:, None]
    risk = LinearRisk(Dataset.from_arrays(columns, y), made)  # features that are the scores, weights of 1
    R = risk.value_and_subgradient(np.eye(columns.shape[1]).ravel())[0]
    assert seen["train"][plain(row["metric"])][0] == pytest.approx(
        value(plain(row["metric there"]), {"R": R}), rel=SAME
    )


def test_every_table_of_the_page_is_tested():
    assert {program for program, _ in ROWS} == {*PROGRAMS, "LightGBM"}
    assert len(ROWS) > 55
