"""What one iteration of a solver sends, counted by a group that counts."""

import json

import pytest

from benchmarks.messages import CASES
from tests.mpi.launch import printed

pytestmark = pytest.mark.mpi

EXCHANGES = {
    "bundle": 0.1,
    "probe": 0.2,
    "lbfgs": 0.5,
    "line_search_bundle": 3.2,
    "proximal_gradient": 1.6,
    "newton": 0.6,
    "irls": 2.2,
    "nonlinear_cg": 3.0,
}
"""Of scalars, at most, for each iteration."""
ONCE = {"bundle", "probe", "lbfgs", "line_search_bundle", "proximal_gradient", "nonlinear_cg"}
"""Solvers whose iteration sends weights once and adds gradients up once."""
ROW_LOSSES = tuple(case for case in CASES if case[1] != "roc_area" and case[0] in EXCHANGES)


@pytest.fixture(scope="module")
def counted():
    return {ranks: {tuple(run[k] for k in names): run for run in runs(ranks)} for ranks in (2, 3)}


def runs(ranks):
    return printed(ranks, "benchmarks.messages", json.dumps(ROW_LOSSES))


names = ("solver", "loss", "regularizer")


@pytest.mark.parametrize("case", ROW_LOSSES, ids=" ".join)
def test_an_iteration_sends_weights_once_and_few_numbers(case, counted):
    run = counted[2][case]
    each, counts = run["iterations"], run["counts"]
    assert each >= 3
    assert counts["exchanges"] <= EXCHANGES[case[0]] * each
    assert counts["gathered"] == 0
    once = 1.0 if case[0] in ONCE else run["passes"] / each
    # trial points that are rejected, restarts and the last point come besides
    assert counts["out"] <= 1.5 * once * each + 3
    assert counts["in_"] <= 1.5 * once * each + 3


@pytest.mark.parametrize("case", ROW_LOSSES, ids=" ".join)
def test_messages_do_not_grow_with_the_ranks(case, counted):
    two, three = (counted[ranks][case]["counts"]["messages"] / counted[ranks][case]["iterations"] for ranks in (2, 3))
    assert three == pytest.approx(two, rel=0.2)
