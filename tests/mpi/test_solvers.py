"""Every solver over several ranks: the same iterates as on one."""

import numpy as np
import pytest

from tests.mpi.every_solver import CASES, CERTIFIED
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


def answers(ranks, source="small"):
    return printed(ranks, "tests.mpi.every_solver", str(source))


def compare(one, several, iterates):
    assert set(one) == set(several) == set(CASES)
    for case in CASES:
        first, other = one[case], several[case]
        length = min(len(first["objectives"]), len(other["objectives"]), iterates)
        assert length > 2, case
        # inner conjugate gradients, line searches and masters amplify rounding; plain steps do not
        rtol = 1e-5 if CASES[case][1] in CERTIFIED else 1e-12
        np.testing.assert_allclose(other["objectives"][:length], first["objectives"][:length], rtol=rtol, err_msg=case)
        if case in CERTIFIED:
            assert other["status"] == "CONVERGED", case
            assert other["objective"] == pytest.approx(first["objective"], rel=1e-7), case


@pytest.fixture(scope="module")
def one():
    return answers(1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_iterates_do_not_depend_on_the_number_of_ranks(ranks, one):
    several = answers(ranks)
    compare(one, several, 11)
    for case in (
        "pegasos",
        "pegasos two_out",
        "pegasos probability",
        "probe",
        "irls first_residual",
        "irls limits",
        "irls holdout",
        "nonlinear_cg thesis",
    ):
        np.testing.assert_allclose(several[case]["w"], one[case]["w"], rtol=1e-6, atol=1e-9, err_msg=case)


@pytest.mark.nightly
@pytest.mark.shared_data
def test_a9a_on_one_two_and_four_ranks(shared_data):
    one = answers(1, shared_data / "a9a.svm.xz")
    for ranks in (2, 4):
        compare(one, answers(ranks, shared_data / "a9a.svm.xz"), 10)
