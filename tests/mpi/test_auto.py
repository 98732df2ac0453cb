"""auto over several ranks: the optimum of one process, by solvers that work there, and an end in step."""

import pytest

from tests.mpi.auto import CASES, LIMIT
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


def answers(ranks):
    return printed(ranks, "tests.mpi.auto")


@pytest.fixture(scope="module")
def one():
    return answers(1)


@pytest.fixture(scope="module", params=[2, 3])
def several(request):
    return answers(request.param)


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_of_one_process(case, one, several):
    found = several[case]
    assert found["status"] == one[case]["status"] == "CONVERGED"
    assert found["objective"] == pytest.approx(one[case]["objective"], rel=2e-7)
    assert found["bound"] <= one[case]["objective"]
    assert one[case]["bound"] <= found["objective"]


@pytest.mark.parametrize("case", CASES)
def test_rules_for_ranks_decide(case, several):
    assert "coordinate_descent" not in several[case]["solver"]
    assert "ranks, " in several[case]["solver"]


def test_a_solver_for_one_process_is_passed_over_on_all_ranks(one, several):
    assert several["passed over"]["solver"] == "proximal_newton"
    assert several["passed over"]["objective"] == pytest.approx(one["passed over"]["objective"], rel=2e-7)


def test_all_ranks_stop_at_the_time_limit(several):
    limited = several["limit"]
    assert limited["status"] == "TIME_LIMIT"
    assert LIMIT <= limited["seconds"] < LIMIT + 5.0
    assert limited["bound"] <= limited["objective"]
