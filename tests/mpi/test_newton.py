"""Newton's methods over several ranks: the same minimum as on one."""

import numpy as np
import pytest

from tests.mpi.launch import printed
from tests.mpi.newton import CASES

pytestmark = pytest.mark.mpi


def answers(ranks):
    return printed(ranks, "tests.mpi.newton")


@pytest.fixture(scope="module")
def one():
    return answers(1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_minimum_does_not_depend_on_the_number_of_ranks(ranks, one):
    several = answers(ranks)
    assert len(one) == len(several) == len(CASES)
    for case, first, other in zip(CASES, one, several, strict=True):
        assert first["status"] == other["status"] == "CONVERGED", case
        assert other["objective"] == pytest.approx(first["objective"], rel=2e-9), case
        assert other["bound"] <= first["objective"] * (1.0 + 1e-11), case
        np.testing.assert_allclose(other["w"], first["w"], atol=2e-3, err_msg=str(case))
