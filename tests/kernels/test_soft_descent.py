"""Kernels for l1 and elastic net against NumPy."""

import numpy as np
import pytest

from bmrm.kernels.masters import soft_descent as kernel


def quadratic(n, seed=0):
    random = np.random.default_rng(seed)
    A = random.normal(size=(2 * n, n))
    return A.T @ A / n, random.normal(size=n), random.normal(size=n) * (random.random(n) < 0.5)


def distance(gradient, w, l1, l2):
    z = gradient + l2 * w
    return np.where(w != 0.0, np.abs(z + l1 * np.sign(w)), np.maximum(np.abs(z) - l1, 0.0))


@pytest.mark.parametrize("n", [1, 7, 64])
def test_violations_are_distances_to_the_subdifferential(n):
    _, gradient, w = quadratic(n)
    out = np.empty(n)
    worst = kernel.violations(gradient, w, 0.4, 0.1, out)
    np.testing.assert_allclose(out, distance(gradient, w, 0.4, 0.1), rtol=1e-14)
    assert worst == out.max()


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 7, 64])
def test_sweeps_visit_coordinates_in_turn_and_end_at_the_minimum(n, l2):
    H, c, start = quadratic(n)
    w, q = start.copy(), H @ start + c
    kernel.gram_sweeps(H, q, w, 0.4, l2, 0.0, 1)
    slow = start.copy()
    for j in range(n):
        z = c[j] + H[j] @ slow - H[j, j] * slow[j]
        slow[j] = -np.sign(z) * max(abs(z) - 0.4, 0.0) / (H[j, j] + l2)
    np.testing.assert_allclose(w, slow, atol=1e-12)
    np.testing.assert_allclose(q, H @ w + c, atol=1e-11)
    assert kernel.gram_sweeps(H, q, w, 0.4, l2, 1e-11, 10000) <= 1e-11
    assert distance(H @ w + c, w, 0.4, l2).max() < 1e-9
