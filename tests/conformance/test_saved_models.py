"""What is reported of a run is J of the model that it leaves: weights and intercept, put into formulas of their own."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.problem import Status
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from tests.mpi.saved_models import differences, huber_hinge

NAMES = [entry.name for entry in SOLVERS.all()]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("third", [0, *(pytest.param(third, marks=pytest.mark.nightly) for third in (1, 2))])
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_reported_is_that_of_the_model(name, third):
    """Every loss, regularizer, kind of intercept and scale is in each third, another one for the next solver."""
    count, wrong = differences(name, open_group(), part=slice((NAMES.index(name) + third) % 3, None, 3))
    assert count >= 16
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("lam", [2.2e-6, 2.20287e-6])
@pytest.mark.parametrize("name", ["newton", "semismooth_newton", "lbfgs", "nonlinear_cg"])
def test_far_points_leave_nothing_behind(name, lam):
    """Steps to weights of 1e12 and back: what scores carry along is rounding, and J of the minimum is still found."""
    X, y = np.array([[0.0], [0.0], [-1e7]]), np.array([1.0, -1.0, 1.0])
    solution = SOLVERS.make(name).minimize(LinearRisk(Dataset.from_arrays(X, y), LOSSES.make("huber_hinge")), L2(lam))
    w = solution.w
    assert solution.objective == pytest.approx(huber_hinge(X @ w, y).mean() + 0.5 * lam * w @ w, rel=1e-14)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(2.0 / 3.0, rel=1e-3)
