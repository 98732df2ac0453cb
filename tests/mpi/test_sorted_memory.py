"""The memory that a whole-sample loss takes on each rank: with sorted scores it falls as ranks are added."""

import pytest

from tests.mpi.launch import printed
from tests.mpi.sorted_memory import LOSSES_TRIED

pytestmark = pytest.mark.mpi

ROWS = 120_000


@pytest.mark.slow
def test_no_rank_holds_something_of_every_row():
    two, four = (printed(ranks, "tests.mpi.sorted_memory", str(ROWS)) for ranks in (2, 4))
    for loss in LOSSES_TRIED:
        gathered, by_sorting = f"{loss} {ROWS}", f"{loss} 0"
        assert max(four[gathered]) > 0.9 * max(two[gathered]) > 50.0 * ROWS
        assert max(four[by_sorting]) < 0.6 * max(two[by_sorting])
        assert max(four[by_sorting]) < 0.5 * max(four[gathered])
