"""Column kernels against NumPy."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from bmrm.kernels.products import columns as kernel


def table(rows=50, columns=9, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.4)


def gathered(X, chosen, ones=False):
    rows = csr_array(X)
    counts = np.zeros(X.shape[1], np.int32)
    indices = rows.indices.astype(np.uint32)
    kernel.count_entries(rows.indptr.astype(np.int64), indices, counts)
    np.testing.assert_array_equal(counts, (X != 0.0).sum(axis=0))
    place = np.full(X.shape[1], -1, np.int32)
    place[chosen] = np.arange(len(chosen))
    starts = np.concatenate(([0], np.cumsum(counts[chosen]))).astype(np.int64)
    out_rows, values = np.empty(starts[-1], np.uint32), np.empty(0 if ones else starts[-1])
    given = np.empty(0) if ones else rows.data
    fill = starts[:-1].copy()
    kernel.gather_entries(rows.indptr.astype(np.int64), indices, given, place, fill, out_rows, values)
    np.testing.assert_array_equal(fill, starts[1:])
    return kernel.Columns(starts, out_rows, values)


@pytest.mark.parametrize("chosen", [[], [0, 1, 2, 3, 4, 5, 6, 7, 8], [1, 4, 8]])
def test_columns_are_gathered_as_scipy_has_them(chosen):
    X = table()
    starts, rows, values = gathered(X, chosen)
    reference = csc_array(X[:, chosen])
    np.testing.assert_array_equal(starts, reference.indptr)
    np.testing.assert_array_equal(rows, reference.indices)
    np.testing.assert_array_equal(values, reference.data)
    again = gathered((X != 0.0).astype(float), chosen, ones=True)
    np.testing.assert_array_equal(again[1], reference.indices)
    assert again[2].size == 0


def weighed(X, chosen, roots, scale, extra=0):
    given = gathered(X, np.arange(X.shape[1]))
    count, rows = len(chosen) + extra, given.rows
    new = kernel.Columns(np.empty(count + 1, np.int64), np.empty(rows.size + 1, np.uint32), np.empty(rows.size + 1))
    sums, squares = np.zeros(count), np.zeros(count)
    kernel.weigh_entries(given, np.array(chosen), roots, scale, new, sums, squares)
    return new, sums, squares


def test_entries_are_weighed_and_rows_without_weight_left_out():
    X = table()
    random = np.random.default_rng(1)
    roots, scale = random.random(50) * (random.random(50) < 0.7), random.uniform(0.5, 2.0, 3)
    chosen = [0, 4, 5]
    (starts, rows, values), sums, squares = weighed(X, chosen, roots, scale, extra=1)
    V = X[:, chosen] * scale * roots[:, None]
    for k in range(3):
        part = slice(starts[k], starts[k + 1])
        dense = np.zeros(50)
        dense[rows[part]] = values[part]
        np.testing.assert_allclose(dense, V[:, k], rtol=1e-15)
        assert np.all(roots[rows[part]] > 0.0)
    assert starts[4] == starts[3]
    np.testing.assert_allclose(sums, [*(roots @ V), 0.0], rtol=1e-12)
    np.testing.assert_allclose(squares, [*(V**2).sum(axis=0), 0.0], rtol=1e-12)
    out, dense_sums, dense_squares = np.zeros((3, 50)), np.zeros(3), np.zeros(3)
    kernel.weigh_dense(X, np.array(chosen), roots, scale, np.zeros(3), out, dense_sums, dense_squares)
    np.testing.assert_allclose(out, V.T, rtol=1e-15)
    np.testing.assert_allclose(dense_sums, sums[:3], rtol=1e-12)
    np.testing.assert_allclose(dense_squares, squares[:3], rtol=1e-12)


def test_dense_columns_are_copied_around_a_shift():
    X = table() + 1e7
    roots, scale, less = np.random.default_rng(1).random(50), np.array([0.5, 1.0, 2.0]), np.array([5e6, 1e7, 2e7])
    chosen = np.array([0, 4, 5])
    out, sums, squares, totals = np.zeros((3, 50), np.float32), np.zeros(3), np.zeros(3), np.zeros(3)
    kernel.weigh_dense(X, chosen, roots, scale, less, out, sums, squares)
    V = (X[:, chosen] - 1e7) * scale * roots[:, None]
    np.testing.assert_allclose(out, V.T, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sums, roots @ out.T, rtol=1e-5)
    kernel.add_dense_sums(X, chosen, roots, totals)
    np.testing.assert_allclose(totals, roots @ X[:, chosen], rtol=1e-12)


def test_products_with_columns():
    X = table()
    random = np.random.default_rng(2)
    roots = random.random(50)
    sparse, _, _ = weighed(X, np.arange(9), roots, np.ones(9))
    V = np.ascontiguousarray((X * roots[:, None]).T)
    chosen, steps, r = np.array([1, 2, 7]), np.array([0.5, 0.0, -2.0]), random.normal(size=50)
    dense = kernel.Columns(np.zeros(1, np.int64), np.zeros(1, np.uint32), V)
    for apply, pull, columns in (
        (kernel.apply_sparse, kernel.pull_sparse, sparse),
        (kernel.apply_dense, kernel.pull_dense, dense),
    ):
        out, products = r.copy(), np.empty(3)
        apply(columns, chosen, steps, out)
        np.testing.assert_allclose(out, r + steps @ V[chosen], rtol=1e-12, atol=1e-14)
        pull(columns, chosen, r, products)
        np.testing.assert_allclose(products, V[chosen] @ r, rtol=1e-12, atol=1e-14)
    out = r.copy()
    kernel.combine_entries(gathered(X, np.arange(9)), chosen, steps, out)
    np.testing.assert_allclose(out, r + X[:, chosen] @ steps, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_a_sweep_is_exact_in_every_coordinate(dense, free):
    X = table(60, 7, seed=3)
    random = np.random.default_rng(4)
    roots, shifts = random.random(60), random.normal(size=7) * (not free)
    columns, sums, _ = weighed(X, np.arange(7), roots, np.ones(7))
    A = X * roots[:, None] - np.outer(roots, shifts)
    if free:
        A -= np.outer(roots, roots @ A / (roots @ roots))
    diagonal = (A**2).sum(axis=0)
    gradient, w, l1, l2 = random.normal(size=7), random.normal(size=7) * (random.random(7) < 0.5), 0.3, 0.1
    table_ = np.ascontiguousarray((X * roots[:, None]).T)
    columns = kernel.Columns(np.zeros(1, np.int64), np.zeros(1, np.uint32), table_) if dense else columns
    descend = kernel.descend_dense if dense else kernel.descend_sparse
    x, r, state, order = w.copy(), np.zeros(60), np.array([0.0, 0.0, 0.0, 0.0, 7.0, np.inf]), np.arange(7)
    model = kernel.Model(sums, diagonal, shifts, float(roots @ roots), gradient, l1, l2, free)
    worst, visited, ended = descend(columns, model, kernel.StopRule(0.0, 0.0, 1), x, r, state, order)
    assert not ended

    def objective(x):
        return gradient @ (x - w) + 0.5 * np.sum((A @ (x - w)) ** 2) + l1 * np.abs(x).sum() + 0.5 * l2 * x @ x

    slow, steps = w.copy(), []
    for j in range(7):
        slope = gradient[j] + A[:, j] @ (A @ (slow - w))
        z = diagonal[j] * slow[j] - slope
        new = np.sign(z) * max(abs(z) - l1, 0.0) / (diagonal[j] + l2)
        steps.append((diagonal[j] + l2) * abs(new - slow[j]))
        slow[j] = new
    np.testing.assert_allclose(x, slow, atol=1e-12)
    assert worst == pytest.approx(max(steps))
    assert visited == 7
    np.testing.assert_allclose(r + state[0] * roots, A @ (x - w), atol=1e-12)
    assert state[1] == pytest.approx(roots @ r)
    assert 0.0 < state[2] <= objective(w) - objective(x) + 1e-12
    while not ended:  # a few sweeps at a time, as if it were at once
        worst, _, ended = descend(columns, model, kernel.StopRule(1e-10, 0.0, 3), x, r, state, order)
        assert state[5] == worst
    z = gradient + A.T @ (A @ (x - w)) + l2 * x
    distance = np.where(x != 0.0, np.abs(z + l1 * np.sign(x)), np.maximum(np.abs(z) - l1, 0.0))
    assert distance.max() < 1e-8
