"""Conjugate gradients against a dense solution."""

import numpy as np

from bmrm.numerics.conjugate_gradients import ConjugateGradients


def test_as_many_steps_as_dimensions_solve_a_system():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 7))
    H, right = A.T @ A, rng.normal(size=7)
    for inverse in (np.ones(7), 1.0 / np.diagonal(H)):
        cg, x = ConjugateGradients(right, lambda r, inverse=inverse: inverse * r), np.zeros(7)
        for _ in range(7):
            direction = cg.direction
            x = x + cg.advance(H @ direction) * direction
            np.testing.assert_allclose(cg.residual, right - H @ x, atol=1e-10)
            assert abs(cg.direction @ H @ direction) <= 1e-8
        np.testing.assert_allclose(x, np.linalg.solve(H, right), rtol=1e-8)


def test_without_curvature_there_is_no_step():
    cg = ConjugateGradients(np.ones(3), lambda r: r)
    for product in (np.zeros(3), -np.ones(3), np.full(3, np.inf)):
        assert cg.advance(product) is None
        np.testing.assert_array_equal(cg.residual, np.ones(3))
