"""What the ranks keep for rank 0 does not grow with the iterations."""

import pytest

from tests.mpi.held import CASES
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi
MOST = 16
"""Objects at any time, of any solver."""


@pytest.fixture(scope="module")
def held():
    return printed(2, "tests.mpi.held")


def test_some_solvers_iterate_long(held):
    assert {case for case, counts in held.items() if len(counts) >= 150} >= {
        "line_search_bundle",
        "bundle",
        "dual_coordinate",
    }


@pytest.mark.parametrize("case", CASES)
def test_ranks_keep_a_bounded_number_of_arrays(case, held):
    assert held[case]
    assert max(held[case]) <= MOST
