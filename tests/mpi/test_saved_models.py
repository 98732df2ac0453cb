"""Over ranks, too, what is reported of a run is J of the model that it leaves."""

import pytest

from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi

CARRYING = {
    2: ("newton", "lbfgs", "nonlinear_cg", "dual_coordinate"),
    3: ("semismooth_newton", "irls", "line_search_bundle"),
}
"""Solvers that keep scores or slopes up to date by differences, by the number of ranks that they run on here."""


@pytest.mark.parametrize("ranks", CARRYING)
def test_the_objective_reported_is_that_of_the_model(ranks):
    count, wrong = printed(ranks, "tests.mpi.saved_models", *CARRYING[ranks])
    assert count > 9 * len(CARRYING[ranks])
    assert not wrong, "\n".join(wrong)
