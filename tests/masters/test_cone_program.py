"""The eliminated systems of cone programs against the whole ones, written out and solved as they stand."""

import numpy as np
import pytest

from bmrm.masters._core.cone_program import Constraints, Eliminated

WEIGHTS, PLANES = 7, 5
THIN, ABOVE, BELOW, CONES = (
    np.array([1, 4, 6]),
    np.array([0, 1]),
    np.array([0, 3]),
    [np.array([2]), np.array([5, 3, 4])],
)


def drawn(terms, spread):
    random = np.random.default_rng([terms, int(spread)])
    tangents, term = random.normal(size=(PLANES, WEIGHTS)), np.arange(PLANES) % terms
    share = 2.0 ** -random.integers(0, 5, size=PLANES)
    units = 10.0 ** random.uniform(-spread, spread, size=WEIGHTS)
    units = np.concatenate([units, units[THIN], units[[2, 5]], np.full(terms, 3.0)])
    h = random.normal(size=PLANES + terms + 2 * len(THIN) + 4 + 2 + 4)
    h[PLANES + terms :][: 2 * len(THIN)] = 0.0
    return (tangents, term, share, THIN, ABOVE, BELOW, CONES, units, h), random


def written_out(tangents, term, share, thin, above, below, cones, units, h):
    """G row by row, in plain units, then scaled as it says: by the largest entry or h, rows of cones by their norm."""
    width, rows, sizes = len(units), [], []
    u, s, xi = WEIGHTS, WEIGHTS + len(thin), WEIGHTS + len(thin) + len(cones)

    def row(*entries, size=None):
        line = np.zeros(width)
        for place, value in entries:
            line[place] = value * units[place]
        sizes.append(max(np.abs(line).max(), abs(h[len(rows)])) if size is None else size)
        rows.append(line / sizes[-1])

    for slopes, k, factor in zip(tangents, term, share):
        row(*enumerate(slopes), (xi + k, -factor))
    for k in range(width - xi):
        row((xi + k, -1.0))
    for sign in (1.0, -1.0):
        for k, j in enumerate(thin):
            row((j, sign), (u + k, -1.0))
    for j in above:
        row((j, 1.0))
    for j in below:
        row((j, -1.0))
    for k, members in enumerate(cones):
        row((s + k, -1.0), size=units[s + k])
        for j in members:
            row((j, -1.0), size=units[s + k])
    return np.array(rows), np.array(sizes)


def scaling(random, lines, far):
    """W at random, as cvxopt has it, and as a matrix."""
    d = 10.0 ** random.uniform(-far, far, size=lines)
    W = {"d": d, "v": [], "beta": (10.0 ** random.uniform(-far, far, size=len(CONES))).tolist()}
    blocks = [np.diag(d)]
    for members, beta in zip(CONES, W["beta"]):
        rest = random.normal(size=len(members))
        v = np.concatenate([[np.sqrt(1.0 + rest @ rest)], rest])
        W["v"].append(v)
        blocks.append(beta * (2.0 * np.outer(v, v) - np.diag([1.0] + [-1.0] * len(rest))))
    whole = np.zeros((sum(map(len, blocks)),) * 2)
    place = 0
    for block in blocks:
        whole[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return W, whole


@pytest.mark.parametrize("terms", [1, 2])
def test_products_are_those_of_the_matrix_written_out(terms):
    parts, random = drawn(terms, 1.0)
    G, (matrix, sizes) = Constraints(*parts), written_out(*parts)
    x, z = random.normal(size=matrix.shape[1]), random.normal(size=len(matrix))
    np.testing.assert_allclose(G.sizes, sizes, rtol=1e-14)
    np.testing.assert_allclose(G.times(x), matrix @ x, atol=1e-13)
    np.testing.assert_allclose(G.transposed_times(z), matrix.T @ z, atol=1e-13)


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("far", [0.0, 3.0])
@pytest.mark.parametrize("terms", [1, 2])
def test_a_system_is_solved_as_the_whole_one(terms, far, curved, augmented):
    parts, random = drawn(terms, 0.3)
    G, (matrix, _) = Constraints(*parts), written_out(*parts)
    m, n = matrix.shape
    P = np.zeros(n)
    P[:WEIGHTS] = random.uniform(0.5, 2.0, size=WEIGHTS) if curved else 0.0
    W, whole = scaling(random, G.dims["l"], far)
    a, b = random.normal(size=n), random.normal(size=m)
    if not curved:
        P[:WEIGHTS] = 1e-6  # every weight needs something to hold it
    x, scaled = Eliminated(G, P, augmented).factored(W)(a, b)
    z = np.linalg.solve(whole, scaled)
    size = np.abs(x).max() * max(1.0, np.abs(matrix).max()) + np.abs(scaled).max() * np.abs(whole).max()
    assert np.abs(P * x + matrix.T @ z - a).max() <= 1e-12 * max(np.abs(z).max(), np.abs(a).max(), size)
    assert np.abs(matrix @ x - whole.T @ scaled - b).max() <= 1e-12 * size


def test_what_cannot_be_factored_is_said_in_the_words_of_cvxopt():
    parts, _ = drawn(1, 0.3)
    G = Constraints(*parts)
    W, _ = scaling(np.random.default_rng(0), G.dims["l"], 0.0)
    with pytest.raises(ArithmeticError), np.errstate(all="ignore"):
        Eliminated(G, np.full(len(parts[7]), np.nan)).factored(W)
