"""The same problem in the plainest form: dense float64 rows, scaled beforehand, the intercept an ordinary weight.

Its minimiser is the truth from another side: no scaling, no sparse rows, no search for a free intercept has a part in
it. A free intercept is the weight of a large constant feature, which costs next to nothing.
"""

import dataclasses

import numpy as np

from bmrm.losses._core.chain import ChainLoss
from tests.certificates import penalties
from tests.certificates.plugins import FIRST
from tests.certificates.problems import Run

LARGE = 1e3
"""The constant feature of a free intercept: its weight is so much smaller."""
CAREFUL = Run("line_search_bundle", {"tolerance": 1e-8, "max_iterations": 300})
CONIC = Run("line_search_bundle", {"tolerance": 1e-8, "max_iterations": 50})
"""The same where each iteration solves a cone program."""


def careful(problem):
    """The run of the plain form."""
    return CONIC if problem.regularizer.name in penalties.KINDS else CAREFUL


def with_own_engine(regularizer):
    """The regularizer with the engine that it has by default, where there are several."""
    if regularizer.name not in FIRST:
        return regularizer
    ours = next(field.default for field in dataclasses.fields(regularizer) if field.name == "engine")
    return dataclasses.replace(regularizer, engine=ours)


def plain_form(problem, twin):
    """The problem without scaling, intercept, sparse rows."""
    X = (twin.rows - twin.shift) * twin.factor
    constant = {"none": 0.0, "regularized": 1.0, "free": LARGE * max(1.0, float(np.abs(X).max(initial=0.0)))}
    if problem.bias != "none":
        X = np.column_stack((X, np.full(len(X), constant[problem.bias])))
    return dataclasses.replace(
        problem,
        name=problem.name + "/plain",
        regularizer=penalties.in_plain_form(with_own_engine(problem.regularizer), twin.factor, problem.bias != "none"),
        bias="none",
        scale="none",
        X=X,
        exact=X,
        runs=[careful(problem)],
        scattered=False,
        unit=None,
    )


def as_point(problem, twin, model):
    """Weights for raw features, intercept and transitions, from a model of the plain form."""
    weights, intercept = model.weights, 0.0 * np.atleast_1d(model.intercept)
    if problem.bias != "none":
        constant = plain_form(problem, twin).exact[0, -1]
        weights, intercept = weights[:-1], np.atleast_1d(weights[-1] * constant)
    raw = (weights.T * twin.factor).T
    transitions = model.arrays["transitions"] if isinstance(problem.loss, ChainLoss) else None
    return raw, intercept - twin.shift @ raw, transitions


def in_plain_form(problem, twin, model):
    """Weights, intercept (none) and transitions of the plain form, from a model of the problem."""
    weights = (model.weights.T / twin.factor).T
    if problem.bias != "none":
        constant = plain_form(problem, twin).exact[0, -1]
        last = (model.intercept + twin.shift @ model.weights) / constant
        weights = np.concatenate((weights, last if weights.ndim == 1 else last[None, :]))
    return weights, 0.0 * model.intercept, model.arrays.get("transitions")
