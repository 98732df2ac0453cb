"""Kernels of dual coordinate ascent over rows of several scores against plain NumPy."""

import numpy as np
import pytest

from bmrm.kernels.dual.many import SEEN, SPARE, VALUE, Dual
from bmrm.kernels.dual.sweep import CURVE, SHIFT, TARGET, WEIGHT, WIDTH, Shrinking, Steps
from bmrm.losses.multiclass_hinge import MulticlassHinge
from bmrm.losses.softmax import Softmax
from bmrm.risk.dual.many import kernels_of
from tests.kernels.test_dual import COLUMNS, ROWS, as_arguments, soft, table

STORES = [("csr", float), ("csr", np.float32), ("valueless", float), ("dense", float)]


def arguments_of(loss, classes):
    return () if isinstance(loss, Softmax) else (1.0 - np.eye(classes), False)


def rows_of(loss):
    return loss.prox_scores_row, loss.offset_scores_row, loss.value_scores_row


def naive_visit(loss, x, row, u, held, added, v, vectors, threshold, step, shares, bias, moves, extra, looked):
    """One row in its turn, as the formulas say; `row`, `u` and `held` change."""
    y, k = np.array([int(row[TARGET])]), shares * row[CURVE] + extra
    scores = x @ soft(v, threshold) + vectors[0] + soft(vectors[1], threshold) - vectors[2] * row[SHIFT] + added
    gap = row[WEIGHT] * loss.value(scores[None], y)[0] - u @ scores - row[VALUE]
    drift = (scores[looked] - row[SEEN]) ** 2
    z = scores + k * u
    f = loss.prox_scores(z[None], k * row[WEIGHT], y)[0]
    new = (z - f) / k
    by = step * (u - new)
    v += np.outer(x, by)
    vectors += np.outer((moves - row[SHIFT], bias, 1.0), by)
    u[:], held[:] = new, f
    row[VALUE], row[SEEN] = row[WEIGHT] * loss.value(f[None], y)[0] - new @ f, f[looked]
    return gap, drift


@pytest.mark.parametrize("loss", [MulticlassHinge(), Softmax()], ids=["multiclass_hinge", "softmax"])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize("classes", [3, 6, 17])
@pytest.mark.parametrize(("way", "dtype"), STORES)
def test_a_sweep_is_its_formulas(way, dtype, classes, threshold, loss):
    if isinstance(loss, Softmax) and way != "csr":
        return  # fewer kernels to compile; how rows are read is the same for all losses
    X, random = table(way, dtype), np.random.default_rng(5)
    sweep = kernels_of(way, threshold > 0.0, *rows_of(loss)).visit
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE] = random.uniform(0.5, 2.0, ROWS)
    state[:, TARGET] = random.integers(0, classes, ROWS)
    state[:, WEIGHT] = random.uniform(0.5, 2.0, ROWS)
    state[:, SHIFT] = random.normal(size=ROWS)
    state[:, VALUE], state[:, SEEN] = random.normal(size=(2, ROWS))
    slopes = random.normal(size=(ROWS, classes))
    slopes -= slopes.mean(axis=1)[:, None]
    v, vectors = random.normal(size=(COLUMNS, classes)), random.normal(size=(3, classes))
    order = random.permutation(ROWS).astype(np.uint32)
    held = random.normal(size=(ROWS, classes))
    added = random.normal(size=(ROWS if classes > 3 else 0, classes))
    naive = [array.copy() for array in (state, slopes, held, v, vectors)]
    steps = Steps(threshold, 0.2, 2.0, 1.0, 0.7, 0.05)
    expected = np.zeros(2)
    for i in order:
        row = (naive[0][i], naive[1][i], naive[2][i], added[i] if classes > 3 else 0.0, naive[3], naive[4])
        expected += naive_visit(loss, X[i].astype(float), *row, *steps, looked=i % classes)
    sums, kept, room = np.empty(2), np.empty(ROWS, np.uint32), np.empty((SPARE + 2, classes))
    dual = Dual(state.reshape(-1), slopes, v, vectors, steps, added, held, room, arguments_of(loss, classes))
    count = sweep(order, kept, np.inf, True, sums, as_arguments(way, X), dual)
    assert count == ROWS
    for ours, theirs in zip((state, slopes, held, v, vectors, sums), (*naive, expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", [MulticlassHinge(), Softmax()], ids=["multiclass_hinge", "softmax"])
def test_slopes_after_a_shift_and_their_sums_are_those_of_proximal_maps(loss):
    classes, random = 4, np.random.default_rng(3)
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE] = random.uniform(0.5, 2.0, ROWS)
    state[:, TARGET] = random.integers(0, classes, ROWS)
    state[:, WEIGHT] = random.uniform(0.5, 2.0, ROWS)
    state[::5, WEIGHT] = 0.0
    slopes, held = 0.1 * random.normal(size=(2, ROWS, classes))
    slopes -= slopes.mean(axis=1)[:, None]
    shift, share = random.normal(size=classes), 0.4
    weights, y, k = state[:, WEIGHT], state[:, TARGET].astype(int), share * state[:, CURVE]
    expected, scores = slopes.copy(), held.copy()
    for i in np.flatnonzero(weights > 0.0):
        z = held[i] + shift + k[i] * slopes[i]
        scores[i] = loss.prox_scores(z[None], k[i] * weights[i], y[i : i + 1])[0]
        expected[i] = (z - scores[i]) / k[i]
    kernels = kernels_of("dense", False, *rows_of(loss))
    flat, room, arguments = state.reshape(-1), np.empty((SPARE + 2, classes)), arguments_of(loss, classes)
    total = np.full(classes, np.nan)
    kernels.shifted(flat, slopes, held, shift, share, total, room, arguments)
    np.testing.assert_allclose(total, expected[weights > 0.0].sum(axis=0), rtol=1e-9)
    shifted = held + shift
    kernels.near(flat, slopes, shifted, k, held, room, arguments)
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(held, scores, rtol=1e-9, atol=1e-12)


def test_rows_that_will_not_move_are_set_aside():
    loss, classes = MulticlassHinge(), 4
    X = np.eye(ROWS)
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE], state[:, WEIGHT] = 1.0, 1.0
    state[:, TARGET] = np.arange(ROWS) % classes
    v = np.zeros((ROWS, classes))
    ahead = np.linspace(0.5, 3.0, ROWS)
    v[np.arange(ROWS), np.arange(ROWS) % classes] = ahead
    visit = kernels_of("dense", False, *rows_of(loss))
    kept, order, margin = np.empty(ROWS, np.uint32), np.empty(ROWS, np.uint32), np.array([0.25])
    slopes, vectors, room = np.zeros((ROWS, classes)), np.zeros((3, classes)), np.empty((SPARE + 2, classes))
    everything, random = np.arange(ROWS, dtype=np.uint32), np.array([1], np.uint64)
    steps, none = Steps(0.0, 1.0, 1.0, 0.0, 0.0, 0.0), np.empty((0, classes))
    dual = Dual(state.reshape(-1), slopes, v, vectors, steps, none, none, room, arguments_of(loss, classes))
    shrinking = Shrinking(order, kept, margin, random)
    count, visits = visit.rounds((X,), everything, shrinking, 1.0, True, np.empty(2), dual)
    assert visits == ROWS
    np.testing.assert_array_equal(np.sort(kept[:count]), np.flatnonzero(0.5 * (ahead - 1.0) <= 0.25))
