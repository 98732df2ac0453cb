"""The losses of rows against scikit-learn and LIBLINEAR: the same objective to 1e-6."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

SAME = 1e-6


def minimize(data, loss, lam, free=False, tolerance=1e-7, **options):
    risk = LinearRisk(data, LOSSES.make(loss, options))
    risk = FreeIntercept(risk) if free else risk
    solution = SOLVERS.make("auto", {"tolerance": tolerance}).minimize(risk, L2(lam))
    assert solution.converged
    return solution


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def agree(name, ours, peer):
    """Ours is no worse than the peer's point, and the bound says that the peer's is no better than ours."""
    print(f"{name}: ours / peer - 1 = {ours.objective / peer - 1.0:.1e}")
    assert ours.objective == pytest.approx(peer, rel=SAME)
    assert ours.lower_bound <= peer + 1e-12 * abs(peer)


@pytest.fixture(scope="module")
def diabetes():
    raw = read("sklearn:diabetes")
    return Dataset.from_arrays(standardized(raw.X), raw.targets.y)


def regression(shared_data, name):
    raw = read(shared_data / f"{name}.svm.xz")
    X = raw.X.to_scipy().toarray()
    return Dataset.from_arrays(standardized(X), raw.targets.y)


@pytest.mark.parametrize("epsilon", [1.1, 1.35, 2.0])
def test_huber_against_huber_regressor(diabetes, epsilon):
    """At the scale that `HuberRegressor` has found its weights minimise the Huber loss."""
    from sklearn.linear_model import HuberRegressor

    X, y, alpha = diabetes.X, diabetes.targets.y - diabetes.targets.y.mean(), 1.0
    peer = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=10000).fit(X, y)
    delta, lam = epsilon * peer.scale_, alpha * peer.scale_ / len(y)
    r = np.abs(X @ peer.coef_ - y)
    value = np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)).mean() + 0.5 * lam * peer.coef_ @ peer.coef_
    agree("huber", minimize(Dataset.from_arrays(X, y), "huber", lam, delta=delta), value)


def deviance_of(name, f, y, power):
    if name == "poisson":
        return np.exp(f) - y * f
    if name == "gamma":
        return f + y * np.exp(-f)
    return np.exp((2 - power) * f) / (2 - power) + y * np.exp((1 - power) * f) / (power - 1)


def counted(diabetes, name, power, alpha, free):
    from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

    options = {"alpha": alpha, "fit_intercept": free, "tol": 1e-10, "max_iter": 10000}
    peers = {"poisson": PoissonRegressor, "gamma": GammaRegressor}
    if name == "tweedie":
        peer = TweedieRegressor(power=power, link="log", **options)
    else:
        peer = peers[name](solver="newton-cholesky", **options)
    peer.fit(diabetes.X, diabetes.targets.y)
    f = diabetes.X @ peer.coef_ + peer.intercept_
    return deviance_of(name, f, diabetes.targets.y, power).mean() + 0.5 * alpha * peer.coef_ @ peer.coef_


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("name", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.3), ("tweedie", 1.7)])
def test_counts_against_scikit_learn(diabetes, name, power, free):
    data = Dataset.from_arrays(diabetes.X, np.floor(diabetes.targets.y / 10.0) + (name == "gamma"))
    options = {"power": power} if name == "tweedie" else {}
    peer = counted(data, name, power, 0.01, free)
    agree(name, minimize(data, name, 0.01, free, **options), peer)


@pytest.mark.shared_data
def test_poisson_against_scikit_learn_on_hourly_rentals(shared_data):
    import csv
    import lzma

    with lzma.open(shared_data / "bike_hour.csv.xz", "rt") as text:
        rows = list(csv.DictReader(text))
    names = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit", "temp", "hum", "windspeed")
    X = standardized(np.array([[float(row[name]) for name in names] for row in rows]))
    data = Dataset.from_arrays(X, np.array([float(row["cnt"]) for row in rows]))
    agree("poisson on bike_hour", minimize(data, "poisson", 1e-2, free=True), counted(data, "poisson", 1.0, 1e-2, True))


def multinomial(data, lam):
    from sklearn.linear_model import LogisticRegression

    X, y = data.X, data.targets.y
    X = X.to_scipy() if hasattr(X, "to_scipy") else X
    peer = LogisticRegression(C=1.0 / (lam * len(y)), fit_intercept=False, tol=1e-8, max_iter=10000).fit(X, y)
    f = X @ peer.coef_.T
    own = f[np.arange(len(y)), np.searchsorted(peer.classes_, y)]
    top = f.max(axis=1)
    losses = np.log(np.exp(f - top[:, None]).sum(axis=1)) + top - own
    return losses.mean() + 0.5 * lam * (peer.coef_**2).sum()


def test_softmax_and_a_flat_ontology_against_multinomial_logistic_regression():
    raw = read("sklearn:digits")
    data, lam = Dataset.from_arrays(raw.X[:600] / 16.0, raw.targets.y[:600]), 1e-3
    peer = multinomial(data, lam)
    agree("softmax", minimize(data, "softmax", lam), peer)
    edges = tuple((float(digit), 10.0) for digit in range(10))
    agree("ontology_logistic of depth 1", minimize(data, "ontology_logistic", lam, edges=edges), peer)


@pytest.mark.shared_data
def test_softmax_on_usps(shared_data):
    data, lam = read(shared_data / "usps.test.svm.xz"), 1e-3
    agree("softmax on usps", minimize(data, "softmax", lam), multinomial(data, lam))


def liblinear(data, flags):
    """(features, scores) weights of LIBLINEAR without a bias."""
    from liblinear.liblinearutil import train
    from scipy.sparse import csr_matrix

    X = csr_matrix(data.X.to_scipy() if hasattr(data.X, "to_scipy") else data.X)
    model = train(data.targets.y, X, f"{flags} -B -1 -q")
    count = 1 if model.get_nr_class() == 2 else model.get_nr_class()
    w = np.array(model.w[: X.shape[1] * count]).reshape(X.shape[1], count)
    order = np.argsort(model.get_labels()) if count > 1 else [0]
    return X, w[:, order]


def crammer_singer(data, lam):
    X, w = liblinear(data, f"-s 4 -c {1.0 / (lam * data.rows)} -e 1e-7")
    f = X @ w
    place = np.searchsorted(np.unique(data.targets.y), data.targets.y)
    own = f[np.arange(len(f)), place]
    reach = 1.0 + f - own[:, None]
    reach[np.arange(len(f)), place] = 0.0
    return reach.max(axis=1).mean() + 0.5 * lam * (w**2).sum()


def test_multiclass_hinge_against_liblinear():
    raw, lam = read("sklearn:digits"), 1e-2
    data = Dataset.from_arrays(raw.X / 16.0, raw.targets.y)
    peer = crammer_singer(data, lam)
    agree("multiclass_hinge", minimize(data, "multiclass_hinge", lam), peer)
    agree("scaled_multiclass_hinge, costs 0 and 1", minimize(data, "scaled_multiclass_hinge", lam), peer)


@pytest.mark.slow
@pytest.mark.shared_data
def test_multiclass_hinge_on_dna(shared_data):
    data, lam = read(shared_data / "dna.svm.xz"), 1e-2
    agree("multiclass_hinge on dna", minimize(data, "multiclass_hinge", lam), crammer_singer(data, lam))


@pytest.mark.shared_data
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("solver", [11, 13])
def test_support_vector_regression_against_liblinear(shared_data, solver, epsilon):
    data, lam = regression(shared_data, "space_ga"), 1e-2
    # LIBLINEAR has no factor 1/2 before the square
    C = {11: 0.5, 13: 1.0}[solver] / (lam * data.rows)
    X, w = liblinear(data, f"-s {solver} -c {C} -p {epsilon} -e {1e-10 if solver == 11 else 1e-8}")
    over = np.maximum(0.0, np.abs(X @ w[:, 0] - data.targets.y) - epsilon)
    losses, name = (0.5 * over**2, "squared_epsilon_insensitive") if solver == 11 else (over, "epsilon_insensitive")
    peer = losses.mean() + 0.5 * lam * w[:, 0] @ w[:, 0]
    agree(f"-s {solver}", minimize(data, name, lam, epsilon=epsilon), peer)


@pytest.mark.shared_data
def test_least_absolute_deviation_is_the_median_regression(shared_data):
    data, lam = regression(shared_data, "space_ga"), 1e-2
    twice = minimize(data, "quantile", lam / 2.0, tau=0.5)
    assert minimize(data, "least_absolute_deviation", lam).objective == pytest.approx(2.0 * twice.objective, rel=SAME)


def test_modified_huber_and_squared_hinge_against_liblinear_where_no_row_is_an_outlier():
    """With all margins above -1 both are LIBLINEAR's squared hinge (-s 2), up to the factor 2."""
    raw, lam = read("sklearn:breast_cancer"), 3.0
    y = np.where(raw.targets.y > 0, 1.0, -1.0)
    data = Dataset.from_arrays(standardized(raw.X), y)
    X, w = liblinear(data, f"-s 2 -c {1.0 / (lam * len(y))} -e 1e-10")
    margins = y * (X @ w[:, 0]) * np.sign((y * (X @ w[:, 0])).sum())
    assert margins.min() > -1.0
    peer = (np.maximum(0.0, 1.0 - margins) ** 2).mean() + 0.5 * lam * w[:, 0] @ w[:, 0]
    agree("modified_huber", minimize(data, "modified_huber", lam), peer)
    agree("squared_hinge", minimize(data, "squared_hinge", lam / 2.0), peer / 2.0)
