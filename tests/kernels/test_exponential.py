"""Exponentials of arrays against NumPy's."""

import numpy as np
import pytest

from bmrm.kernels.rows.exponential import RUN, exponentiate


@pytest.mark.parametrize("size", [0, 1, 7, RUN, 3 * RUN + 5])
def test_they_are_those_of_numpy(size):
    x = np.random.default_rng(size).uniform(-708.0, 709.4, size)
    ours = x.copy()
    exponentiate(ours)
    np.testing.assert_allclose(ours, np.exp(x), rtol=5e-16)


def test_small_numbers_keep_their_digits():
    x = np.array([0.0, -0.0, 1e-300, -1e-17, 1e-9, -1e-9, np.log(2.0) / 2.0])
    ours = x.copy()
    exponentiate(ours)
    np.testing.assert_allclose(ours, np.exp(x), rtol=3e-16)


def test_what_is_too_large_or_small_or_no_number():
    x = np.array([709.7, 709.79, 1e9, np.inf, -708.5, -1e9, -np.inf, np.nan])
    exponentiate(x)
    assert x[0] == pytest.approx(np.exp(709.7), rel=1e-10)
    assert np.all(x[1:4] == np.inf)
    assert x[4] == pytest.approx(np.exp(-708.5), rel=1e-14)
    assert np.all(x[5:7] == 0.0)
    assert np.isnan(x[7])
