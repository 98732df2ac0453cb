"""Small convex problems written out in NumPy, with optima from software that shares nothing with ours."""

from __future__ import annotations

from dataclasses import dataclass, field

import cvxopt
import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import Facts, MoreauEnvelope, Scored, ScoreFunction
from bmrm.problem.abilities import RowSubsets
from bmrm.risk.linear import LinearRisk


@dataclass
class PlainRisk:
    """Mean loss of linear scores, value and subgradient only: what a user might write."""

    X: np.ndarray
    y: np.ndarray
    kind: str
    total: int = 0
    dim: int = field(init=False)
    infimum: float = 0.0

    def __post_init__(self):
        self.dim = self.X.shape[1]
        self.total = self.total or len(self.y)

    def value_and_subgradient(self, w):
        value, slope = self.value_and_slope(self.X @ w)
        return value, self.X.T @ slope

    def value_and_slope(self, f):
        if self.kind == "hinge":
            short = 1.0 - self.y * f
            return np.maximum(short, 0.0).sum() / self.total, np.where(short > 0.0, -self.y, 0.0) / self.total
        if self.kind == "logistic":
            z = -self.y * f
            return np.logaddexp(0.0, z).sum() / self.total, -self.y / (1.0 + np.exp(-z)) / self.total
        r = f - self.y
        return 0.5 * (r @ r) / self.total, r / self.total


class ScoredRisk(PlainRisk):
    """The same with scores and row subsets."""

    def ability(self, kind):
        if kind is RowSubsets:
            return Rows(self)
        return Scored(Map(self), Phi(self)) if kind is Scored else None


@dataclass
class Rows:
    risk: PlainRisk

    @property
    def rows(self):
        return len(self.risk.y)

    def value_and_subgradient_of(self, rows, w):
        part = PlainRisk(self.risk.X[rows], self.risk.y[rows], self.risk.kind)
        return part.value_and_subgradient(w)

    def active_set(self, quiet, least, most, seed, first=0):
        return Everything(self.risk)


@dataclass
class Everything:
    """An active set in which no row becomes dormant."""

    risk: PlainRisk

    def step(self, w):
        return *self.risk.value_and_subgradient(w), 1.0

    def rest(self, w):
        return 0.0, np.zeros_like(w)


@dataclass
class Map:
    risk: PlainRisk

    def matvec(self, w):
        return self.risk.X @ w

    def rmatvec(self, slope):
        return self.risk.X.T @ slope

    def diagonal(self, weights):
        return weights @ self.risk.X**2

    def active(self, weights):
        return int(np.count_nonzero(weights))

    def gram(self, weights, columns=None):
        X = self.risk.X if columns is None else self.risk.X[:, columns]
        return X.T @ (weights[:, None] * X)

    def gram_product(self, weights, w):
        return self.risk.X.T @ (weights * (self.risk.X @ w))


class Phi(ScoreFunction):
    def __init__(self, risk, hessian="diagonal"):
        smooth = risk.kind != "hinge"
        self.risk, self.smooth = risk, smooth
        self.facts = Facts(1, float(risk.total), 0.0, smooth, hessian if smooth else "none", prox=True)

    def value_and_slope(self, f):
        return self.risk.value_and_slope(f)

    def along(self, f, step):
        def function(t):
            pairs = [self.risk.value_and_slope(f + one * step) for one in t]
            return np.array([value for value, _ in pairs]), np.array([slope @ step for _, slope in pairs])

        return function

    def hessian_product(self, f, step):
        if self.risk.kind == "logistic":
            p = 1.0 / (1.0 + np.exp(-f))
            return p * (1.0 - p) * step / self.risk.total
        return step / self.risk.total

    def hessian_diagonal(self, f):
        return self.hessian_product(f, np.ones(len(f)))

    def moreau(self, z, sigma):
        f, m = self.proximal_point(z, sigma), self.risk.total
        value, _ = self.value_and_slope(f)
        slope = sigma / m * (z - f)
        if self.smooth:
            second = m * self.hessian_diagonal(f)
            curvature = sigma / m * second / (second + sigma)
        else:
            curvature = sigma / m * (np.abs(self.risk.y * f - 1.0) < 1e-15)
        return MoreauEnvelope(value + 0.5 * sigma / m * np.sum((z - f) ** 2), slope, curvature, slope @ f - value)

    def proximal_point(self, z, sigma):
        """The minimiser of each row's loss plus sigma/2 (f - z)^2, by bisection where there is no formula."""
        y = self.risk.y
        if self.risk.kind == "hinge":
            return z + y * np.clip(1.0 - y * z, 0.0, 1.0 / sigma)
        if self.risk.kind == "least_squares":
            return (y + sigma * z) / (1.0 + sigma)
        low, high = z - 1.0 / sigma, z + 1.0 / sigma
        for _ in range(100):
            middle = 0.5 * (low + high)
            rises = -y / (1.0 + np.exp(y * middle)) + sigma * (middle - z) > 0.0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        return 0.5 * (low + high)

    def moreau_along(self, z, step, sigma):
        def function(t):
            found = [self.moreau(z + one * step, sigma) for one in t]
            return np.array([each.value for each in found]), np.array([each.slope @ step for each in found])

        return function

    def constant(self, b):
        return np.full(len(self.risk.y), float(np.atleast_1d(b)[0]))

    def total(self, scores):
        return np.atleast_1d(scores.sum())

    def magnitude(self, scores):
        return np.atleast_1d(np.abs(scores).sum())


def real_risk(X, y, kind):
    """The same function as ours: with every ability that losses and data have."""
    return LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(kind))


def data(kind: str, rows: int = 60, features: int = 7, seed: int = 0):
    """Features and targets."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features))
    f = X @ random.normal(size=features) + 0.7 * random.normal(size=rows)
    return X, (f if kind == "least_squares" else np.where(f > 0.0, 1.0, -1.0))


QUIET = {"show_progress": False, "abstol": 1e-12, "reltol": 1e-12, "feastol": 1e-12}


def hinge_l2_optimum(X, y, lam):
    """By cvxopt's QP in (w, slacks)."""
    m, d = X.shape
    P = np.zeros((d + m, d + m))
    P[:d, :d] = lam * np.eye(d)
    q = np.concatenate((np.zeros(d), np.full(m, 1.0 / m)))
    G = np.block([[-y[:, None] * X, -np.eye(m)], [np.zeros((m, d)), -np.eye(m)]])
    h = np.concatenate((-np.ones(m), np.zeros(m)))
    solution = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, q, G, h)), options=QUIET)
    return solution["primal objective"]


def hinge_l1_optimum(X, y, lam):
    """By cvxopt's LP in (u, v, slacks), w = u - v."""
    m, d = X.shape
    c = np.concatenate((np.full(2 * d, lam), np.full(m, 1.0 / m)))
    yX = y[:, None] * X
    G = np.block([[-yX, yX, -np.eye(m)], [-np.eye(2 * d + m)]])
    h = np.concatenate((-np.ones(m), np.zeros(2 * d + m)))
    solution = cvxopt.solvers.lp(*map(cvxopt.matrix, (c, G, h)), options=QUIET)
    return solution["primal objective"]


def least_squares_l2_optimum(X, y, lam):
    """In closed form."""
    m, d = X.shape
    w = np.linalg.solve(X.T @ X / m + lam * np.eye(d), X.T @ y / m)
    r = X @ w - y
    return 0.5 * r @ r / m + 0.5 * lam * w @ w


def least_squares_l1_optimum(X, y, lam):
    """By cvxopt's QP in (u, v), w = u - v."""
    m, d = X.shape
    Q, c = X.T @ X / m, X.T @ y / m
    P = np.block([[Q, -Q], [-Q, Q]])
    q = np.concatenate((lam - c, lam + c))
    solution = cvxopt.solvers.qp(*map(cvxopt.matrix, (P, q, -np.eye(2 * d), np.zeros(2 * d))), options=QUIET)
    return solution["primal objective"] + 0.5 * y @ y / m


def logistic_l2_optimum(X, y, lam):
    """By Newton's method on the formula."""
    m, d = X.shape
    w = np.zeros(d)
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(y * (X @ w)))
        gradient = lam * w - X.T @ (y * p) / m
        w = w - np.linalg.solve(lam * np.eye(d) + (X.T * (p * (1.0 - p))) @ X / m, gradient)
    return np.logaddexp(0.0, -y * (X @ w)).mean() + 0.5 * lam * w @ w


def logistic_l1_optimum(X, y, lam):
    """By cvxopt's interior point method in (u, v) >= 0, w = u - v."""
    m, d = X.shape
    Z = np.hstack((X, -X))

    def objective(x=None, z=None):
        if x is None:
            return 0, cvxopt.matrix(0.1, (2 * d, 1))
        w = np.array(x).ravel()
        f = y * (Z @ w)
        p = 1.0 / (1.0 + np.exp(f))
        value = np.logaddexp(0.0, -f).mean() + lam * w.sum()
        gradient = cvxopt.matrix((lam - Z.T @ (y * p) / m)[None, :])
        if z is None:
            return value, gradient
        return value, gradient, cvxopt.matrix(z[0] * (Z.T * (p * (1.0 - p))) @ Z / m)

    G, h = cvxopt.matrix(-np.eye(2 * d)), cvxopt.matrix(0.0, (2 * d, 1))
    solution = cvxopt.solvers.cp(objective, G, h, options=QUIET)
    return objective(solution["x"])[0]
