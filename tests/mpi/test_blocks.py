"""Regularizers of blocks over ranks: the minimum of one process, with a true bound, and the same zeros."""

import numpy as np
import pytest

from tests.mpi.blocks import CASES
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi


def test_the_minimum_does_not_depend_on_the_number_of_ranks():
    one, three = (printed(ranks, "tests.mpi.blocks") for ranks in (1, 3))
    for case in CASES:
        first, other = one[case], three[case]
        assert first["status"] == other["status"] == "CONVERGED", case
        assert other["objective"] == pytest.approx(first["objective"], rel=2e-8), case
        assert max(first["bound"], other["bound"]) <= min(first["objective"], other["objective"]) * (1 + 1e-12), case
        np.testing.assert_allclose(other["w"], first["w"], atol=3e-3)
        assert np.array_equal(np.array(other["w"]) == 0.0, np.array(first["w"]) == 0.0), case
