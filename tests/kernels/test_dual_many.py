"""Kernels of dual coordinate ascent over rows of several scores against plain NumPy."""

import numpy as np
import pytest

from bmrm.kernels import dual_many, dual_rows
from bmrm.kernels.dual_many import SEEN, SPARE, VALUE
from bmrm.kernels.dual_sweep import CURVE, SHIFT, TARGET, WEIGHT, WIDTH
from bmrm.kernels.jit import specialised
from bmrm.losses.multiclass_hinge import MulticlassHinge
from bmrm.losses.softmax import Softmax
from bmrm.risk.dual_many import WAYS, kernels_of
from tests.kernels.test_dual import COLUMNS, ROWS, as_arguments, soft, table

STORES = [("csr", float), ("csr", np.float32), ("valueless", float), ("dense", float)]


def arguments_of(loss, classes):
    return () if isinstance(loss, Softmax) else (1.0 - np.eye(classes), False)


def naive_visit(loss, x, row, u, v, vectors, threshold, step, shares, bias, moves, extra, looked):
    """One row in its turn, as the formulas say; `row` and `u` change."""
    y, k = np.array([int(row[TARGET])]), shares * row[CURVE] + extra
    scores = x @ soft(v, threshold) + vectors[0] + soft(vectors[1], threshold) - vectors[2] * row[SHIFT]
    gap = row[WEIGHT] * loss.value(scores[None], y)[0] - u @ scores - row[VALUE]
    drift = (scores[looked] - row[SEEN]) ** 2
    z = scores + k * u
    f = loss.prox_scores(z[None], k * row[WEIGHT], y)[0]
    new = (z - f) / k
    by = step * (u - new)
    v += np.outer(x, by)
    vectors += np.outer((moves - row[SHIFT], bias, 1.0), by)
    u[:] = new
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
    span, column, entry, fetch = WAYS[way]
    weigh = dual_rows.soft if threshold else dual_rows.itself
    row = {"span": span, "column": column, "entry": entry}
    sweep = specialised(
        dual_many.sweep,
        gather_row=specialised(dual_many.gather, weigh=weigh, **row),
        spread_row=specialised(dual_many.spread, **row),
        fetch=fetch,
        weigh=weigh,
        prox_scores_row=loss.prox_scores_row,
        value_scores_row=loss.value_scores_row,
    )
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
    naive = [array.copy() for array in (state, slopes, v, vectors)]
    steps = (threshold, 0.2, 2.0, 1.0, 0.7, 0.05)
    expected = np.zeros(2)
    for i in order:
        row = (naive[0][i], naive[1][i], naive[2], naive[3])
        expected += naive_visit(loss, X[i].astype(float), *row, *steps, looked=i % classes)
    sums, kept, room = np.empty(2), np.empty(ROWS, np.uint32), np.empty((SPARE + 2, classes))
    flat = state.reshape(-1)
    arguments = arguments_of(loss, classes)
    count = sweep(
        order, kept, np.inf, True, sums, as_arguments(way, X), flat, slopes, v, vectors, *steps, room, arguments
    )
    assert count == ROWS
    for ours, theirs in zip((state, slopes, v, vectors, sums), (*naive, expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


def test_rows_that_will_not_move_are_set_aside():
    loss, classes = MulticlassHinge(), 4
    X = np.eye(ROWS)
    state = np.zeros((ROWS, WIDTH))
    state[:, CURVE], state[:, WEIGHT] = 1.0, 1.0
    state[:, TARGET] = np.arange(ROWS) % classes
    v = np.zeros((ROWS, classes))
    ahead = np.linspace(0.5, 3.0, ROWS)
    v[np.arange(ROWS), np.arange(ROWS) % classes] = ahead
    visit = kernels_of("dense", False, loss.prox_scores_row, loss.value_scores_row)
    kept, order, margin = np.empty(ROWS, np.uint32), np.empty(ROWS, np.uint32), np.array([0.25])
    slopes, vectors, room = np.zeros((ROWS, classes)), np.zeros((3, classes)), np.empty((SPARE + 2, classes))
    everything, random, steps = (
        np.arange(ROWS, dtype=np.uint32),
        np.array([1], np.uint64),
        (0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    )
    shared = (state.reshape(-1), slopes, v, vectors, *steps, room, arguments_of(loss, classes))
    count, visits = visit.rounds((X,), everything, order, kept, 1.0, True, random, 4.0, np.empty(2), margin, *shared)
    assert visits == ROWS
    np.testing.assert_array_equal(np.sort(kept[:count]), np.flatnonzero(0.5 * (ahead - 1.0) <= 0.25))
