"""A regularizer whose parts are groups of features, in one file, and a solver that asks for its blocks."""

import math
from dataclasses import dataclass
from typing import ClassVar

import cvxopt
import numpy as np
import pytest

import bmrm
from bmrm import extend
from bmrm.problem import Iteration, Scored, ability

GROUPS = ((0, 1, 2), (3, 4), (5, 6, 7, 8))


@dataclass(frozen=True)
class GroupL2(extend.ScaledBy):
    """lambda times the sum over groups of features of sqrt(size) ||w_group|| (Yuan & Lin 2006)."""

    groups: tuple[tuple[int, ...], ...] = extend.parameter(GROUPS, doc="features by group", example=GROUPS)

    def bind(self, space):
        blocks = tuple(space.coordinates(np.array(group)) for group in self.groups)
        free = np.setdiff1d(np.arange(space.dim), np.concatenate(blocks))
        blocks += tuple(space.coordinates(np.array([k])) for k in sorted({int(c) // space.scores for c in free}))
        return Blocks(self.lam, blocks)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The same for vectors: blocks of coordinates; those in no group are blocks of one feature."""

    lam: float
    blocks: tuple[np.ndarray, ...]
    smooth: ClassVar[bool] = False

    def _terms(self, w):
        return [(block, self.lam * math.sqrt(block.size), float(np.linalg.norm(w[block]))) for block in self.blocks]

    def value(self, w):
        return sum(strength * norm for _, strength, norm in self._terms(w))

    def subgradient(self, w):
        slope = np.zeros_like(w)
        for block, strength, norm in self._terms(w):
            slope[block] = strength * w[block] / norm if norm > 0.0 else 0.0
        return slope

    def along(self, w, step):
        def evaluate(t):
            points = [w + one * step for one in np.ravel(t)]
            values = [self.value(point) for point in points]
            slopes = [float(self.subgradient(point) @ step) for point in points]
            return np.reshape(values, np.shape(t)), np.reshape(slopes, np.shape(t))

        return evaluate

    def feasible(self, v):
        """The largest s in [0, 1] with every dual norm of s v at most its strength."""
        scales = [strength / norm for _, strength, norm in self._terms(v) if norm > strength]
        return min(1.0, *scales) * (1.0 - 1e-15) if scales else 1.0

    def conjugate(self, v):
        return 0.0 if all(norm <= strength * (1.0 + 1e-14) for _, strength, norm in self._terms(v)) else math.inf

    def prox(self, v, step):
        w = v.copy()
        for k in range(len(self.blocks)):
            w[self.blocks[k]] = self.prox_of(k, v[self.blocks[k]], step)
        return w

    def prox_of(self, k, v, step):
        """The prox of one block: what block coordinate descent needs."""
        norm, strength = float(np.linalg.norm(v)), step * self.lam * math.sqrt(v.size)
        return v * (1.0 - strength / norm) if norm > strength else np.zeros_like(v)


@dataclass(frozen=True)
class BlockDescent:
    """Block coordinate descent on least squares in Gram space, for any Omega with `blocks` and `prox_of`.

    The bound is that of the present slopes s, scaled until they are feasible, with phi*(s) = m/2 ||s||^2 + <s, y>.
    """

    tolerance: float = 1e-7

    def minimize(self, risk, regularizer, *, start=None, callback=None):
        map, phi = (scored := ability(risk, Scored)).map, scored.phi
        w, bound, history = np.zeros(risk.dim) if start is None else start.copy(), -np.inf, []
        hessian = map.gram(phi.hessian_diagonal(map.matvec(w)))
        steepest = [max(1e-300, np.linalg.norm(hessian[np.ix_(b, b)], 2)) for b in regularizer.blocks]
        for k in range(500):
            f = map.matvec(w)
            value, slope = phi.value_and_slope(f)
            gradient, omega = map.rmatvec(slope), regularizer.value(w)
            scale = regularizer.feasible(-gradient)
            # phi*(t s) of a quadratic of curvature 1/m, from phi*(s) = <s, f> - phi(f)
            conjugate, square = float(slope @ f) - value, 0.5 * slope.size * float(slope @ slope)
            bound = max(bound, -(scale * (conjugate - square) + scale**2 * square))
            history.append(Iteration(k, value + omega, bound, k + 1.0, 0.0))
            if value + omega - bound <= self.tolerance * (value + omega):
                break
            for _ in range(10):
                for j, block in enumerate(regularizer.blocks):
                    old = w[block]
                    w[block] = regularizer.prox_of(j, old - gradient[block] / steepest[j], 1.0 / steepest[j])
                    gradient += hessian[:, block] @ (w[block] - old)
        return bmrm.Solution(w, value + omega, bound, bmrm.Status.CONVERGED, k, k + 1.0, 0.0, tuple(history))


def data(classes=2):
    random = np.random.default_rng(5)
    X = random.normal(size=(120, 10)) + random.normal(size=(120, 1))
    score = X[:, :3] @ [1.0, -1.0, 0.5] + X[:, 9] + 0.5 * random.normal(size=120)
    return X, score if classes == 0 else np.digitize(score, np.linspace(-1.0, 1.0, classes - 1))


def least_squares_minimum(X, y, lam, strengths, free):
    """min ||X w (+ b) - y||^2 / 2m + sum t_g, ||w_g|| <= t_g, as a cone program."""
    m = len(X)
    design = np.column_stack([X, np.ones(m)]) if free else X
    d, count = design.shape[1], len(strengths)
    P = np.zeros((d + count,) * 2)
    P[:d, :d] = design.T @ design / m
    q = np.concatenate([-design.T @ y / m, [lam * strength for _, strength in strengths]])
    rows = []
    for k, (group, _) in enumerate(strengths):
        rows.append(-np.eye(1, d + count, d + k))
        rows += [-np.eye(1, d + count, j) for j in group]
    G = np.vstack(rows)
    dims = {"l": 0, "q": [1 + len(group) for group, _ in strengths], "s": []}
    options = {"show_progress": False, "abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11}
    zeros = cvxopt.matrix(np.zeros(len(G)))
    found = cvxopt.solvers.coneqp(*map(cvxopt.matrix, (P, q, G)), zeros, dims, options=options)
    return found["primal objective"] + float(y @ y) / (2 * m)


@pytest.mark.parametrize(("solver", "bias"), [("proximal_gradient", "free"), (BlockDescent(), "none")])
def test_groups_leave_together_with_a_proof(solver, bias):
    X, y = data(0)
    lam = 0.15
    options = {"tolerance": 1e-7} if isinstance(solver, str) else {}
    model = bmrm.fit(X, y, loss="least_squares", regularizer=GroupL2(lam), solver=solver, bias=bias, **options)
    truth = least_squares_minimum(X, y, lam, [(g, len(g) ** 0.5) for g in (*GROUPS, (9,))], bias == "free")
    assert model.solution.status.name == "CONVERGED"
    assert model.solution.lower_bound <= truth * (1 + 1e-9)
    assert model.solution.objective == pytest.approx(truth, rel=2e-7)
    gone = [not model.weights[list(group)].any() for group in GROUPS]
    assert gone == [False, True, True]


def test_the_features_of_classes_are_one_block():
    """Omega knows that w is a table of features and classes."""
    X, y = data(4)
    model = bmrm.fit(X, y, loss="softmax", regularizer=GroupL2(0.05), solver="proximal_gradient", tolerance=1e-6)
    assert model.solution.status.name == "CONVERGED"
    used = model.weights.reshape(10, 4).any(axis=1)
    assert used.tolist() == [True] * 3 + [False] * 6 + [True]


def test_it_keeps_the_laws():
    report = extend.check_regularizer(GroupL2(0.3), dim=10)
    assert report.ok, str(report)


def test_a_group_beyond_the_features_is_named():
    X, y = data()
    with pytest.raises(bmrm.InputError, match="feature 12 is in a group, expected 0 to 9"):
        bmrm.fit(X, y, loss="logistic", regularizer=GroupL2(0.1, groups=((0, 12),)))
