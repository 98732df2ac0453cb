"""Kernels of dual coordinate ascent against plain NumPy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.kernels.dual import order as dual_order
from bmrm.kernels.dual.rows import Rows
from bmrm.kernels.dual.sweep import CURVE, SCORE, SHIFT, SLOPE, TARGET, WEIGHT, WIDTH, Dual, Steps
from bmrm.losses.hinge import Hinge
from bmrm.losses.least_squares import LeastSquares
from bmrm.losses.squared_hinge import SquaredHinge
from bmrm.risk.dual.rows import kernels_of

ROWS, COLUMNS = 30, 7


def table(way, dtype):
    random = np.random.default_rng(3)
    X = np.where(random.random((ROWS, COLUMNS)) < 0.6, random.normal(size=(ROWS, COLUMNS)), 0.0).astype(dtype)
    return (X != 0.0).astype(dtype) if way == "valueless" else X


def as_arguments(way, X):
    if way == "dense":
        return (X,)
    S = csr_array(X)
    indices = S.indices.astype(np.int32).view(np.uint32)
    positions = S.indptr.astype(np.int64)
    return (positions, indices) if way == "valueless" else Rows(positions, indices, S.data)


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def naive_sweep(loss, X, order, state, v, scalars, threshold, step, shares, bias, moves, extra, smooth):
    """One visit of each row, as the formulas say."""
    gap, drift = 0.0, 0.0
    for i in order:
        u, g, y, s, h = (state[i, k] for k in (SLOPE, SCORE, TARGET, WEIGHT, SHIFT))
        k = shares * state[i, CURVE] + extra
        score = X[i] @ soft(v, threshold) + scalars[0] + soft(scalars[1], threshold) - scalars[2] * h
        exact = s * (loss.value(score, y) - loss.value(g, y)) - u * (score - g)
        drift += (score - g) ** 2
        z = score + k * u
        f, change = loss.prox(np.array([z]), np.array([k * s]), np.array([y]))
        new = (z - f[0]) / k
        gap += 0.5 * (new - u) * (score - g) / change[0] if smooth else exact
        by = step * (u - new)
        v += by * X[i]
        scalars += by * np.array([moves - h, bias, 1.0])
        state[i, SLOPE], state[i, SCORE] = new, f[0]
    return gap, drift


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=["hinge", "squared_hinge"])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize(
    ("way", "dtype"), [("csr", float), ("csr", np.float32), ("valueless", float), ("dense", float)]
)
def test_a_sweep_is_its_formulas(way, dtype, threshold, loss):
    if way != "csr" and isinstance(loss, SquaredHinge):
        loss = Hinge()  # fewer kernels to compile
    X, random = table(way, dtype), np.random.default_rng(5)
    sweep = kernels_of(way, threshold > 0.0, loss.prox_row, loss.value_row).visit
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE] = random.uniform(0.5, 2.0, ROWS)
    state[:, TARGET] = np.where(random.random(ROWS) < 0.5, -1.0, 1.0)
    state[:, WEIGHT] = random.uniform(0.5, 2.0, ROWS)
    state[:, SHIFT] = random.normal(size=ROWS)
    state[:, SLOPE] = -state[:, TARGET] * state[:, WEIGHT] * random.uniform(size=ROWS)
    state[:, SCORE] = state[:, TARGET]
    v, scalars = random.normal(size=COLUMNS), random.normal(size=3)
    order = random.permutation(ROWS).astype(np.uint32)
    steps = Steps(threshold, 0.02, 2.0, 1.0, 0.7, 0.1)
    twin_state, twin_v, twin_scalars = state.copy(), v.copy(), scalars.copy()
    gap, drift = naive_sweep(loss, X.astype(float), order, twin_state, twin_v, twin_scalars, *steps, loss.smooth)
    sums, kept, flat = np.zeros(2), np.empty(ROWS, np.uint32), state.reshape(-1).copy()
    dual = Dual(flat, v, scalars, steps, loss.smooth, ())
    count = sweep(order, kept, np.inf, True, sums, as_arguments(way, X), dual)
    assert count == ROWS
    np.testing.assert_array_equal(kept, order)
    np.testing.assert_allclose(flat.reshape(ROWS, WIDTH), twin_state, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(v, twin_v, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(scalars, twin_scalars, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(sums, (gap, drift), rtol=1e-10)


def hinge_state(random):
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE] = random.uniform(0.5, 2.0, ROWS)
    state[:, TARGET] = np.where(random.random(ROWS) < 0.5, -1.0, 1.0)
    state[:, WEIGHT] = random.uniform(0.5, 2.0, ROWS)
    state[0, WEIGHT] = 0.0
    return state


def test_only_rows_far_from_their_kink_are_set_aside():
    """Scores are 0 and slopes -1: the margin at which a row at distance 1 from its kink stays is 1."""
    sweep = kernels_of("dense", False, Hinge.prox_row, Hinge.value_row).visit
    X = np.zeros((ROWS, 2))
    state = hinge_state(np.random.default_rng(1))
    state[:, WEIGHT], state[:, CURVE] = 1.0, 0.25
    state[:, SLOPE] = -state[:, TARGET]
    for margin, left in ((0.9, 0), (1.1, ROWS)):
        kept = np.empty(ROWS, np.uint32)
        steps = Steps(0.0, 0.1, 1.0, 0.0, 0.0, 0.0)
        order = np.arange(ROWS, dtype=np.uint32)
        dual = Dual(state.reshape(-1).copy(), np.zeros(2), np.zeros(3), steps, False, ())
        count = sweep(order, kept, margin, True, np.zeros(2), (X,), dual)
        assert count == left


def test_offsets_are_minus_the_conjugates():
    random = np.random.default_rng(2)
    state = hinge_state(random)
    share = random.uniform(size=ROWS)
    state[:, SLOPE] = -state[:, TARGET] * state[:, WEIGHT] * share
    state[:, SCORE] = state[:, TARGET]
    offsets = kernels_of("dense", False, Hinge.prox_row, Hinge.value_row).offsets
    # the conjugate of the hinge at -y a is -a
    assert offsets(state.reshape(-1), ()) == pytest.approx((state[:, WEIGHT] * share).sum())


def test_slopes_that_are_0_by_rounding_prove_no_loss():
    """Rows of so little weight that the proximal map leaves their scores where they are: the conjugate at 0 is 0."""
    state, loss = np.zeros((3, WIDTH)), LeastSquares()
    state[:, SCORE], state[:, CURVE], state[:, WEIGHT] = (500.0, -7e3, 3.0), 1e3, 1e-20
    for score, weight in zip(state[:, SCORE], state[:, WEIGHT], strict=True):
        assert loss.prox_row(score, 1e3 * weight, 0.0)[0] == score
    offsets = kernels_of("dense", False, loss.prox_row, loss.value_row).offsets(state.reshape(-1), ())
    assert -1e-6 < offsets <= 0.0


def test_slopes_near_scores_and_after_shifts():
    random = np.random.default_rng(4)
    state, scores, loss = hinge_state(random), random.normal(size=ROWS), SquaredHinge()
    kernels = kernels_of("dense", False, loss.prox_row, loss.value_row)
    present = state[:, WEIGHT] > 0.0
    k = 0.5 * state[:, CURVE]
    f, _ = loss.prox(scores, k * state[:, WEIGHT], state[:, TARGET])
    kernels.near(state.reshape(-1), scores, 0.5, ())
    np.testing.assert_allclose(state[:, SLOPE], np.where(present, (scores - f) / k, 0.0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(state[present, SCORE], f[present], rtol=1e-12, atol=1e-14)
    totals = np.empty(3)
    kernels.shifted(state.reshape(-1), np.array([-0.5, 0.0, 2.0]), 1.0, totals, ())
    assert totals[1] == pytest.approx(state[:, SLOPE].sum(), rel=1e-12)
    assert totals[0] < totals[1] < totals[2]


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=["hinge", "squared_hinge"])
def test_slopes_are_found_again_and_others_moved_to_the_nearest(loss):
    random = np.random.default_rng(6)
    state = hinge_state(random)
    inverse = kernels_of("dense", False, loss.prox_row, loss.value_row).inverse
    present = state[:, WEIGHT] > 0.0
    wanted = -state[:, TARGET] * state[:, WEIGHT] * random.uniform(size=ROWS)
    inverse(state.reshape(-1), wanted, ())
    np.testing.assert_allclose(state[present, SLOPE], wanted[present], rtol=1e-9)
    y, s, g = state[present, TARGET], state[present, WEIGHT], state[present, SCORE]
    for step in (1e-7, -1e-7):  # slopes at their scores
        rise = s * (loss.value(g + step, y) - loss.value(g, y)) - step * wanted[present]
        assert rise.min() >= -1e-13
    inverse(state.reshape(-1), state[:, TARGET] * 5.0, ())
    np.testing.assert_allclose(state[:, SLOPE], 0.0, atol=1e-9)


def test_orders_hold_every_row_once_and_keep_blocks_together():
    random = np.array([7], np.uint64)
    order = np.arange(100, dtype=np.uint32)
    dual_order.shuffle(order, random)
    assert sorted(order) == list(range(100))
    assert not np.array_equal(order, np.arange(100))
    blocks = np.empty_like(order)
    dual_order.shuffle_blocks(order, blocks, random)
    assert sorted(blocks) == list(range(100))
    place = {row: at for at, row in enumerate(blocks)}
    together = [place[order[k + 1]] == place[order[k]] + 1 for k in range(99)]
    assert sum(together) >= 96  # borders of 32, 32, 32 and 4 rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_of_rows(dtype):
    X = csr_array(table("csr", dtype))
    order = np.random.default_rng(8).permutation(ROWS).astype(np.uint32)
    positions, old = X.indptr.astype(np.int64), X.indices.astype(np.int32).view(np.uint32)
    indptr, indices, norms = np.zeros(ROWS + 1, np.int64), np.empty(X.nnz, np.uint32), np.empty(ROWS)
    scale = np.linspace(0.5, 2.0, COLUMNS)
    values = np.empty(X.nnz)
    copy = Rows(indptr, indices, values)
    dual_order.copy_rows(Rows(positions, old, X.data), scale, order, copy, norms)
    expected = X.toarray()[order] * scale
    np.testing.assert_allclose(csr_array((values, indices, indptr), shape=X.shape).toarray(), expected, rtol=1e-6)
    np.testing.assert_allclose(norms, (expected**2).sum(axis=1), rtol=1e-6)
    dual_order.copy_rows_valueless(positions, old, order, indptr, indices, norms)
    ones = csr_array((np.ones(X.nnz), indices, indptr), shape=X.shape).toarray()
    np.testing.assert_array_equal(ones, X.toarray()[order] != 0.0)
    np.testing.assert_array_equal(norms, ones.sum(axis=1))
    dense = np.empty(ROWS)
    dual_order.squared_norms(X.toarray(), dense)
    np.testing.assert_allclose(dense, (X.toarray().astype(float) ** 2).sum(axis=1), rtol=1e-6)
