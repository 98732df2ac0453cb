"""The ability DualBlocks: every state is a feasible dual point, however the features are stored and scaled."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.data import matrix
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr, features, part_of
from bmrm.losses import LOSSES
from bmrm.problem import Scored, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.dual import stored as dual_stored
from bmrm.risk.dual.stored import stored_rows
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products import Columns
from bmrm.solvers._core.certificate import plane_bound
from bmrm.solvers.line_search_bundle import LineSearchBundle

ROWS, FEATURES = 90, 6
L1_, L2_ = 0.01, 0.05
SCALED = Columns(np.linspace(0.5, 2.0, FEATURES), np.linspace(-0.4, 0.6, FEATURES))


def data(loss="hinge", seed=0, ones=False):
    random = np.random.default_rng(seed)
    X = np.where(random.random((ROWS, FEATURES)) < 0.6, random.normal(size=(ROWS, FEATURES)), 0.0)
    X[4] = 0.0
    y = X @ random.normal(size=FEATURES) + 0.5 * random.normal(size=ROWS) + 0.3
    if ones:
        X = (X != 0.0).astype(float)
    weights = random.integers(0, 3, ROWS).astype(float)
    return X, np.where(y > 0.0, 1.0, -1.0) if LOSSES.get(loss).cls.task == "binary" else y, weights


STORES = {
    "dense": lambda X: X,
    "dense float32": lambda X: X.astype(np.float32),
    "csr": csr_array,
    "csr float32": lambda X: csr_array(X.astype(np.float32)),
}
SCALINGS = {"raw": Columns(), "scale": Columns(SCALED.scale), "shift": Columns(None, SCALED.shift), "both": SCALED}


def scaled_table(X, columns):
    X = X - (0.0 if columns.shift is None else columns.shift)
    return X * (1.0 if columns.scale is None else columns.scale)


def ascend(risk, l1=0.0, l2=L2_, sweeps=60, **options):
    ascent = ability(risk, DualBlocks).ascent(l1, l2, seed=1, **options)
    for k in range(sweeps):
        ascent.sweep()
        if k % 7 == 6:
            ascent.unshrink()
    return ascent


def objective(risk, w, l1=0.0, l2=L2_):
    return risk.value_and_subgradient(w)[0] + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w


def regularizer(l1, l2=L2_):
    return ElasticNet(l1 + l2, l1 / (l1 + l2)) if l1 else L2(l2)


def bound(plane, l1=0.0, l2=L2_):
    return plane_bound(regularizer(l1, l2), *plane, -np.inf)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("l1", [0.0, L1_])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("store", STORES)
def test_every_way_to_store_and_scale_features_has_the_same_optimum(store, scaling, l1, free):
    X, y, weights = data()
    X = X.astype(np.float32).astype(np.float64)
    columns = SCALINGS[scaling]
    risk = LinearRisk(
        Dataset.from_arrays(STORES[store](X), y, weights), LOSSES.make("hinge"), bias=True, columns=columns
    )
    plain = LinearRisk(Dataset.from_arrays(scaled_table(X, columns), y, weights), LOSSES.make("hinge"), bias=True)
    if free:
        risk, plain = FreeIntercept(risk), FreeIntercept(plain)
    ascent = ascend(risk, l1, sweeps=400)
    best, proved = objective(plain, ascent.weights, l1), bound(ascent.plane(), l1)
    assert proved <= best * (1.0 + 1e-14)
    assert best - proved <= 3e-4 * best
    assert objective(risk, ascent.weights, l1) == pytest.approx(best, rel=1e-6)


def test_rows_of_ones_need_no_values():
    X, y, weights = data(ones=True)
    valueless = Dataset.from_arrays(csr_array(X), y, weights)
    assert isinstance(valueless.X, Csr)
    assert valueless.X.values is None
    for columns in (Columns(), SCALED):
        risks = [
            LinearRisk(d, LOSSES.make("hinge"), columns=columns)
            for d in (valueless, Dataset.from_arrays(X, y, weights))
        ]
        first, second = (ascend(risk, sweeps=20) for risk in risks)
        np.testing.assert_allclose(first.weights, second.weights, rtol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "quantile", "least_squares"])
@pytest.mark.parametrize("free", [False, True])
def test_planes_lie_below_the_risk_and_belong_to_the_slopes(loss, free):
    X, y, weights = data(loss)
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make(loss), columns=SCALED)
    whole = FreeIntercept(risk) if free else risk
    random = np.random.default_rng(9)
    for sweeps in (0, 1, 2, 5, 40):
        ascent = ascend(whole, sweeps=sweeps)
        a, b = ascent.plane()
        for scale in (0.1, 1.0, 10.0):
            w = scale * random.normal(size=FEATURES)
            assert a @ w + b <= whole.value_and_subgradient(w)[0] * (1.0 + 1e-12) + 1e-12
        if sweeps:
            scored = ability(whole, Scored)
            np.testing.assert_allclose(scored.map.rmatvec(ascent.slope()), a, atol=1e-13)
            assert np.all(ascent.slope()[weights == 0.0] == 0.0)
            if free:
                assert abs(ascent.slope().sum()) <= 1e-12
            np.testing.assert_allclose(ascent.weights, -a / L2_, atol=1e-12)


def test_hinge_slopes_stay_in_their_range():
    X, y, weights = data()
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make("hinge"))
    for sweeps in (1, 3, 30):
        share = -y * ascend(risk, sweeps=sweeps).slope() * weights.sum()
        assert share.min() >= 0.0
        assert np.all(share <= weights * (1.0 + 1e-12))


def test_weights_are_repetition():
    X, y, weights = data()
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make("hinge"))
    times = weights.astype(int)
    copies = Dataset.from_arrays(csr_array(np.repeat(X, times, axis=0)), np.repeat(y, times))
    copied = LinearRisk(copies, LOSSES.make("hinge"))
    first, second = ascend(risk, sweeps=300), ascend(copied, sweeps=300)
    assert bound(first.plane()) == pytest.approx(bound(second.plane()), rel=1e-6)


def test_the_gap_is_guessed():
    X, y, weights = data("logistic")
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make("logistic"))
    ascent = ability(risk, DualBlocks).ascent(0.0, L2_, seed=0)
    assert np.isnan(ascent.sweep().gap)
    for _ in range(5):
        found = ascent.sweep()
        gap = objective(risk, ascent.weights) - bound(ascent.plane())
        assert gap / 3.0 <= found.gap <= 30.0 * gap


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("free", [False, True])
def test_starting_where_another_ascent_ended(loss, free):
    X, y, weights = data(loss)
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make(loss))
    risk = FreeIntercept(risk) if free else risk
    ended = ascend(risk, sweeps=100)
    proved = bound(ended.plane())
    again = ascend(risk, sweeps=0, start=ended.slope())
    assert bound(again.plane()) == pytest.approx(proved, rel=1e-6)
    scores = ability(risk, Scored).map.matvec(ended.weights)
    both = ascend(risk, sweeps=0, start=ended.slope(), near=scores)
    assert bound(both.plane()) == pytest.approx(proved, rel=1e-3)
    np.testing.assert_allclose(both.constant, ended.constant, atol=1e-2)
    if loss == "logistic":
        near = ascend(risk, sweeps=0, near=scores)
        assert bound(near.plane()) == pytest.approx(proved, rel=1e-3)


def test_elastic_net_has_zeros():
    X, y, weights = data()
    risk = LinearRisk(Dataset.from_arrays(csr_array(X), y, weights), LOSSES.make("hinge"))
    l1 = 0.12
    ascent = ascend(risk, l1, sweeps=400)
    exact = LineSearchBundle(tolerance=1e-8).minimize(risk, regularizer(l1))
    assert objective(risk, ascent.weights, l1) == pytest.approx(exact.objective, rel=1e-5)
    assert 0 < np.count_nonzero(ascent.weights) < FEATURES


def test_losses_without_row_functions_and_of_several_scores_have_no_dual_steps():
    X, y, _ = data()
    for loss in ("roc_area", "ordinal_thresholds"):
        assert ability(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss)), DualBlocks) is None


class Enough(BaseException):
    """Raised by a check."""


def broken_risk(loss, free, bias=False, columns=None):
    X, y, weights = data(loss)
    y = np.arange(ROWS) % 3 if loss == "softmax" else y
    risk = LinearRisk(Dataset.from_arrays(X, y, weights), LOSSES.make(loss), columns=columns, bias=bias)
    return FreeIntercept(risk) if free else risk


def sweep_for_ever(ascent):
    while True:
        ascent.sweep()


BROKEN = [("hinge", False), ("hinge", True), ("logistic", False), ("softmax", False), ("softmax", True)]


@pytest.mark.parametrize("columns", [None, SCALED])
@pytest.mark.parametrize(("loss", "free"), BROKEN)
def test_a_sweep_with_looks_at_the_clock_is_the_same_sweep(loss, free, columns, monkeypatch):
    risk = broken_risk(loss, free, bias=not free, columns=columns)
    whole = ascend(risk, sweeps=9)
    monkeypatch.setattr(dual_stored, "LOOK", 1000.0)
    monkeypatch.setattr(dual_stored, "SLOWER", 1.0)
    looks = []
    steps = ability(metered_risk(risk, Meter(lambda: looks.append(1))), DualBlocks)
    parts = steps.ascent(0.0, L2_, seed=1)
    for k in range(9):
        parts.sweep()
        if k % 7 == 6:
            parts.unshrink()
    assert len(looks) > 28
    rounding = 1e-12 if free else 0.0  # the moves of a constant are added up piece by piece
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=rounding, atol=rounding)
    assert parts.plane()[1] == pytest.approx(whole.plane()[1], rel=rounding, abs=0.0)


@pytest.mark.parametrize("after", [3, 17, 40])
@pytest.mark.parametrize(("loss", "free"), BROKEN)
def test_a_sweep_that_is_broken_off_leaves_a_dual_point(loss, free, after, monkeypatch):
    monkeypatch.setattr(dual_stored, "LOOK", 1000.0)
    monkeypatch.setattr(dual_stored, "SLOWER", 1.0)
    risk = broken_risk(loss, free, bias=not free, columns=SCALED)
    left = after

    def check():
        nonlocal left
        left -= 1
        if left < 0:
            raise Enough

    ascent = ability(metered_risk(risk, Meter(check)), DualBlocks).ascent(0.0, L2_, seed=1)
    with pytest.raises(Enough):
        sweep_for_ever(ascent)
    left = 10**9
    best = LineSearchBundle(tolerance=1e-9).minimize(risk, L2(L2_))
    a, b = ascent.plane()
    assert bound((a, b)) <= best.objective * (1.0 + 1e-9)
    if after > 3:  # the first sweep is over: before that there is the infimum only
        np.testing.assert_allclose(ascent.weights, -a / L2_, atol=1e-12)
    if after == 40:
        assert bound((a, b)) > 0.5 * best.objective


@pytest.mark.parametrize("way", ["dense", "csr", "valueless", "filled", "shifted"])
def test_a_copy_in_pieces_is_the_copy_in_one_and_looks_at_the_clock(way, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 6)) * (rng.random((50, 6)) < 0.5)
    if way == "valueless":
        X = (X != 0.0).astype(float)
    data = X if way == "dense" else Csr.from_scipy(csr_array(X))
    data = data.without_unit_values() if way == "valueless" else data
    columns = Columns(shift=np.arange(6.0)) if way in {"filled", "shifted"} else Columns()
    order = rng.permutation(50).astype(np.uint32)
    part, looks = DataMap(part_of(data, 3, 50), columns=columns), []
    chosen = order[order < 47]
    whole = stored_rows(part, chosen, way == "shifted")
    monkeypatch.setattr(features, "COPIED", 30)
    pieces = stored_rows(part, chosen, way == "shifted", lambda: looks.append(1))
    assert len(looks) >= 3
    assert pieces.way == whole.way
    for one, other in zip((*pieces.matrix, pieces.norms), (*whole.matrix, whole.norms), strict=True):
        np.testing.assert_array_equal(one, other)
    expected = np.linalg.norm(X[3:][chosen] - (0.0 if columns.shift is None else columns.shift), axis=1)
    np.testing.assert_allclose(pieces.norms, expected**2, rtol=1e-12)
    some = matrix.rows_of(data, chosen, lambda: looks.append(1))
    np.testing.assert_array_equal(some if way == "dense" else some.to_dense(), X[chosen])
