"""The master problem as a constrained program (eq. 10 of Teo et al., KDD 2007), solved by cvxopt: the reference."""

import itertools
from dataclasses import dataclass

import numpy as np
from cvxopt import matrix, solvers

from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Space


def store(dim, infima=(0.0,)):
    """Where the planes of a master of so many weights go."""
    return PlaneStore(Space(dim), infima)


@dataclass
class Model:
    """Planes (rows of A, b, block), infima and lambda of a master problem."""

    A: np.ndarray
    b: np.ndarray
    block: np.ndarray
    infima: tuple[float, ...]
    lam: float

    def risk(self, w):
        """The sum over blocks of max(infimum_k, max_j <a_j, w> + b_j)."""
        values = self.A @ w + self.b
        return sum(max([infimum, *values[self.block == k]]) for k, infimum in enumerate(self.infima))

    def l2(self, w):
        return 0.5 * self.lam * float(w @ w) + self.risk(w)

    def l1(self, w):
        return self.lam * float(np.abs(w).sum()) + self.risk(w)

    def _rows(self, extra):
        """<a_j, w> - xi_k <= -b_j and -xi_k <= -infimum_k, with `extra` columns between w and xi."""
        n, K = len(self.b), len(self.infima)
        known = np.flatnonzero(np.isfinite(self.infima))
        picks = np.equal.outer(self.block, np.arange(K)).astype(float)
        top = np.hstack([self.A, np.zeros((n, extra)), -picks])
        low = np.hstack([np.zeros((len(known), self.A.shape[1] + extra)), -np.eye(K)[known]])
        return np.vstack([top, low]), np.concatenate([-self.b, -np.array(self.infima)[known]])

    def minimise_l2(self):
        """w of min lambda/2 ||w||^2 + sum xi."""
        d, K = self.A.shape[1], len(self.infima)
        G, h = self._rows(0)
        P = np.diag(np.r_[np.full(d, self.lam), np.zeros(K)])
        return _solve(solvers.qp, P, np.r_[np.zeros(d), np.ones(K)], G, h)[:d]

    def minimise_l1(self):
        """w of min lambda sum s + sum xi, -s <= w <= s; None where unbounded."""
        d = self.A.shape[1]
        x = _solve(solvers.lp, self._cost(self.lam), *self._tied())
        return None if x is None else x[:d]

    def minimise_elastic(self, l1, l2):
        """w of min l1 sum s + l2/2 ||w||^2 + sum xi, -s <= w <= s."""
        d = self.A.shape[1]
        cost = self._cost(l1)
        P = np.diag(np.r_[np.full(d, l2), np.zeros(len(cost) - d)])
        return _solve(solvers.qp, P, cost, *self._tied())[:d]

    def _cost(self, l1):
        """Of w, s and xi."""
        d = self.A.shape[1]
        return np.r_[np.zeros(d), np.full(d, l1), np.ones(len(self.infima))]

    def _tied(self):
        """The rows, and -s <= w <= s."""
        d, K = self.A.shape[1], len(self.infima)
        G, h = self._rows(d)
        tie = np.hstack([np.vstack([np.eye(d), -np.eye(d)]), np.vstack([-np.eye(d)] * 2), np.zeros((2 * d, K))])
        return np.vstack([G, tie]), np.r_[h, np.zeros(2 * d)]


def _solve(program, *data):
    cost, h = data[-3], data[-1]
    high = {"x": matrix(np.zeros(len(cost))), "s": matrix(100.0, (len(h), 1)), "z": matrix(100.0, (len(h), 1))}
    starts = (None, high) if program is solvers.qp else (None,)  # from its own start it may go round in circles
    for start, tolerance in itertools.product(starts, (1e-10, 1e-9, 1e-8, 1e-7)):
        options = {"show_progress": False, "abstol": tolerance, "reltol": tolerance, "feastol": tolerance}
        initial = {} if start is None else {"initvals": start}
        for factorisation in ("chol", "ldl"):
            try:
                found = program(*map(matrix, data), kktsolver=factorisation, options=options, **initial)
            except (ArithmeticError, ValueError):
                continue  # the other one may do
            if found["status"] == "optimal":
                return np.array(found["x"]).ravel()
            if found["status"] == "dual infeasible":
                return None
    raise AssertionError("cvxopt finds no optimum")


class Player:
    """A master, its planes, and the same planes as a `Model`, through a random sequence of additions and removals."""

    def __init__(self, rng, regularizer, dim, infima, scale=1.0):
        self.rng, self.dim, self.scale = rng, dim, scale
        self.blocks = len(infima)
        self.lam = regularizer.lam
        self.master = regularizer.master(store(dim, infima))
        self.planes = self.master.planes
        self.known = []

    def add(self, block=None):
        """A random plane; now and then the zero plane, an old one again, or one next to an old one."""
        rng = self.rng
        a, b = rng.normal(size=self.dim), rng.normal()
        kind = rng.integers(10)
        if kind == 0:
            a[:] = 0.0
        elif kind <= 2 and self.known:
            old_a, old_b, _ = self.planes.plane(int(rng.choice(self.known)))
            a, b = old_a / self.scale, old_b / self.scale
            if kind == 2:
                a, b = a * (1 + 1e-9 * rng.normal(size=self.dim)), b + 1e-9 * rng.normal()
        block = int(rng.integers(self.blocks)) if block is None else block
        self.known.append(self.master.add(self.scale * a, self.scale * b, block))

    def remove(self, count):
        gone = [int(id) for id in self.rng.choice(self.known, size=min(count, len(self.known)), replace=False)]
        self.master.remove(gone)
        self.known = [id for id in self.known if id not in gone]

    @property
    def model(self):
        rows = [self.planes.plane(id) for id in self.known]
        A = np.array([a for a, _, _ in rows]).reshape(-1, self.dim)
        b = np.array([b for _, b, _ in rows])
        return Model(A, b, np.array([k for _, _, k in rows], dtype=int), self.planes.infima, self.lam)

    @property
    def covered(self):
        """Whether each block has a plane or an infimum."""
        model = self.model
        return all(np.isfinite(infimum) or np.any(model.block == k) for k, infimum in enumerate(model.infima))
