"""Sums over ranks: of every number of ranks, the same bits on all."""

import math

import pytest

from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
def test_all_ranks_have_the_same_sum(ranks):
    for length, found in printed(ranks, "tests.mpi.sums").items():
        first, *others = found["sums"]
        assert len(found["parts"]) == ranks
        assert len(first) == int(length)
        assert others == [first] * (ranks - 1)
        assert first == pytest.approx([math.fsum(numbers) for numbers in zip(*found["parts"])], rel=1e-14, abs=1e-14)
