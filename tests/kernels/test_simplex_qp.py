"""The pieces of the active-set kernel against dense linear algebra."""

import numpy as np
import pytest

from bmrm.kernels.masters import simplex_qp as kernel
from bmrm.kernels.masters import support_factor
from bmrm.kernels.masters.simplex_variables import QuadraticProgram

N, BLOCKS, SHIFT = 14, 2, 0.7


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, 20))
    return A @ A.T, rng.normal(size=N), np.arange(N) % BLOCKS


def program(G, c, block, alpha=None):
    alpha = np.zeros(N) if alpha is None else alpha
    return QuadraticProgram(G, np.diag(G).copy(), c, block, alpha, np.full(N, -1))


def shifted(G, block, members):
    """The Hessian of which `append` keeps the factor."""
    H = (G + SHIFT * np.equal.outer(block, block))[np.ix_(members, members)]
    return H + support_factor.RIDGE * np.diag(np.diag(H))


def factored(qp, members):
    support = np.zeros(N, dtype=np.int64)
    factor = support_factor.Factor(support, np.full((N, N), np.nan), np.full((BLOCKS, N), np.nan))
    for s, j in enumerate(members):
        support_factor.append(qp, factor, s, SHIFT, j)
    return factor


def check_factor(qp, members, factor):
    s, (support, L, U) = len(members), factor
    assert list(support[:s]) == list(members)
    assert [int(qp.where[j]) for j in range(N)] == [members.index(j) if j in members else -1 for j in range(N)]
    lower = np.tril(L[:s, :s])
    np.testing.assert_allclose(lower @ lower.T, shifted(qp.G, qp.block, members), rtol=1e-12, atol=1e-12)
    E = np.equal.outer(qp.block[members], np.arange(BLOCKS)).astype(float)
    np.testing.assert_allclose(lower @ U[:, :s].T, E, rtol=1e-11, atol=1e-11)


def test_factor_follows_those_who_enter_and_leave(problem):
    qp = program(*problem)
    rng = np.random.default_rng(1)
    members = [3, 7, 1, 8]
    factor = factored(qp, members)
    check_factor(qp, members, factor)
    room = np.empty(N), np.empty(N)
    for _ in range(60):
        outside = sorted(set(range(N)) - set(members))
        if len(members) > 1 and (not outside or rng.random() < 0.5):
            p = int(rng.integers(len(members)))
            support_factor.delete(qp.where, factor, len(members), p, *room)
            del members[p]
        else:
            j = int(rng.choice(outside))
            support_factor.append(qp, factor, len(members), SHIFT, j)
            members.append(j)
        check_factor(qp, members, factor)


def test_a_plane_like_another_gets_a_pivot(problem):
    G, c, block = problem
    G = G.copy()
    G[5], G[5, 5] = G[3], G[3, 3]
    G[:, 5] = G[5]
    L = factored(program(G, c, block), [3, 5]).L
    assert L[1, 1] > 0.0
    assert np.isfinite(L[:2, :2][np.tril_indices(2)]).all()


def test_solves_with_triangles(problem):
    G, c, block = problem
    members = [0, 2, 4, 5, 9]
    L = factored(program(G, c, block), members).L
    lower = np.tril(L[:5, :5])
    down, up = c[:5].copy(), c[:5].copy()
    support_factor.lower_solve(L, 5, down)
    support_factor.upper_solve(L, 5, up)
    np.testing.assert_allclose(lower @ down, c[:5], rtol=1e-12)
    np.testing.assert_allclose(lower.T @ up, c[:5], rtol=1e-12)


def test_small_solve_skips_empty_blocks():
    M = np.array([[4.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    x = np.array([1.0, 5.0, 2.0])
    expected = np.linalg.solve(M[np.ix_([0, 2], [0, 2])], x[[0, 2]])
    support_factor.small_solve(M.copy(), x, 3)
    np.testing.assert_allclose(x[[0, 2]], expected, rtol=1e-14)
    assert x[1] == 0.0


def test_direction_solves_the_optimality_conditions(problem):
    """G d + block multipliers = v with block sums of d zero."""
    G, c, block = problem
    members = [0, 1, 2, 6, 11]
    alpha = np.zeros(N)
    alpha[[0, 2, 6]], alpha[[1, 11]] = 1 / 3, 1 / 2
    qp = program(G, c, block, alpha)
    factor = factored(qp, members)
    v = np.empty(N)
    kernel.values_of_planes(G, c, N, alpha, v)
    np.testing.assert_allclose(v, c - G @ alpha, rtol=1e-13)
    d, level = np.empty(N), np.empty(BLOCKS)
    _, inside, _ = kernel.survey(qp, factor.support, 5, c, v, level, np.empty(BLOCKS))
    slope = kernel.direction(qp, factor, 5, v, level, d)
    E = np.equal.outer(block[members], np.arange(BLOCKS)).astype(float)
    system = np.block([[G[np.ix_(members, members)], E], [E.T, np.zeros((BLOCKS, BLOCKS))]])
    expected = np.linalg.solve(system, np.r_[v[members], np.zeros(BLOCKS)])[:5]
    np.testing.assert_allclose(d[:5], expected, rtol=1e-9, atol=1e-12)
    assert slope == pytest.approx(expected @ v[members], rel=1e-9)
    groups = [np.array([0, 2, 6]), np.array([1, 11])]
    np.testing.assert_allclose(level, [v[g].mean() for g in groups], rtol=1e-13)
    assert inside == pytest.approx(sum(v[g].max() - v[g].mean() for g in groups), rel=1e-12)


def test_gap_is_primal_minus_dual(problem):
    G, c, block = problem
    alpha = np.zeros(N)
    alpha[[0, 2]], alpha[1] = 0.5, 1.0
    support = np.array([0, 2, 1])
    v, top = c - G @ alpha, np.empty(BLOCKS)
    qp = program(G, c, block, alpha)
    gap = kernel.duality_gap(qp, support, 3, v, top)
    objective, _, largest = kernel.survey(qp, support, 3, c, v, np.empty(BLOCKS), top)
    assert largest == np.diag(G)[:3].max()
    dual = c @ alpha - 0.5 * alpha @ G @ alpha
    primal = 0.5 * alpha @ G @ alpha + sum(v[block == k].max() for k in range(BLOCKS))
    assert objective == pytest.approx(dual, rel=1e-13)
    assert gap == pytest.approx(primal - dual, rel=1e-13)


@pytest.mark.parametrize("room", [1, 3, N])
def test_solution_does_not_depend_on_the_room(problem, room):
    """With too little room the kernel says so, keeps what it has, and goes on from there."""
    G, c, block = problem
    alpha = np.zeros(N)
    alpha[:BLOCKS] = 1.0
    qp, v, moved = program(G, c, block, alpha), np.empty(N), np.zeros(N)
    s, shift, code, stop = 0, 1.0, kernel.NEEDS_ROOM, kernel.StopRule(1e-13, 0.0, 1000)
    support, L, U = np.zeros(0, dtype=np.int64), np.zeros((0, 0)), np.zeros((BLOCKS, 0))
    kernel.values_of_planes(G, c, N, alpha, v)
    while code != kernel.DONE:
        size = min(N, len(L) + room)
        bigger = np.zeros(size, dtype=np.int64), np.zeros((size, size)), np.zeros((BLOCKS, size))
        bigger[0][:s], bigger[1][:s, :s], bigger[2][:, :s] = support[:s], L[:s, :s], U[:, :s]
        support, L, U = factor = support_factor.Factor(*bigger)
        code, s, shift, gap, objective, _ = kernel.solve_simplex_qp(qp, factor, s, shift, c, v, moved, stop)
    start = np.zeros(N)
    start[:BLOCKS] = 1.0
    np.testing.assert_allclose(start + moved, alpha, atol=1e-12)
    np.testing.assert_allclose(v, c - G @ alpha, atol=1e-11)
    assert gap <= 1e-13 * abs(objective)
    for k in range(BLOCKS):
        assert alpha[block == k].sum() == pytest.approx(1.0)
        assert v[block == k].max() - v[(block == k) & (alpha > 0)].min() <= 1e-11
