"""Kernels of limited-memory BFGS against NumPy."""

import numpy as np
import pytest

from bmrm.kernels.products.quasi_newton import CHUNK, combined, pair_products, store_pair


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def pairs(rng):
    """Three pairs in use of four, over more than one chunk."""
    S, Y = (rng.standard_normal((4, CHUNK + 7)).astype(np.float32) for _ in range(2))
    S[3], Y[3] = np.nan, np.nan
    return S, Y


def test_products_are_sums_of_double_precision_over_the_rows_in_use(pairs, rng):
    S, Y = pairs
    g = rng.standard_normal(S.shape[1])
    products = np.full((4, 4), 7.0)
    pair_products(S, Y, 3, 1, g, products)
    y = Y[1].astype(float)
    expected = np.array([S[:3] @ g, Y[:3] @ g, S[:3] @ y, Y[:3] @ y]).T
    np.testing.assert_allclose(products[:3], expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(products[3], 7.0)


def test_a_combination_does_not_read_rows_without_a_coefficient(pairs, rng):
    S, Y = pairs
    g, out = rng.standard_normal(S.shape[1]), np.empty(S.shape[1])
    along_s, along_y = rng.standard_normal(3), rng.standard_normal(3)
    slope = combined(S, Y, along_s, along_y, -0.5, g, out)
    np.testing.assert_allclose(out, -0.5 * g + along_s @ S[:3] + along_y @ Y[:3], rtol=1e-12, atol=1e-12)
    assert slope == pytest.approx(out @ g, rel=1e-12)


def test_a_pair_is_stored_for_a_step_of_length_one(rng):
    step, after, before = rng.standard_normal((3, 50))
    s, y = np.empty((2, 50), np.float32)
    length = float(np.linalg.norm(step))
    store_pair(s, y, step, after, before, length, 0.5)
    np.testing.assert_allclose(s, step / length, rtol=1e-6)
    np.testing.assert_allclose(y, (after - before) / (0.5 * length), rtol=1e-6, atol=1e-6)
