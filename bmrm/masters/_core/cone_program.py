"""The linear algebra of one cone program: constraints that are planes and, for each block, a few entries a row.

    minimise  q'x + 1/2 x' diag(P) x    with  h - G x in a product of half-lines and second-order cones,

where x = (w, u, s, xi): weights, |w| of some, norms of some blocks, values of terms. The rows of G are heights (planes,
w and one xi each; floors, one xi), pairs (w_j and u_j, with either sign), bounds (one w_j), cones (s_b, then w_j of its
block).

An interior point solves, at each step, [P G'; G -W'W] [x; z] = [a; b] for a scaling W. All but the heights couple the
variables of one block only: u, s, and then w are eliminated, and what is left is as large as the planes are many,

    (T D^-1 T' + W^2) z = right-hand side,    D = diagonal + one column times its transpose per cone,

where T are the planes less one of their term, which leaves xi out (normal equations of interior points: Andersen, Dahl,
Liu & Vandenberghe 2012, *Interior-point methods for large-scale cone programming*, section 1.2). So a step costs
planes^2 (weights + planes / 3) operations, and no matrix of weights x weights is formed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import coo_array

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Constraints:
    """G and h, in units of the variables, and each row in units of its largest entry.

    Parameters
    ----------
    tangents : the slopes of the planes in the weights; (planes, weights).
    term, share : of each plane the term whose xi it bounds, and the factor of that.
    thin : the weights that have a pair of rows.
    above, below : the weights that have an upper bound, and a lower one.
    cones : the weights of each cone.
    units : of all variables, those of |w| as those of w.
    h : the right-hand sides, 0 for pairs; those of cones count for no unit: all rows of one have the unit of its norm.

    Attributes
    ----------
    h : the same, in units of the rows.
    sizes : those units.
    dims : how many rows are in half-lines, and how many in each cone, as cvxopt has them.
    """

    def __init__(
        self,
        tangents: Array,
        term: Index,
        share: Array,
        thin: Index,
        above: Index,
        below: Index,
        cones: Sequence[Index],
        units: Array,
        h: Array,
    ) -> None:
        planes, weights = tangents.shape
        ends = np.cumsum([weights, len(thin), len(cones)]).tolist()
        w, u, s, xi = np.split(units, ends)
        self.parts = [slice(a, b) for a, b in pairwise([0, *ends, len(units)])]
        heights = planes + len(xi)
        lengths = np.array([1 + len(members) for members in cones], dtype=np.int64)
        self.thin, self.bounded = thin, np.concatenate([above, below])
        self.members = np.concatenate([np.empty(0, np.int64), *cones])
        self.heights = slice(0, heights)
        self.plus, self.minus, self.bounds, self.cones = (
            slice(a, b) for a, b in _ranges(heights, len(thin), len(thin), len(self.bounded), int(lengths.sum()))
        )
        self.starts = np.cumsum(lengths) - lengths  # within the rows of cones
        self.inside = np.delete(np.arange(int(lengths.sum())), self.starts)  # those that are not norms
        self.owner = np.repeat(np.arange(len(cones)), lengths - 1)
        self.dims = {"l": self.bounds.stop, "q": lengths.tolist(), "s": []}

        rows = np.maximum((np.abs(tangents) * w).max(axis=1, initial=0.0), share * xi[term])
        plain = np.concatenate([rows, xi, u, u, w[self.bounded]])
        self.sizes = np.concatenate([np.maximum(plain, np.abs(h[: len(plain)])), np.repeat(s, lengths)])
        self.h = h / self.sizes
        self.term = np.concatenate([term, np.arange(len(xi))])
        self.e = np.concatenate([share, np.ones(len(xi))]) * xi[self.term] / self.sizes[:heights]
        self.T = np.vstack([tangents * w / self.sizes[:planes, None], np.zeros((len(xi), weights))])
        sign = np.repeat([1.0, -1.0], [len(above), len(below)])
        self.slopes = sign * w[self.bounded] / self.sizes[self.bounds]
        self.ratios = w[self.members] / s[self.owner]
        self._rest = self._sides(len(units) - len(xi))
        self._transposed = self._rest.T.tocsr()

    def _sides(self, width: int) -> Any:
        """All rows but the heights, which have no xi, as a sparse matrix."""
        _, u, s, _ = (np.arange(part.start, part.stop) for part in self.parts)
        pair, one = np.arange(2 * len(self.thin)), np.ones(len(self.thin))
        bounds, cones = self.bounds.start - self.plus.start, self.cones.start - self.plus.start
        row = [pair, pair, bounds + np.arange(len(self.bounded)), cones + self.starts, cones + self.inside]
        column = [np.tile(self.thin, 2), np.tile(u, 2), self.bounded, s, self.members]
        entry = [one, -one, -one, -one, self.slopes, -np.ones(len(s)), -self.ratios]
        place = (np.concatenate(row), np.concatenate(column))
        return coo_array((np.concatenate(entry), place), (len(self.sizes) - self.heights.stop, width)).tocsr()

    def times(self, x: Array) -> Array:
        """G x."""
        w, _, _, xi = self.parts
        return np.concatenate([self.T @ x[w] - self.e * x[xi][self.term], self._rest @ x[: xi.start]])

    def transposed_times(self, z: Array) -> Array:
        """G'z."""
        high = z[self.heights]
        xi = np.bincount(self.term, weights=self.e * high)
        out: Array = np.concatenate([self._transposed @ z[self.heights.stop :], -xi])
        out[self.parts[0]] += self.T.T @ high
        return out


def _ranges(start: int, *lengths: int) -> list[tuple[int, int]]:
    ends = np.cumsum([start, *lengths]).tolist()
    return list(pairwise(ends))


class Eliminated:
    """The systems of one `Constraints` and one diagonal P, which is 0 but for the weights.

    Parameters
    ----------
    augmented : whether w and z are solved for together, by LU: (weights + planes)^3 operations, for systems that
        Cholesky's method calls singular.
    """

    def __init__(self, constraints: Constraints, P: Array, augmented: bool = False) -> None:
        self._G, self._P, self._augmented = constraints, P[constraints.parts[0]], augmented

    def factored(self, W: Mapping[str, Any]) -> Callable[[Array, Array], tuple[Array, Array]]:
        """The map (a, b) -> (x, W z), for a scaling as of cvxopt; raises ArithmeticError where it is singular."""
        G, d = self._G, np.array(W["d"]).ravel()
        hold = 1.0 / np.square(d)
        D = self._P.copy()
        np.add.at(D, G.bounded, np.square(G.slopes) * hold[G.bounds])
        plus, minus = hold[G.plus], hold[G.minus]
        stiff = plus + minus  # of u; with w it has minus - plus
        D[G.thin] += 4.0 * plus / stiff * minus
        cones = _Cones(G, W, D)
        solve = self._differences(D, cones, np.square(d[G.heights]))

        def solved(a: Array, b: Array) -> tuple[Array, Array]:
            held = np.concatenate([hold * b[: len(d)], cones.scaled(cones.scaled(b[G.cones]))])
            held[G.heights] = 0.0
            a = a + G.transposed_times(held)
            w, u, s, xi = (a[part] for part in G.parts)
            w[G.thin] -= (minus - plus) / stiff * u
            w[G.members] -= cones.cross * (s / cones.stiff)[G.owner]
            w, xi, z = solve(w, xi, b[G.heights])
            u = (u - (minus - plus) * w[G.thin]) / stiff
            s = (s - np.bincount(G.owner, weights=cones.cross * w[G.members], minlength=len(s))) / cones.stiff
            x = np.concatenate([w, u, s, xi])
            rest = G.times(x) - b
            scaled = np.concatenate([rest[: len(d)] / d, cones.scaled(rest[G.cones])])
            scaled[G.heights] = d[G.heights] * z
            return x, scaled

        return solved

    def _differences(
        self, D: Array, cones: _Cones, damping: Array
    ) -> Callable[[Array, Array, Array], tuple[Array, Array, Array]]:
        """Of heights: the map (a, c, b) -> (w, xi, z) with D w + T'z = a, -E'z = c, T w - E xi - damping z = b.

        The row of each term whose multiplier is largest is subtracted from the term's others, which leaves no xi.
        Eliminated as a variable of its own, xi would spoil w where P is positive; eliminated last, z, where P is 0.
        """
        T, e, term = self._G.T, self._G.e, self._G.term
        slack = damping / np.square(e)
        order = np.lexsort((slack, term))
        firsts = order[np.unique(term[order], return_index=True)[1]]  # of each term, by number
        others = np.delete(np.arange(len(term)), firsts)
        mine = term[others]
        ratio = e[others] / e[firsts][mine]
        rows = T[others] - ratio[:, None] * T[firsts][mine]
        common = slack[firsts]
        inner = np.outer(e[others], e[others] * common[mine])
        if len(firsts) > 1:
            inner[np.not_equal.outer(mine, mine)] = 0.0
        inner[np.diag_indices_from(inner)] += damping[others]
        solve = (_augmented if self._augmented else _normal)(rows, D, cones, inner)

        def solved(a: Array, c: Array, b: Array) -> tuple[Array, Array, Array]:
            first, z = c / e[firsts], np.empty(len(term))  # -z of the first rows, were they alone
            a, below = a + first @ T[firsts], b[others] - ratio * b[firsts][mine] + e[others] * (common * c)[mine]
            w, z[others] = solve(a, below)
            z[firsts] = -first - np.bincount(mine, weights=ratio * z[others], minlength=len(firsts))
            xi = (T[firsts] @ w - damping[firsts] * z[firsts] - b[firsts]) / e[firsts]
            return w, xi, z

        return solved


class _Cones:
    """The scalings of all cones, and what is left of them when their norms s are eliminated; D gets its diagonal.

    With W = beta (2 v v' - J), J = diag(1, -I), it is W^-2 = (2 t t' - J) / beta^2, t = (2 v_0^2 - 1, -2 v_0 v_1). Rows
    -s and -g w then have, without s, (g_j / beta)^2 on the diagonal of D less a column times its transpose.

    Attributes
    ----------
    stiff, cross : of s, and of s with the weights.
    column, spread : D is its diagonal less column column' (2 / spread), in each cone.
    pulled : D^-1 is the inverse of the diagonal and pulled pulled'.
    """

    def __init__(self, constraints: Constraints, W: Mapping[str, Any], D: Array) -> None:
        G = self._G = constraints
        v = np.concatenate([np.empty(0), *(np.array(part).ravel() for part in W["v"])])
        beta = np.array(W["beta"], dtype=np.float64)
        self._q, self._beta = -v, np.repeat(beta, G.dims["q"])
        self._q[G.starts] *= -1.0
        first = v[G.starts]
        t_0, t_1 = 2.0 * np.square(first) - 1.0, 2.0 * first[G.owner] * self._q[G.inside]
        self.spread = 1.0 + 2.0 * self._sums(np.square(t_1))
        inner = G.ratios / beta[G.owner]
        self.stiff, self.cross = self.spread / np.square(beta), 2.0 * inner * t_1 * (t_0 / beta)[G.owner]
        self.column = inner * t_1
        before = D[G.members]
        D[G.members] += np.square(inner)
        after = D[G.members]
        # spread - 2 <column, column / D>, without the cancellation
        left = 1.0 + 2.0 * self._sums(np.square(t_1) * (before / after))
        self.pulled = self.column / after * np.sqrt(2.0 / left)[G.owner]

    def _sums(self, values: Array) -> Array:
        """Of what weights in cones have, one sum a cone."""
        sums: Array = np.bincount(self._G.owner, weights=values, minlength=len(self._G.starts)).astype(np.float64)
        return sums

    def scaled(self, y: Array) -> Array:
        """W^-1 y."""
        G = self._G
        if not len(y):
            return y
        sums: Array = np.add.reduceat(self._q * y, G.starts)
        out: Array = self._q * np.repeat(2.0 * sums, G.dims["q"]) + y
        out[G.starts] -= 2.0 * y[G.starts]
        out /= self._beta
        return out

    def times_pulled(self, T: Array) -> Array:
        """T times the matrix of the columns `pulled`; (rows, cones)."""
        G = self._G
        if not len(G.members):
            return np.empty((len(T), 0))
        products = T[:, G.members] * self.pulled
        return np.add.reduceat(products, G.starts - np.arange(len(G.starts)), axis=1)

    def add_pulled(self, a: Array, out: Array) -> None:
        """out += pulled pulled' a, in each cone."""
        G = self._G
        out[G.members] += self.pulled * self._sums(self.pulled * a[G.members])[G.owner]

    def subtract_from(self, matrix: Array) -> None:
        """Take the columns times their transposes from a matrix of weights."""
        G = self._G
        same = np.equal.outer(G.owner, G.owner)
        scaled = self.column * np.sqrt(2.0 / self.spread)[G.owner]
        matrix[np.ix_(G.members, G.members)] -= np.where(same, np.outer(scaled, scaled), 0.0)


Solve = Callable[[Array, Array], tuple[Array, Array]]
"""(a, b) -> (w, z) with D w + T'z = a and T w - damping z = b."""


def _normal(T: Array, D: Array, cones: _Cones, damping: Array) -> Solve:
    """By Cholesky's method on T D^-1 T' + damping."""
    inverse = 1.0 / D
    half = np.hstack([T * np.sqrt(inverse), cones.times_pulled(T)])
    matrix = half @ half.T + damping
    unit = 1.0 / np.sqrt(np.diagonal(matrix))
    factor, indefinite = lapack.dpotrf(matrix * unit * unit[:, None], lower=True)
    if indefinite or not np.all(np.isfinite(factor)):
        raise ArithmeticError("the matrix is not positive definite")  # which cvxopt understands

    def over_D(a: Array) -> Array:
        out: Array = inverse * a
        cones.add_pulled(a, out)
        return out

    def solve(a: Array, b: Array) -> tuple[Array, Array]:
        z = unit * lapack.dpotrs(factor, unit * (T @ over_D(a) - b), lower=True)[0]
        return over_D(a - z @ T), z

    return solve


def _augmented(T: Array, D: Array, cones: _Cones, damping: Array) -> Solve:
    """By elimination with pivots on both equations."""
    n, d = T.shape
    matrix = np.zeros((d + n, d + n))
    matrix[:d, :d] = np.diag(D)
    cones.subtract_from(matrix)
    matrix[:d, d:], matrix[d:, :d], matrix[d:, d:] = T.T, T, -damping
    unit = 1.0 / np.sqrt(np.concatenate([D, np.diagonal(damping) + np.square(T) @ (1.0 / D)]))
    lu, pivots, singular = lapack.dgetrf(matrix * unit * unit[:, None])
    if singular or not np.all(np.isfinite(lu)):
        raise ArithmeticError("the matrix is singular")

    def solve(a: Array, b: Array) -> tuple[Array, Array]:
        both = unit * lapack.dgetrs(lu, pivots, unit * np.concatenate([a, b]))[0]
        return both[:d], both[d:]

    return solve
