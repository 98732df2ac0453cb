"""Run under mpirun, or imported: fits whose objective is computed again from weights and intercept of the model.

Rank 0 prints the cases, one in a line, whose model has another objective than was reported; then how many there were.
"""

import itertools
import json
import math
import sys
import warnings

import numpy as np

from bmrm.app.pipeline.solve import Problem, solve
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import OtherRankError
from bmrm.mpi.launch import open_group
from bmrm.problem import IncompatibleError, Status
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS

SCALES = {1e-4: 1e-2, 1.0: 1e-3, 1e5: 1e-2, 1e7: 2.2e-6}
"""Of the features, with a lambda each."""
BIASES = ("none", "regularized", "free")
EPS = np.finfo(np.float64).eps


def hinge(f, y):
    return np.maximum(0.0, 1.0 - y * f)


def squared_hinge(f, y):
    return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2


def huber_hinge(f, y):
    short = 1.0 - y * f
    return np.where(short <= -0.5, 0.0, np.where(short >= 0.5, short, 0.5 * (short + 0.5) ** 2))


def logistic(f, y):
    return np.logaddexp(0.0, -y * f)


def least_squares(f, y):
    return 0.5 * (f - y) ** 2


def softmax(f, y):
    margins = f - f[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = -np.inf
    return np.logaddexp(0.0, np.logaddexp.reduce(margins, axis=1))


def multiclass_hinge(f, y):
    margins = f - f[np.arange(len(y)), y][:, None] + 1.0
    margins[np.arange(len(y)), y] = 0.0
    return margins.max(axis=1)


FORMULAS = {
    "hinge": hinge,
    "cost_sensitive_hinge": hinge,
    "squared_hinge": squared_hinge,
    "huber_hinge": huber_hinge,
    "logistic": logistic,
    "least_squares": least_squares,
    "softmax": softmax,
    "multiclass_hinge": multiclass_hinge,
}
"""The loss of each row."""


def rows(loss, scale):
    """Features and targets, as a user has them and as the formulas do."""
    rng = np.random.default_rng(29)
    X = scale * rng.normal(size=(31, 3))
    f = X @ np.array([1.0, -0.5, 0.2]) / scale
    f = f + 0.8 * rng.normal(size=31) if scale <= 1.0 else f  # else separable: objectives near 0 show the least
    if loss == "least_squares":
        return X, f, f
    if loss in ("softmax", "multiclass_hinge"):
        y = np.digitize(f, [-0.7, 0.7])
        return X, y, y
    return X, (f > 0.3).astype(int), np.where(f > 0.3, 1.0, -1.0)


def objective(loss, regularizer, lam, bias, X, y, model):
    """J of the model, and what rounding may make of it: the products for the scores may cancel."""
    single = model.weights.ndim == 1
    W = model.weights[:, None] if single else model.weights
    f, sizes = X @ W + model.intercept, np.abs(X) @ np.abs(W) + np.abs(model.intercept)
    f, noise = (f[:, 0] if single else f), 64.0 * EPS * sizes.max(axis=1)
    formula = FORMULAS[loss]
    losses = formula(f, y)
    moved = [
        np.abs(formula(f + (sign * noise if single else sign * noise[:, None] * unit), y) - losses)
        for sign in (-1.0, 1.0)
        for unit in (np.ones(1) if single else np.eye(f.shape[1]))
    ]
    w = np.concatenate((W, model.intercept[None, :])) if bias == "regularized" else W
    omega = lam * np.abs(w).sum() if regularizer == "l1" else 0.5 * lam * np.sum(w**2)
    return losses.mean() + omega, 2.0 * np.max(moved, axis=0).mean() + 1e-13 * abs(losses.mean() + omega)


def differences(name, group, scales=tuple(SCALES), losses=tuple(FORMULAS), regularizers=("l2", "l1"), part=slice(None)):
    """Of these fits by a solver, or a part: how many there were, and those with another objective than their models."""
    count, wrong = 0, []
    for loss, regularizer, bias, scale in list(itertools.product(losses, regularizers, BIASES, scales))[part]:
        lam = SCALES[scale]
        X, given, y = rows(loss, scale)
        mine = np.arange(len(X)) * group.size // len(X) == group.rank
        problem = Problem(
            LOSSES.make(loss),
            REGULARIZERS.make(regularizer, {"lambda": lam}),
            SOLVERS.make(name, {"max_iterations": 30, "tolerance": 1e-6}),
            bias=bias,
        )
        try:
            model = solve(Dataset.from_arrays(X[mine], given[mine]), problem, group)
        except (IncompatibleError, OtherRankError):
            continue
        if model is None:
            continue
        count += 1
        found, allowed = objective(loss, regularizer, lam, bias, X, y, model)
        solution = model.solution
        right = abs(found - solution.objective) <= allowed and solution.lower_bound <= found + allowed
        right = right and (solution.status is not Status.CONVERGED or solution.relative_gap <= 1e-6)
        if not right and math.isfinite(solution.objective):
            case = f"{name}, {loss}, {regularizer} {lam:g}, bias {bias}, features {scale:g}"
            wrong.append(f"{case}: {solution.status.name} {solution.objective!r}, the model has {found!r}")
    return count, wrong


def main(names):
    """All fits by these solvers."""
    group = open_group()
    warnings.simplefilter("ignore", RuntimeWarning)
    few = ("cost_sensitive_hinge", "huber_hinge", "softmax")
    found = [differences(name, group, (1.0, 1e7), few, ("l2",)) for name in names]
    if group.rank == 0:
        print(json.dumps([sum(count for count, _ in found), [line for _, lines in found for line in lines]]))


if __name__ == "__main__":
    main(sys.argv[1:])
