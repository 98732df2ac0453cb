import numpy as np

from bmrm.kernels.masters import simplex_variables as kernel


def test_conclude_projects_onto_the_simplices():
    alpha = np.array([0.5, -1e-18, 1.5, 0.0, 0.0, 7.0])
    diagonal, block = np.array([1.0, 9.0, 2.0, 3.0, 9.0, 0.5]), np.array([0, 0, 0, 1, 1, 3])
    qp = kernel.QuadraticProgram(np.empty((6, 6)), diagonal, np.arange(6.0), block, alpha, np.full(6, -1))
    present, linear, largest = kernel.conclude(qp, 5, 6)
    np.testing.assert_allclose(alpha, [0.25, 0.0, 0.75, 1.0, 0.0, 1.0])
    assert (present, linear, largest) == (3, 0.75 * 2 + 3 + 5, 3.0)


def test_enlarge_borders_the_gram_matrix():
    """Two infima, with products 0, then planes; the first variable of a block takes its whole weight."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(6, 4)), rng.normal(size=6)
    G = A @ A.T
    block = np.array([0, 1, 1, 2, 0, 2])
    full, diagonal, offsets, alpha = np.full((8, 8), np.nan), np.empty(8), np.empty(8), np.empty(8)
    full[:2, :2], diagonal[:2], alpha[:2], offsets[:2] = 0.0, 0.0, 1.0, b[:2]
    blocks, where = np.r_[block[:2], np.full(6, -7)], np.full(8, 5)
    qp = kernel.QuadraticProgram(full, diagonal, offsets, blocks, alpha, where)
    for j in range(2, 6):
        kernel.enlarge(qp, j, G[j, 2 : j + 1].copy(), b[j], block[j])
    expected = G[:6, :6].copy()
    expected[:2] = expected[:, :2] = 0.0
    np.testing.assert_array_equal(full[:6, :6], expected)
    np.testing.assert_array_equal(diagonal[:6], np.diag(expected))
    np.testing.assert_array_equal(offsets[:6], b[:6])
    np.testing.assert_array_equal(blocks[:6], block)
    np.testing.assert_array_equal(alpha[:6], [1, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(where[2:6], -1)
