"""Each rank prepares the loss once, for its rows; rank 0 alone where it is of all rows at once."""

import pytest

from tests.mpi.launch import printed
from tests.mpi.prepared import CASES

pytestmark = pytest.mark.mpi


def test_the_loss_is_prepared_once_per_rank():
    counts = printed(2, "tests.mpi.prepared")
    assert set(counts) == set(CASES)
    for name, by_rank in counts.items():
        assert by_rank == ([[301], []] if name == "roc_area" else [[147], [154]]), name
