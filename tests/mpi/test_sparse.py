"""Proximal Newton over several ranks: the same minimum as on one."""

import numpy as np
import pytest

from tests.mpi.launch import printed
from tests.mpi.sparse import CASES

pytestmark = pytest.mark.mpi


def answers(ranks):
    return printed(ranks, "tests.mpi.sparse")


def test_the_minimum_does_not_depend_on_the_number_of_ranks():
    one, *more = (answers(ranks) for ranks in (1, 2, 3))
    for several in more:
        for loss, regularizer, free in CASES:
            case = f"{loss} {regularizer} {free}"
            assert several[case]["status"] == "CONVERGED", case
            assert several[case]["objective"] == pytest.approx(one[case]["objective"], rel=1e-9), case
            np.testing.assert_allclose(several[case]["w"], one[case]["w"], atol=1e-5, err_msg=case)
        assert "proximal_newton" in several["coordinate_descent"]
