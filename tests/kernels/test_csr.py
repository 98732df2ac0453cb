"""Compiled products against scipy and NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bmrm.kernels.products import csr, csr_many, dense
from bmrm.kernels.products.vectors import dot, plain

DTYPES = [np.float32, np.float64]


def matrix(rows=40, columns=17, density=0.4, seed=0, dtype=np.float64):
    """A sparse matrix with empty rows and rows of every length modulo 4."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((rows, columns)) < density, rng.normal(size=(rows, columns)), 0.0)
    table[3] = 0.0
    X = csr_array(table.astype(dtype))
    return X


def parts(X):
    """indptr, indices and values as the kernels take them."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int32).view(np.uint32), X.data


def active_of(slope):
    return csr.active_rows(slope) if slope.ndim == 1 else csr_many.active_rows(slope)


def slope_of(shape, share=0.5, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < share, rng.normal(size=shape), 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_are_the_product(dtype):
    X = matrix(dtype=dtype)
    w, out = np.random.default_rng(2).normal(size=17), np.empty(40)
    csr.scores(*parts(X), w, 0.5, out)
    np.testing.assert_allclose(out, X.astype(np.float64) @ w + 0.5, rtol=1e-13, atol=1e-14)


def test_scores_without_values_are_those_of_ones():
    X = matrix()
    X.data[:] = 1.0
    w, out = np.random.default_rng(2).normal(size=17), np.empty(40)
    csr.scores_valueless(*parts(X)[:2], w, -0.5, out)
    np.testing.assert_allclose(out, X @ w - 0.5, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_active_rows_are_those_with_a_slope(share, width):
    slope = slope_of((50, width), share / width)
    np.testing.assert_array_equal(active_of(slope), np.flatnonzero(slope.any(axis=1)))
    np.testing.assert_array_equal(active_of(slope[:, 0].copy()), np.flatnonzero(slope[:, 0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_is_the_transposed_product(dtype):
    X, slope = matrix(dtype=dtype), slope_of(40)
    indptr, indices, values = parts(X)
    gradient = np.ones(17)
    csr.scatter(indptr, indices, values, slope, active_of(slope), gradient)
    np.testing.assert_allclose(gradient, 1.0 + X.astype(np.float64).T @ slope, rtol=1e-13, atol=1e-13)
    X.data[:] = 1.0
    gradient = np.zeros(17)
    csr.scatter_valueless(indptr, indices, slope, active_of(slope), gradient)
    np.testing.assert_allclose(gradient, X.T @ slope, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("width", [2, 3, 4, 7, 12, 13, 18])
@pytest.mark.parametrize("ones", [False, True])
def test_several_scores_per_row(width, ones):
    X, slope = matrix(), slope_of((40, width), 0.15)
    indptr, indices, values = parts(X)
    if ones:
        X = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
        values = np.full(1, np.nan)
    W, offset, out = np.random.default_rng(3).normal(size=(17, width)), np.arange(float(width)), np.empty((40, width))
    csr_many.scores(indptr, indices, values, ones, W, offset, out)
    np.testing.assert_allclose(out, X @ W + offset, rtol=1e-13, atol=1e-13)
    gradient = np.zeros((17, width))
    csr_many.scatter(indptr, indices, values, ones, slope, active_of(slope), gradient)
    np.testing.assert_allclose(gradient, X.T @ slope, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("borders", [[17], [5, 17], [1, 2, 3, 16, 17], [0, 17]])
def test_feature_ranges_make_up_the_product(borders):
    X = matrix()
    indptr, indices, values = parts(X)
    ones = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
    for width in (1, 3):
        slope = slope_of(40) if width == 1 else slope_of((40, width))
        active = active_of(slope)
        found, found_ones = np.zeros((17, *slope.shape[1:])), np.zeros((17, *slope.shape[1:]))
        cursor, cursor_ones = indptr[active], indptr[active]
        for stop in borders:
            if width == 1:
                csr.scatter_range(indptr, indices, values, slope, active, cursor, stop, found)
                csr.scatter_range_valueless(indptr, indices, slope, active, cursor_ones, stop, found_ones)
            else:
                csr_many.scatter_range(indptr, indices, values, False, slope, active, cursor, stop, found)
                csr_many.scatter_range(indptr, indices, values, True, slope, active, cursor_ones, stop, found_ones)
            assert not found[stop:].any()
        np.testing.assert_allclose(found, X.T @ slope, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(found_ones, ones.T @ slope, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 4, 39])
def test_dense_products(dtype, rows):
    X = np.random.default_rng(4).normal(size=(rows, 17)).astype(dtype)
    w, slope, out = np.random.default_rng(5).normal(size=17), slope_of(rows, 0.8), np.empty(rows)
    dense.scores(X, w, 2.0, out)
    np.testing.assert_allclose(out, X.astype(np.float64) @ w + 2.0, rtol=1e-13, atol=1e-13)
    for first in (0, 5):
        gradient = np.zeros(17 - first)
        dense.scatter(X, slope, active_of(slope), first, gradient)
        np.testing.assert_allclose(gradient, (X.astype(np.float64).T @ slope)[first:], rtol=1e-13, atol=1e-13)


@given(st.lists(st.lists(st.integers(0, 30), unique=True, max_size=9), max_size=8), st.integers(0, 2**32 - 1))
def test_rows_of_any_length(rows, seed):
    rows = [sorted(row) for row in rows]
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    indices = np.array([j for row in rows for j in row], np.int32).view(np.uint32)
    rng = np.random.default_rng(seed)
    values, w, slope = rng.normal(size=indices.size), rng.normal(size=31), rng.normal(size=len(rows))
    out, gradient = np.empty(len(rows)), np.zeros(31)
    csr.scores(indptr, indices, values, w, 0.0, out)
    csr.scatter(indptr, indices, values, slope, active_of(slope), gradient)
    X = np.zeros((len(rows), 31))
    X[np.repeat(np.arange(len(rows)), np.diff(indptr)), indices] = values
    np.testing.assert_allclose(out, X @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, X.T @ slope, rtol=1e-12, atol=1e-12)


def test_vectors():
    a = np.random.default_rng(6).normal(size=(30, 4))
    assert dot(a, a) == pytest.approx(np.sum(a * a), rel=1e-14)
    fixed = a.copy()
    fixed.flags.writeable = False
    assert plain(a) is a
    for odd in (fixed, a.T, a[::2]):
        np.testing.assert_array_equal(plain(odd), odd)
        assert plain(odd).flags.writeable
        assert plain(odd).flags.c_contiguous
