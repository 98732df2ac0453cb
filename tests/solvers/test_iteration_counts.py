"""How many passes each solver needs on a9a: bounds a third above what was measured, lest it silently gets worse.

Counts of long runs hang on the rounding of the machine, so what counts is the median over lambdas close to each other.
"""

import itertools
import statistics

import pytest

from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

pytestmark = pytest.mark.shared_data

MEASURED = [
    # loss, solver, lambda, tolerance, passes
    ("hinge", "line_search_bundle", 1e-3, 1e-3, 22),
    ("hinge", "line_search_bundle", 1e-5, 1e-3, 94),
    ("hinge", "pegasos", 1e-3, 1e-2, 165),
    ("logistic", "irls", 1e-4, 1e-6, 113),
    ("logistic", "irls", 1e-6, 1e-6, 784),
    ("logistic", "nonlinear_cg", 1e-4, 1e-6, 118),
    ("logistic", "nonlinear_cg", 1e-6, 1e-6, 490),
    ("logistic", "proximal_gradient", 1e-3, 1e-6, 152),
    ("logistic", "lbfgs", 1e-4, 1e-6, 134),
]
NEAR = (0.99, 1.0, 1.01)
"""Factors of lambda."""


@pytest.fixture(scope="module")
def risks(shared_data):
    data = read(shared_data / "a9a.svm.xz")
    return {loss: LinearRisk(data, LOSSES.make(loss), threads=1) for loss in ("hinge", "logistic")}


@pytest.mark.parametrize(("loss", "name", "lam", "tolerance", "passes"), MEASURED)
def test_passes_to_the_tolerance(risks, loss, name, lam, tolerance, passes):
    solver = SOLVERS.make(name, {"tolerance": tolerance})
    solutions = [solver.minimize(risks[loss], L2(near * lam)) for near in NEAR]
    assert all(solution.converged for solution in solutions)
    assert statistics.median(solution.passes for solution in solutions) <= 1.33 * passes


@pytest.mark.parametrize("lam", [1e-3, 1e-4, 1e-5])
def test_probe_ends_by_its_rule_near_the_minimum(risks, lam):
    minimum = SOLVERS.make("line_search_bundle", {"tolerance": 1e-6}).minimize(risks["hinge"], L2(lam)).objective
    solution = SOLVERS.make("probe", {"tolerance": 0.0}).minimize(risks["hinge"], L2(lam))
    assert solution.objective <= 1.02 * minimum
    assert solution.iterations <= 300
    assert solution.passes <= 0.9 * solution.iterations


def test_the_line_search_bundle_never_rises(risks):
    values = []
    solver = SOLVERS.make("line_search_bundle", {"tolerance": 1e-3})
    solver.minimize(risks["hinge"], L2(1e-5), callback=lambda line: values.append(line.objective))
    assert all(after <= before for before, after in itertools.pairwise(values))
