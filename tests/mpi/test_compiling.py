"""Over ranks, too, compiling is not charged to the time limit: neither of rank 0 nor of those that it waits for."""

import pytest

from tests.mpi.compiling import COMPILES, LIMIT
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", ["0", "1", "012"])
def test_a_rank_that_compiles_does_not_use_up_the_time_limit(ranks):
    status, seconds, compiling, waiting = printed(3, "tests.mpi.compiling", *ranks)
    assert status == "CONVERGED"
    assert seconds < LIMIT
    assert compiling >= 0.95 * COMPILES
    assert waiting < LIMIT
