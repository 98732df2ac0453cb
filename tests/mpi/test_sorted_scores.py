"""Whole-sample losses whose scores ranks sort together: the same answers as from scores gathered on rank 0."""

from functools import cache

import numpy as np
import pytest

from tests.mpi.launch import printed
from tests.mpi.sorted_scores import LOSSES_TRIED, ROWS

pytestmark = pytest.mark.mpi


@cache
def answers(ranks, deal, asked):
    return printed(ranks, "tests.mpi.sorted_scores", deal, asked)


@pytest.mark.parametrize("deal", ["even", "classes", "last"])
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES_TRIED)
def test_values_slopes_and_rounding_are_those_of_gathered_scores(loss, weighted, ranks, deal):
    found = answers(ranks, deal, "seen")
    gathered, by_sorting = (found[f"{loss} {weighted} {rows}"] for rows in (ROWS, 0))
    for one, other in zip(gathered[0], by_sorting[0], strict=True):
        scale = max(1.0, float(np.abs(one).max()))
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-13 * scale)
    np.testing.assert_allclose(by_sorting[1], gathered[1], rtol=0.3)  # by chance: rounding to one side or the other


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("loss", LOSSES_TRIED)
def test_a_run_finds_the_same(loss, ranks):
    for weighted in (False, True):
        alone = answers(1, "even", "solved")[f"{loss} {weighted} 0"]
        for rows in (ROWS, 0):
            objective, bound, status = answers(ranks, "classes", "solved")[f"{loss} {weighted} {rows}"]
            assert status == "CONVERGED"
            assert objective == pytest.approx(alone[0], rel=1e-6)
            assert bound <= alone[0] * (1.0 + 1e-12)


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_cannot_be_measured_is_refused_alike(ranks):
    for case, said in answers(ranks, "even", "refused").items():
        assert len(said) == 2, case
        assert said[0] == said[1], case
