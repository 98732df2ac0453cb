"""Over ranks, too, what is reported of a run is J of the model that it leaves."""

import json

import pytest

from tests.mpi.launch import work

pytestmark = pytest.mark.mpi

CARRYING = ("newton", "semismooth_newton", "lbfgs", "irls", "nonlinear_cg", "line_search_bundle", "dual_coordinate")
"""Solvers that keep scores or slopes up to date by differences."""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_objective_reported_is_that_of_the_model(ranks):
    done = work(ranks, "tests.mpi.saved_models", *CARRYING, timeout=400.0)
    assert done.returncode == 0, done.stderr
    count, wrong = json.loads(done.stdout)
    assert count > 60
    assert not wrong, "\n".join(wrong)
