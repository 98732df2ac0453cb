"""The simplex kernel from the basis of the lower-bound planes, against scipy's linear programs."""

import numpy as np
import pytest
from scipy.optimize import linprog

from bmrm.kernels.masters import simplex_lp as kernel
from bmrm.kernels.masters.lp_basis import Basis, Program


def sizes(rows):
    return np.maximum(np.abs(rows).max(axis=0), 1e-300)


def empty_basis(program, room):
    p = program.rows.shape[1]
    K, n = program.K, program.n
    P, wherep = np.zeros(room, dtype=np.int64), np.full(n, -1)
    P[:K] = wherep[:K] = np.arange(K)
    X = np.zeros((room, room))
    X[:K, :K] = np.eye(K)
    return Basis(
        P,
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        wherep,
        np.full(p, -1),
        X,
        np.zeros(room),
        np.zeros((n, room)),
    )


def optimum(program):
    """max b'alpha, A alpha within [-1, 1], alpha on the simplices."""
    A = program.rows[: program.n].T
    sums = np.equal.outer(np.arange(program.K), program.block[: program.n]).astype(float)
    right = np.ones(2 * len(A))
    return -linprog(-program.b, np.vstack([A, -A]), right, sums, np.ones(program.K), method="highs").fun


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_and_what_proves_it(seed):
    rng = np.random.default_rng(seed)
    K, p = int(rng.integers(1, 4)), int(rng.integers(1, 25))
    n = K + int(rng.integers(0, 60))
    rows = np.zeros((n + 5, p))
    rows[K:n] = rng.normal(size=(n - K, p)) * rng.choice([0.0, 1.0, 3.0], size=(n - K, 1))
    if seed % 3 == 0:
        # many ties
        rows[K:n] = np.round(rows[K:n])
    b = np.round(rng.normal(size=n), 1 if seed % 3 == 0 else 12)
    program = Program(rows, sizes(rows), b, np.r_[np.arange(K), rng.integers(0, K, size=n - K)], K, n)
    basis, s, age, w = empty_basis(program, 4 + K), 0, 0, np.full(p, np.nan)
    while True:
        code, s, age, gap, _ = kernel.solve_simplex_lp(program, basis, s, age, w, 1e-12, 1000)
        if code != kernel.NEEDS_ROOM:
            break
        wide = empty_basis(program, 2 * len(basis.P))
        for old, new in zip(basis, wide):
            new[tuple(map(slice, old.shape))] = old
        basis = wide
    assert code == kernel.DONE
    q = K + s
    best, size = optimum(program), np.abs(b).max()
    alpha = np.zeros(n)
    alpha[basis.P[:q]] = basis.alpha[:q]
    assert alpha.min() >= -1e-10
    np.testing.assert_allclose(np.bincount(program.block, alpha, K), 1.0, atol=1e-10)
    assert np.abs(alpha @ rows[:n]).max() <= 1 + 1e-10
    assert alpha @ b == pytest.approx(best, abs=1e-9 * size)
    top = np.full(K, -np.inf)
    np.maximum.at(top, program.block, rows[:n] @ w + b)
    assert np.abs(w).sum() + top.sum() == pytest.approx(best, abs=1e-9 * size)
    assert gap <= 1e-11 * max(size, abs(best))
    # the basis is what it says
    np.testing.assert_array_equal(basis.wherep[basis.P[:q]], np.arange(q))
    np.testing.assert_array_equal(basis.wheres[basis.S[:s]], np.arange(s))
    M = np.hstack([np.equal.outer(program.block[basis.P[:q]], np.arange(K)), rows[basis.P[:q]][:, basis.S[:s]]])
    np.testing.assert_allclose(M @ basis.X[:q, :q], np.eye(q), atol=1e-8)
    assert set(np.flatnonzero(w)) <= set(basis.S[:s])


def test_a_ruined_inverse_is_made_anew():
    rng = np.random.default_rng(1)
    n, p = 40, 15
    rows = np.zeros((n, p))
    rows[1:] = rng.normal(size=(n - 1, p))
    program = Program(rows, sizes(rows), rng.normal(size=n), np.zeros(n, dtype=np.int64), 1, n)
    basis, w = empty_basis(program, 20), np.empty(p)
    code, s, age, _, _ = kernel.solve_simplex_lp(program, basis, 0, 0, w, 1e-12, 1000)
    assert code == kernel.DONE
    good = w.copy()
    basis.X[: 1 + s, : 1 + s] += 1e-6 * rng.normal(size=(1 + s, 1 + s))
    code, s, age, _, _ = kernel.solve_simplex_lp(program, basis, s, age, w, 1e-12, 1000)
    assert code == kernel.DONE
    assert age < kernel.AGE
    np.testing.assert_allclose(w, good, atol=1e-10)


def test_the_limit_is_told():
    rng = np.random.default_rng(2)
    rows = np.zeros((30, 9))
    rows[1:] = rng.normal(size=(29, 9))
    program = Program(rows, sizes(rows), rng.normal(size=30), np.zeros(30, dtype=np.int64), 1, 30)
    code, _, _, gap, steps = kernel.solve_simplex_lp(program, empty_basis(program, 20), 0, 0, np.empty(9), 0.0, 2)
    assert (code, steps) == (kernel.STUCK, 2)
    assert gap > 0.0
