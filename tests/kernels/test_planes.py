import numpy as np
import pytest

from bmrm.kernels.products import planes as kernel


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 11])
@pytest.mark.parametrize("dim", [1, 7, kernel.CHUNK - 1, kernel.CHUNK, 2 * kernel.CHUNK + 3])
def test_products_and_combinations_are_those_of_numpy(count, dim):
    rng = np.random.default_rng(count + dim)
    rows, x, start = rng.normal(size=(count, dim)), rng.normal(size=dim), rng.normal(size=dim)
    out = np.full(count, np.nan)
    kernel.products(rows, x, out)
    np.testing.assert_allclose(out, rows @ x, rtol=1e-12, atol=1e-11)
    for share in (0.0, 0.5, 1.0):
        alpha = np.where(rng.random(count) < share, rng.normal(size=count), 0.0)
        total = start.copy()
        kernel.combine(alpha, rows, total)
        np.testing.assert_allclose(total, start + alpha @ rows, rtol=1e-12, atol=1e-12)


def test_rows_of_weight_zero_are_not_read():
    rows = np.array([[np.nan, np.inf], [1.0, 2.0]])
    total = np.zeros(2)
    kernel.combine(np.array([0.0, 3.0]), rows, total)
    np.testing.assert_array_equal(total, [3.0, 6.0])
