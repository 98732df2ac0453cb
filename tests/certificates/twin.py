"""J of a saved model, written apart from the package, with a bound on the rounding of any honest evaluation of it."""

import math
from dataclasses import dataclass

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.mpi.group import Alone
from bmrm.risk.scaling import SCALINGS
from tests.certificates import formulas, penalties
from tests.certificates.plugins import FIRST

UNIT = 2.0**-53
"""The unit roundoff of float64."""
FIXED = 24
"""Roundings of a term besides those of sums: products with scale, weight and lambda, the loss's own few operations, its
functions (an ulp or two each), division by the mass."""


@dataclass(frozen=True)
class Value:
    """J at a point.

    Attributes
    ----------
    value : J.
    unit : the sizes of all that is added up in J, and of what an error of a score does to it, times the unit roundoff.
    steep : likewise, with the steepest slope that the loss has anywhere: the rounding of a plane at this point.
    """

    value: float
    unit: float
    steep: float


class Twin:
    """J of one problem.

    A sum of n terms, each of them rounded c times, differs from the exact one by at most (n + c) u times the sum of the
    sizes, to first order in u and whatever the order of the additions (Higham, Accuracy and Stability, section 4.2).
    Scores are sums over features, R is one over rows: `roundings` is their n + c, `Value.unit` the sizes. Products of
    two such errors are left out; `roundings` has room for them.

    What is told of the features' scales is part of the problem's definition here; whether they are right is checked by
    `wrong_scales`.
    """

    def __init__(self, problem):
        self.problem = problem
        X = problem.exact
        if problem.scale == "unit_norm":
            norms = np.sqrt(np.sum(X * X, axis=1))
            X = X / np.where(norms > 0.0, norms, 1.0)[:, None]
            X = X.astype(np.float32).astype(float) if self.data().X.dtype == np.float32 else X  # rows keep their type
        self.rows = X
        self.long = X.astype(np.longdouble)
        features = X.shape[1]
        columns = SCALINGS[problem.scale].columns(self.data(), Alone())
        self.factor = np.ones(features) if columns is None or columns.scale is None else columns.scale
        self.shift = np.zeros(features) if columns is None or columns.shift is None else columns.shift
        center = getattr(problem.regularizer, "center", None)
        self.center = None if center is None else np.asarray(center)
        copies = 1 if problem.weights is None else int(max(1.0, problem.weights.max()))
        self.roundings = FIXED + features + len(X) * (copies if problem.loss.decomposes == "no" else 1)

    def data(self):
        """The rows as the package has them."""
        problem = self.problem
        return Dataset.from_arrays(problem.X, None, problem.given_weights)

    def scores(self, weights, intercept):
        """X v + b + offset in extended precision, and the sizes that it is made of, those of the shift among them."""
        table = weights.astype(np.longdouble)
        offset = 0.0 if self.problem.offset is None else self.problem.offset
        f = (self.long @ table + (intercept if weights.ndim == 2 else intercept[0]) + offset).astype(float)
        added = np.abs(weights)
        if self.center is not None:  # scores are those of w - c and of c
            added = (2.0 * np.abs(self.center) + added.T).T
        sizes = (np.abs(self.rows) + np.abs(self.shift)) @ added + np.abs(
            intercept if weights.ndim == 2 else intercept[0]
        )
        sizes = sizes + np.abs(offset)
        return f, sizes

    def at(self, weights, intercept, transitions=None) -> Value:
        """J at the weights (features,) or (features, scores) for raw features, and the intercept (scores,)."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            f, sizes = self.scores(weights, intercept)
            risk = formulas.risk(problem, f, transitions)
            omega, cancelled = self._omega(weights, intercept, transitions)
            if transitions is not None:
                sizes = np.concatenate((sizes.ravel(), np.abs(transitions).ravel()))
            common = risk.terms + abs(risk.value) + omega + cancelled
            unit = UNIT * (common + float(np.sum(risk.slopes * sizes)))
            steep = UNIT * (common + float(np.sum(risk.steepest * sizes)))
        if not math.isfinite(risk.value + omega):
            return Value(math.inf, math.inf, math.inf)
        return Value(risk.value + omega, unit, steep)

    def of_model(self, model) -> Value:
        """J at a model."""
        return self.at(model.weights, model.intercept, model.arrays.get("transitions"))

    def of_zero(self, like) -> Value:
        """J at w = 0, or at the center, where runs begin, with a model's shapes."""
        transitions = like.arrays.get("transitions")
        w = 0.0 * like.weights
        if self.center is not None:
            w = (w.T + self.center).T
        return self.at(
            w, 0.0 * like.intercept - self.shift @ w, None if transitions is None else np.zeros_like(transitions)
        )

    def of_vector(self, w, like) -> Value:
        """J at a point in the solver's units, with a model's shapes; without an intercept where that is free."""
        transitions = like.arrays.get("transitions")
        if transitions is not None:
            w, transitions = w[: -transitions.size], w[-transitions.size :].reshape(transitions.shape)
        table = w if like.weights.ndim == 1 else w.reshape(-1, like.weights.shape[1])
        intercept = 0.0 * like.intercept
        if self.problem.bias == "regularized":
            table, intercept = table[:-1], np.atleast_1d(table[-1])
        raw = (table.T * self.factor).T
        return self.at(raw, intercept - self.shift @ raw, transitions)

    def _omega(self, weights, intercept, transitions):
        """Omega of the weights for scaled features, and the size of what cancels in a regularized intercept."""
        regularizer = self.problem.regularizer
        w = (weights.T / self.factor).T.ravel()
        if regularizer.name not in FIRST:
            return self._omega_of_blocks(w.reshape(len(weights), -1), weights, intercept, transitions)
        gone = 0.0
        if self.center is not None:
            table, c = w.reshape(len(weights), -1), (self.center / self.factor)[:, None]
            w = (table - c).ravel()
            gone = regularizer.l2 * float(np.sum(np.abs(table - c) * (np.abs(table) + np.abs(c))))
        if self.problem.bias == "regularized":
            b = intercept + self.shift @ weights
            w = np.concatenate((w, np.atleast_1d(b)))
            parts = np.abs(intercept) + np.abs(self.shift) @ np.abs(weights)
            gone += float(np.sum(parts * (regularizer.l1 + regularizer.l2 * np.abs(b)))) if np.any(self.shift) else 0.0
        if transitions is not None:
            w = np.concatenate((w, transitions.ravel()))
        return regularizer.l1 * math.fsum(np.abs(w)) + 0.5 * regularizer.l2 * math.fsum(w * w), gone

    def _omega_of_blocks(self, table, weights, intercept, transitions):
        """The same for a regularizer of blocks."""
        regularizer, others, gone = self.problem.regularizer, [], 0.0
        if regularizer.name == "none":
            return 0.0, 0.0
        if self.problem.bias == "regularized":
            b = np.atleast_1d(intercept + self.shift @ weights)
            others.append(b)
            parts = np.abs(intercept) + np.abs(self.shift) @ np.abs(weights)
            slope = regularizer.lam * (1.0 + (np.abs(b) if regularizer.name == "box" else 0.0))
            gone = float(np.sum(parts * slope)) if np.any(self.shift) else 0.0
        constant = penalties.omega(regularizer, table, self.factor, *others)
        if transitions is not None:
            tail = np.abs(transitions.ravel())
            size = 0.5 * tail @ tail if regularizer.name == "box" and regularizer.norm == "l2" else tail.sum()
            constant += regularizer.lam * float(size)
        return constant, gone


def wrong_scales(twin):
    """What is wrong with the scales and shifts that the package took, '' for nothing.

    The mean of n numbers is off by n u times the mean size; a deviation by that, and by its own n u.
    """
    problem, X = twin.problem, twin.problem.exact
    if problem.scale not in ("standardize", "max_abs"):
        return ""
    weights = np.ones(len(X)) if problem.weights is None else problem.weights
    if problem.scale == "max_abs":
        largest = np.abs(X).max(axis=0)
        expected = 1.0 / np.where(largest > 0.0, largest, 1.0)
        return "" if np.allclose(twin.factor, expected, rtol=1e-14, atol=0.0) else "scales of max_abs"
    long, mass = X.astype(np.longdouble), np.longdouble(weights.sum())
    mean = weights @ long / mass
    deviation = np.sqrt(weights @ (long - mean) ** 2 / mass).astype(float)
    size = np.abs(X).max(axis=0)
    off = (len(X) + 8) * UNIT * size
    if np.any(np.abs(twin.shift - mean.astype(float)) > off):
        return "means of standardize"
    varies = deviation > 1e-10 * size
    near = np.abs(1.0 / twin.factor - deviation) <= 2.0 * off + 1e-14 * deviation
    return "" if np.all(near | ~varies) else "deviations of standardize"
