"""Moves that ranks add up: lists of the weights that have moved say the same as vectors."""

import pytest

from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 3])
def test_lists_and_vectors_add_up_alike(ranks):
    found = printed(ranks, "tests.mpi.moves")
    assert found["same"]  # the same bits on all ranks
    for number, one in enumerate(found["rounds"]):
        assert one["error"] < 1e-14, number
        assert one["apart"] == 0.0, number
        assert one["told"] == [ranks * 1.0, ranks * 2.0, ranks * 3.0], number
        assert one["factor"] == pytest.approx(one["wanted"], rel=1e-12), number
    # not at first, nor after a list for which there was no room
    assert [one["listed"] for one in found["rounds"]] == [False, True, True, False, True, True, True, True]
    for case, run in found["runs"].items():
        assert run["status"] == "CONVERGED", case
        assert run["lists"] > 100, case
        assert run["wrong"] == 0, case
        low, high = run["between"]
        assert max(low, run["lower_bound"]) <= min(high, run["objective"]), case
