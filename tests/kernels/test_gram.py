"""Weighted Gram matrices of sparse rows against NumPy."""

import numpy as np
import pytest

from bmrm.data.matrix import Csr
from bmrm.kernels.products import gram, gram_dense
from bmrm.kernels.workers import Workers
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products import Columns
from tests.kernels.test_csr import matrix, parts


def expected(X, weights):
    table = X.toarray().astype(np.float64)
    return table.T @ (weights[:, None] * table)


def weights_of(rows, seed=2):
    """Of both signs, many of them 0."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=rows) * (rng.random(rows) < 0.7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_lower_triangle_is_the_weighted_product(dtype, density):
    X = matrix(density=density, dtype=dtype)
    weights = weights_of(X.shape[0])
    out = np.zeros((17, 17))
    gram.add_gram(*parts(X), weights, out)
    np.testing.assert_allclose(out, np.tril(expected(X, weights)), atol=1e-12)
    gram.mirror(out)
    np.testing.assert_allclose(out, expected(X, weights), atol=1e-12)


def test_valueless_rows_count_pairs():
    X = matrix()
    X.data[:] = 1.0
    weights, out = weights_of(X.shape[0]), np.ones((17, 17))
    indptr, indices, _ = parts(X)
    gram.add_gram_valueless(indptr, indices, weights, out)
    np.testing.assert_allclose(out - 1.0, np.tril(expected(X, weights)), atol=1e-12)


@pytest.mark.parametrize("ones", [False, True])
def test_some_columns(ones):
    X = matrix()
    if ones:
        X.data[:] = 1.0
    weights, chosen = weights_of(X.shape[0]), np.array([0, 3, 4, 9, 16])
    position = np.full(17, -1)
    position[chosen] = np.arange(5)
    out = np.zeros((5, 5))
    indptr, indices, values = parts(X)
    gram.add_gram_of_columns(indptr, indices, np.ones(1) if ones else values, ones, weights, position, out)
    np.testing.assert_allclose(out, np.tril(expected(X, weights)[np.ix_(chosen, chosen)]), atol=1e-12)


@pytest.mark.parametrize("ones", [False, True])
def test_nearly_full_rows_and_threads_change_nothing(ones):
    X = matrix(rows=3000, columns=60, density=0.9)
    if ones:
        X.data[:] = 1.0
    weights = weights_of(3000)
    data = Csr.from_scipy(X)
    data = data.without_unit_values() if ones else data
    for threads in (1, 3):
        found = DataMap(data, workers=Workers(threads)).gram(weights)
        np.testing.assert_allclose(found, expected(X, weights), rtol=1e-11, atol=1e-10)
        assert np.array_equal(found, found.T)
    assert DataMap(data).active(weights) == np.count_nonzero(weights)


def test_threads_share_sparse_rows():
    X = matrix(rows=60000, columns=30, density=0.5)
    weights = weights_of(60000)
    one, three = (DataMap(Csr.from_scipy(X), workers=Workers(threads)).gram(weights) for threads in (1, 3))
    np.testing.assert_allclose(three, one, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 5, 8, 24, 25])
def test_dense_rows_of_few_features(dtype, width):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(700, width)).astype(dtype)
    weights = weights_of(700)
    full = X.astype(np.float64)
    triangle, sums = np.zeros((width, width)), np.ones(width)
    gram_dense.add_gram(X, weights, np.flatnonzero(weights), triangle, sums)
    np.testing.assert_allclose(triangle, np.tril(full.T @ (weights[:, None] * full)), atol=1e-10)
    np.testing.assert_allclose(sums - 1.0, weights @ full, atol=1e-11)
    columns = Columns(scale=rng.uniform(0.5, 2.0, width), shift=rng.normal(size=width))
    inputs = np.column_stack([(full - columns.shift) * columns.scale, np.ones(700)])
    found = DataMap(X, columns=columns, bias=True).gram(weights)
    np.testing.assert_allclose(found, inputs.T @ (weights[:, None] * inputs), atol=1e-9)
    some = np.unique([0, width - 1, width])
    np.testing.assert_allclose(
        DataMap(X, columns=columns, bias=True).gram(weights, some), found[np.ix_(some, some)], atol=1e-9
    )
