"""Validation rows that lie on several ranks are followed as on one."""

import pytest

from tests.mpi.follows import CASES
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


def test_what_is_followed_is_what_one_rank_sees():
    answers = printed(3, "tests.mpi.follows")
    for name, metrics in CASES.items():
        shared, alone = answers[name]
        assert list(shared) == ["iteration", *metrics]
        assert len(shared["iteration"]) >= 3
        for measure, values in alone.items():
            assert shared[measure] == pytest.approx(values, rel=1e-6), (name, measure)
