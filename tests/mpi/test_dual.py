"""Dual coordinate ascent over several ranks: the same optimum as on one, with a true bound."""

import json

import numpy as np
import pytest

from tests.mpi.dual import CASES
from tests.mpi.launch import launch

pytestmark = pytest.mark.mpi


def answers(ranks):
    done = launch(ranks, "-m", "tests.mpi.dual", timeout=300.0)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def one():
    return answers(1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_optimum_does_not_depend_on_the_number_of_ranks(ranks, one):
    several = answers(ranks)
    for case, (_, _, _, free) in CASES.items():
        first, other = one[case], several[case]
        assert first["status"] == other["status"] == "CONVERGED", case
        assert other["objective"] == pytest.approx(first["objective"], rel=3e-7), case
        assert other["lower_bound"] <= first["objective"] * (1.0 + 1e-12), case
        assert first["lower_bound"] <= other["objective"] * (1.0 + 1e-12), case
        np.testing.assert_allclose(other["w"], first["w"], atol=3e-3)
        if free:
            assert other["total"] < 1e-9, case
