"""The comparison of two trees sees what differs."""

import math
from dataclasses import replace

import pytest

from benchmarks.two_trees import speed
from benchmarks.two_trees.results import Comparison, chosen, table

pytestmark = pytest.mark.nightly


def found(objective=0.5, bound=0.4, status="CONVERGED", passes=7.5):
    return {"status": status, "objective": objective, "lower_bound": bound, "iterations": 7.0, "passes": passes}


SAME = Comparison(
    "alone",
    {"a": found(), "b": found(bound=-math.inf), "c": {"status": "IncompatibleError"}},
    {"a": found(), "b": found(bound=-math.inf), "c": {"status": "IncompatibleError"}},
)


def changed(name, **figures):
    return replace(SAME, new=SAME.new | {name: SAME.new[name] | figures})


def test_equal_results_are_identical():
    assert SAME.others() == SAME.failures() == []
    assert SAME.rows()[0] == ("alone", "objective", 2, 0, 0)


@pytest.mark.parametrize("objective", [0.5 * (1.0 + 2e-9), 0.6, math.inf, math.nan])
def test_a_changed_objective_is_a_failure(objective):
    comparison = changed("a", objective=objective)
    assert comparison.failures() == ["a"]
    assert comparison.others() == [f"a [CONVERGED]: objective 0.5 -> {objective!r}"]


def test_rounding_is_counted_and_told_where_it_is_not_tiny():
    assert changed("a", objective=0.5 * (1.0 + 1e-15)).rows()[0] == ("alone", "objective", 1, 1, 0)
    comparison = changed("a", objective=0.5 * (1.0 + 1e-11))
    assert comparison.rows()[0] == ("alone", "objective", 1, 0, 1)
    assert len(comparison.others()) == 1
    assert comparison.failures() == []


def test_other_figures_are_told():
    assert changed("b", lower_bound=0.4, passes=8.0).others() == [
        "b [CONVERGED]: lower_bound -inf -> 0.4",
        "b [CONVERGED]: passes 7.5 -> 8.0",
    ]


@pytest.mark.parametrize(("name", "status"), [("a", "STALLED"), ("c", "InputError")])
def test_a_changed_status_is_a_failure(name, status):
    assert changed(name, status=status).failures() == [name]


def test_a_fit_that_only_one_tree_solves_is_a_failure():
    assert replace(SAME, new=SAME.new | {"a": {"status": "IncompatibleError"}}).failures() == ["a"]
    assert replace(SAME, new=SAME.new | {"c": found()}).failures() == ["c"]


def test_the_table_counts():
    text = table([SAME]).markdown()
    assert "alone: 2 fits; objectives differ by at most 0 relatively where they converged, by 0 elsewhere" in text
    assert "| alone | passes | 2 | 0 | 0 |" in text


def test_ranks_get_some_of_every_loss_and_solver():
    names = [(loss, solver) for loss in ("hinge", "logistic", "huber") for solver in ("bundle", "lbfgs", "auto")]
    cases = {f"{a} {b}": {"fit": {"loss": {"name": a}, "solver": {"name": b}}} for a, b in names}
    solved = {name: found() for name in cases} | {"hinge lbfgs": {"status": "IncompatibleError"}}
    kept = list(chosen(cases, solved, per_loss=1, per_solver=1))
    assert kept == ["hinge bundle", "logistic bundle", "logistic lbfgs", "huber bundle"]


def timed(kind, old, new):
    answers = [[{"seconds": one, "iterations": 3.0, "passes": 4.0} for one in times] for times in (old, new)]
    return speed.Pairs(speed.Fit(kind, "fit", "data", {}), *answers)


def test_ratios_of_seconds_are_medians_of_pairs_and_means_of_classes():
    found = [timed("a", [1.0, 2.0, 1.0], [2.0, 4.0, 90.0]), timed("a", [1.0], [8.0]), timed("b", [2.0], [1.0])]
    assert [pairs.ratio for pairs in found] == [2.0, 8.0, 0.5]
    rows = speed.table(found).rows
    assert rows[2] == ("b", "fit", "2e+03", "1e+03", "0.500", 1, "3 / 3", "4 / 4")
    assert [(row[0], row[4]) for row in rows[3:]] == [("a", "4.000"), ("b", "0.500")]
