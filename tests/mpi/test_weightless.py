"""Rows of weight 0 may be all that a rank has, as long as others have more."""

import pytest

from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi

LOSSES = "logistic", "hinge", "softmax", "squared_hinge"


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_rank_may_have_nothing_but_rows_of_weight_0(rank):
    several, alone = (printed(ranks, "tests.mpi.weightless", rank, *LOSSES) for ranks in (2, 1))
    assert several == pytest.approx(alone, rel=1e-7)


def test_no_rank_with_weight_is_refused():
    for message in printed(2, "tests.mpi.weightless", "01", *LOSSES):
        assert "weights are all zero" in message
