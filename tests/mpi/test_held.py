"""What the ranks keep for rank 0 does not grow with the iterations."""

import json

import pytest

from tests.mpi.held import CASES
from tests.mpi.launch import work

pytestmark = pytest.mark.mpi
MOST = 16
"""Objects at any time, of any solver."""


@pytest.fixture(scope="module")
def held():
    done = work(2, "tests.mpi.held", timeout=300.0)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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
