import numpy as np
import pytest

from bmrm.kernels.masters import dense_inverse as kernel


@pytest.fixture(params=[1, 2, 5, 40])
def case(request):
    """A regular matrix, and its inverse in the leading part of a larger array."""
    q = request.param
    rng = np.random.default_rng(q)
    M = rng.normal(size=(q, q)) + 2.0 * np.eye(q)
    X = np.full((q + 3, q + 3), np.nan)
    X[:q, :q] = np.linalg.inv(M)
    return rng, M, X, q


def close(X, M):
    q = len(M)
    np.testing.assert_allclose(X[:q, :q], np.linalg.inv(M), rtol=1e-8, atol=1e-10)


def test_invert(case):
    _, M, X, q = case
    X[:] = np.nan
    assert kernel.invert(M.copy(), q, X)
    close(X, M)
    M[0] = M[-1] if q > 1 else 0.0
    assert not kernel.invert(M.copy(), q, X)


def test_pivots_are_needed():
    X = np.empty((2, 2))
    assert kernel.invert(np.array([[0.0, 1.0], [2.0, 0.0]]), 2, X)
    np.testing.assert_array_equal(X, [[0.0, 0.5], [1.0, 0.0]])


def test_products(case):
    rng, _, X, q = case
    x, out = rng.normal(size=q), np.empty(q)
    kernel.times(X, q, x, out)
    np.testing.assert_allclose(out, X[:q, :q] @ x)
    start = rng.normal(size=q)
    for low in (0, q // 2):
        total = start.copy()
        kernel.add_times_transposed(X, low, q, x, q, total)
        np.testing.assert_allclose(total, start + x[: q - low] @ X[low:q, :q])


def test_a_row_changes(case):
    rng, M, X, q = case
    for r in {0, q // 2, q - 1}:
        M[r] = rng.normal(size=q) + 2.0 * np.eye(q)[r]
        kernel.replace_row(X, q, M[r] @ X[:q, :q], r)
        close(X, M)


def test_a_column_changes(case):
    rng, M, X, q = case
    for c in {0, q // 2, q - 1}:
        M[:, c] = rng.normal(size=q) + 2.0 * np.eye(q)[c]
        kernel.replace_column(X, q, X[:q, :q] @ M[:, c], c)
        close(X, M)


def test_a_row_and_a_column_join_and_leave(case):
    rng, M, X, q = case
    row, column, corner = rng.normal(size=q), rng.normal(size=q), 3.0
    inverse = X[:q, :q].copy()
    kernel.border(X, q, row @ inverse, inverse @ column, corner - row @ inverse @ column)
    larger = np.block([[M, column[:, None]], [row[None], np.array([[corner]])]])
    close(X, larger)
    for c in {0, q // 2, q}:
        for r in {0, q // 2, q}:
            Y = X.copy()
            kernel.shrink(Y, q + 1, c, r)
            # the last row and column take the free places
            rows, columns = list(range(q)), list(range(q))
            if r < q:
                rows[r] = q
            if c < q:
                columns[c] = q
            close(Y, larger[np.ix_(rows, columns)])
