"""Features far from 0 beside a free intercept give the model of the same features centred by hand."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import bmrm
from bmrm.app.pipeline.folding import as_folded, unfolded, without_common
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Solution, Status
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

RNG = np.random.default_rng(0)
NEAR = RNG.normal(size=(200, 3))
SIGNS = np.where(NEAR[:, 0] + RNG.normal(size=200) > 0.0, 1, -1)
TARGETS = {
    "squared_hinge": SIGNS,
    "hinge": SIGNS,
    "logistic": SIGNS,
    "least_squares": NEAR[:, 0],
    "quantile": NEAR[:, 0],
    "softmax": np.digitize(NEAR[:, 0], [-0.5, 0.5]),
}
PLACES = {"huge": (1.7e18, 1e14), "near": (1e8, 1.0), "far": (-(2.0**43), 1.0)}


def exact(numbers):
    """As fractions, of which sums and products are exact."""
    return np.vectorize(Fraction, otypes=[object])(numbers)


def shifted(place):
    middle, spread = PLACES[place]
    X = NEAR.copy()
    X[:, 2] = middle + spread * X[:, 2]
    by_hand = X.copy()
    by_hand[:, 2] -= middle
    return X, by_hand


CASES = [
    (loss, place)
    for loss in TARGETS
    for place in PLACES
    if (loss, place) not in {("softmax", "huge"), ("quantile", "huge")}
]


def test_where_rounding_of_a_huge_column_leaves_no_bound_its_name_is_said():
    """An exact fit, J = .0005: the bound has the square of a sum over a column of 1e14, whose rounding is .01."""
    X, by_hand = shifted("huge")
    given = {"loss": "quantile", "lam": 1e-3, "bias": "free", "tolerance": 1e-4}
    found, expected = bmrm.fit(X, TARGETS["quantile"], **given), bmrm.fit(by_hand, TARGETS["quantile"], **given)
    assert found.solution.objective == pytest.approx(expected.solution.objective, rel=1e-3)
    assert found.solution.lower_bound <= found.solution.objective
    if found.solution.status is not bmrm.Status.CONVERGED:
        assert found.solution.status is bmrm.Status.STALLED
        assert "feature 2 lies around 1.7e+18" in found.solution.message


@pytest.mark.parametrize(("loss", "place"), CASES)
def test_the_model_is_that_of_centred_features(loss, place):
    X, by_hand = shifted(place)
    given = {"loss": loss, "lam": 1e-3, "bias": "free", "tolerance": 1e-4 if place == "huge" else 1e-7}
    found = bmrm.fit(X, TARGETS[loss], **given)
    expected = bmrm.fit(by_hand, TARGETS[loss], **given)
    assert found.solution.status is bmrm.Status.CONVERGED
    assert found.solution.relative_gap <= given["tolerance"]
    assert found.solution.objective == pytest.approx(expected.solution.objective, rel=10.0 * given["tolerance"])
    if place == "huge":  # a weight of 1e-14 counts for nothing in the objective of the others
        return
    np.testing.assert_allclose(found.weights, expected.weights, rtol=2e-2, atol=2e-3 * np.abs(expected.weights).max())


@pytest.mark.parametrize(
    "store", [np.asarray, csr_array, lambda X: X.astype(np.float32)], ids=["dense", "csr", "float32"]
)
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "bundle", "dual_coordinate", "newton"])
def test_every_solver_and_way_to_store(solver, store):
    X = NEAR.copy()
    X[:, 2] = 2.0**20 + np.round(X[:, 2] * 64.0) / 8.0
    given = {"loss": "logistic", "lam": 1e-2, "bias": "free", "tolerance": 1e-5, "solver": solver}
    found = bmrm.fit(store(X), SIGNS, **given)
    X[:, 2] -= 2.0**20
    expected = bmrm.fit(X, SIGNS, **given)
    assert found.solution.status is bmrm.Status.CONVERGED
    assert found.solution.objective == pytest.approx(expected.solution.objective, rel=2e-5)
    scores = found.decision_function(store(X + np.array([0.0, 0.0, 2.0**20])))
    np.testing.assert_allclose(scores, expected.decision_function(X), atol=3e-2)


def test_a_column_that_is_not_stored_everywhere_stays_and_so_do_constants_near_0():
    X = np.zeros((100, 3))
    X[:, 0], X[::2, 1], X[:, 2] = 1.0, 1e9, RNG.normal(size=100)
    y = np.where(X[:, 2] > 0.0, 1, -1)
    found = bmrm.fit(csr_array(X), y, loss="logistic", lam=1e-2, bias="free", scale="none")
    assert found.solution.status is bmrm.Status.CONVERGED
    assert found.intercept[0] != 0.0


def test_without_a_free_intercept_a_run_that_stalls_names_the_feature():
    X, _ = shifted("huge")
    found = bmrm.fit(X, SIGNS, loss="squared_hinge", lam=1e-3, bias="none")
    if found.solution.status is not bmrm.Status.CONVERGED:
        assert "feature 2 lies around 1.7e+18" in found.solution.message
        assert "take scale: standardize" in found.solution.message
    better = bmrm.fit(X, SIGNS, loss="squared_hinge", lam=1e-3, bias="none", scale="standardize")
    assert better.solution.status is bmrm.Status.CONVERGED


def test_beside_a_free_intercept_too():
    X, _ = shifted("huge")
    found = bmrm.fit(X, TARGETS["softmax"], loss="softmax", lam=1e-3, bias="free", max_iterations=2)
    assert found.solution.status is bmrm.Status.ITERATION_LIMIT
    assert "feature 2 lies around 1.7e+18; it is centred, but not scaled" in found.solution.message


@pytest.mark.parametrize("iterations", [3, 6, 9])
def test_no_objective_is_less_than_that_of_the_model(iterations):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = np.digitize(X @ [1.0, -0.5, 0.3] + rng.normal(size=30), [-0.6, 0.6])
    X[:, 1] = 1.7e18 + 1e14 * X[:, 1]
    found = bmrm.fit(X, y, loss="softmax", lam=1e-2, bias="free", tolerance=1e-6, max_iterations=iterations)
    f = exact(X) @ exact(found.weights) + exact(found.intercept)
    f = (f - f[np.arange(30), y][:, None]).astype(float)
    value = np.mean(np.log(np.exp(f).sum(axis=1))) + 0.5e-2 * np.sum(found.weights**2)
    assert found.solution.objective == pytest.approx(value, rel=1e-9)


def test_a_gap_that_rounding_of_the_intercept_opens_is_told():
    X = np.array([[-1.0], [1.0], [2.0]])
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(X, [-1.0, 1.0, 2.0]), LOSSES.make("least_squares")))
    w, omega, shift = np.ones(1), 0.5e-2, np.array([1e18])
    solution = Solution(w, omega, omega, Status.CONVERGED, 1, 1.0, 0.1)
    for rounded, status in ((-1e18, Status.CONVERGED), (-1e18 + 128.0, Status.STALLED)):
        found = as_folded(solution, risk, omega, np.array([rounded]), w, shift, SOLVERS.make("lbfgs"))
        assert found.status is status
        assert found.objective == omega + 0.5 * (1e18 + rounded) ** 2


def test_what_was_moved_is_moved_back_exactly():
    rng = np.random.default_rng(5)
    weights, shift = rng.normal(size=(4, 2)), np.array([1e18, 0.0, -3e7, 1.0 / 3.0])
    folded = -shift @ weights
    exactly = exact(folded) + exact(shift) @ exact(weights)
    np.testing.assert_array_equal(unfolded(folded, weights, shift), exactly.astype(float))


def test_without_the_common_part_the_constants_are_those_of_the_objective():
    # A run has met others, with the same weights, that are worse by less than searches tell apart.
    classes, omega = TARGETS["softmax"], L2(0.1)
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(NEAR, classes), LOSSES.make("weston_watkins")))
    rng = np.random.default_rng(5)
    table = rng.normal(size=(3, 3))
    w = (table - table.mean(axis=1, keepdims=True)).ravel()
    scores, phi = risk.map.matvec(w), risk.phi.phi

    def objective(b):
        return phi.value_and_slope(scores + phi.constant(b))[0] + omega.value(w)

    _, best = risk.phi.attained(scores)
    ways = (best + 10.0**-k * rng.normal(size=3) for k in range(10, 16) for _ in range(20))
    worse = next(b for b in ways if 1e-14 < objective(b) / objective(best) - 1.0 < 9e-13)
    risk.settled.note(w, worse, objective(worse))
    found = without_common(Solution(w, objective(worse), 0.0, Status.CONVERGED, 0, 0.0, 0.0), risk, omega, 3)
    assert objective(risk.settled.of(found.w, found.objective)) <= found.objective * (1.0 + 1e-15)
