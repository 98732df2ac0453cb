"""The tables of a race, races that are joined, and the page made from them."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest

from benchmarks.race import points, results, summary, tables
from benchmarks.race.problems import all_problems

pytestmark = pytest.mark.nightly


def entrant(name: str, seconds: float | None, **rest: Any) -> dict[str, Any]:
    best = {} if seconds is None else {"0.001": {"rung": "x", "seconds": [seconds] * 5, "in_rounds": True}}
    ours = name.startswith("bmrm ")
    about = {"name": name, "family": name.split()[0], "ours": ours, "own_space": False}
    return about | {"ladder": [], "best": best} | rest


def record(name: str, times: dict[str, float | None], kind: str = "hinge-low") -> dict[str, Any]:
    entrants = [entrant(one, taken) for one, taken in times.items()]
    return {"name": name, "kind": kind, "accuracies": [1e-3], "minimum": 1.0, "entrants": entrants}


def race(date: str, *records: dict[str, Any], machine: str = "A", clock: str = "cpu", **rest: Any) -> dict[str, Any]:
    about = {"schema": results.SCHEMA, "commit": f"c{date}", "date": date, "clock": clock, "missing": [], "runs": []}
    machine_facts = {"processor": machine, "cores": 2, "python": "3"}
    return about | {"machine": machine_facts, "versions": {}, "problems": list(records)} | rest


def times(record: dict[str, Any]) -> dict[str, float]:
    return {one["name"]: one["best"]["0.001"]["seconds"][0] for one in record["entrants"] if one["best"]}


def test_auto_is_compared_where_it_ran_and_others_did() -> None:
    both = record("both", {"bmrm auto": 3.0, "bmrm newton": 2.0, "bmrm lbfgs": 4.0})
    alone = record("alone", {"bmrm auto": 3.0})
    without = record("without", {"bmrm line_search_bundle": 3.0, "bmrm newton": 2.0})
    assert [summary.against_our_best(both, 1e-3).other] == ["bmrm newton"]
    (_, _, row) = tables.choices([both, alone, without]).splitlines()
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "Hinge, d <= 1500",
        "0.001",
        "1",
        "1.50 (1.50 to 1.50)",
    ]


def test_shapes_have_problems_and_a_line_each() -> None:
    names = [problem.name for problem in all_problems()]
    for point in points.POINTS:
        for pattern in point.problems:
            assert fnmatch.filter(names, pattern), pattern
    records = [
        record("hinge noise l2=0.001", {"bmrm auto": 1.0, "peer a": 2.0}),
        record("hinge noise l2=1e-05", {"bmrm auto": 4.0, "peer a": 2.0}),
        record("logistic w8a l1=0.001", {"bmrm auto": None, "peer a": 2.0}),
        record("hinge other l2=1", {"bmrm auto": 1.0, "peer a": 2.0}),
    ]
    _, _, noise, w8a = points.points(records).splitlines()
    assert noise == "| dense noise, hinge | 1.7 | 1.00 (worst 2) | - (2 without a peer) |"
    assert w8a == "| L1 logistic on w8a | - | - (1 not reached) | - (1 without a peer) |"


def test_a_class_counts_wins_losses_and_what_was_not_reached() -> None:
    records = [
        record("won", {"bmrm auto": 1.0, "peer a": 2.0, "peer b": 4.0}),
        record("lost", {"bmrm auto": 4.0, "peer a": 2.0}),
        record("ours alone", {"bmrm auto": 1.0, "peer a": None}),
        record("not reached", {"bmrm auto": None, "peer a": 2.0}),
        record("without peers", {"bmrm auto": 1.0}),
    ]
    (figure,) = summary.class_figures(records)
    assert (figure.problems, figure.alone, figure.failed) == (5, 2, 1)
    assert figure.mean.middle == float("inf")
    assert figure.reached.middle == pytest.approx(1.0)
    assert figure.won == 0.5
    assert figure.worst is not None
    assert figure.worst.problem == "not reached"
    assert [one.problem for one in summary.worst_cases(records)] == ["not reached", "lost", "won"]


def test_the_newest_race_of_a_problem_counts_and_keeps_peers_that_it_left_out() -> None:
    old = race("1", record("p", {"bmrm auto": 4.0, "bmrm newton": 3.0, "peer a": 2.0, "peer b": 1.0}), record("q", {}))
    new = race("2", record("p", {"bmrm auto": 1.0, "peer a": 2.5}))
    joined = {one["name"]: one for one in results.joined([new, old])}
    assert list(joined) == ["p", "q"]
    assert times(joined["p"]) == {"bmrm auto": 1.0, "peer a": 2.5, "peer b": 1.0}
    assert summary.compare(joined["p"], 1e-3).other == "peer b"
    assert times(new["problems"][0]) == {"bmrm auto": 1.0, "peer a": 2.5}  # what was read is as it was


@pytest.mark.parametrize("other", [{"machine": "B"}, {"clock": "wall"}])
def test_times_of_another_machine_or_clock_are_not_mixed(other: dict[str, str]) -> None:
    new, old = race("2", record("p", {"bmrm auto": 1.0})), race("1", record("p", {"peer a": 9.0}), **other)
    assert times(results.joined([new, old])[0]) == {"bmrm auto": 1.0}


def test_peers_taken_over_are_judged_by_the_smaller_minimum() -> None:
    ladder = [{"rung": "x", "status": "ok", "objective": 1.0005, "suboptimality": 5e-4}]
    old = race("1", {**record("p", {}), "entrants": [entrant("peer a", 2.0, ladder=ladder)]})
    new = record("p", {"bmrm auto": 1.0})
    assert times(results.joined([race("2", new), old])[0])["peer a"] == 2.0
    assert "peer a" not in times(results.joined([race("2", {**new, "minimum": 0.99}), old])[0])


def test_a_record_without_rounds_has_its_intervals_given() -> None:
    one = record("p", {"bmrm auto": 1.0, "peer a": 2.0})
    one["given"] = {"0.001": {"peer": {"name": "peer a", "interval": [0.4, 0.6]}}}
    assert str(summary.compare(one, 1e-3).ratio) == "0.50 (0.40 to 0.60)"


def test_halves_have_figures_of_their_own() -> None:
    name = "hinge {} l2=0.001"
    fast, slow = {"bmrm auto": 1.0, "peer": 2.0}, {"bmrm auto": 3.0, "peer": 2.0}
    records = [record(name.format(data), times) for data, times in (("a9a", fast), ("w8a", slow), ("unknown", slow))]
    (_, _, row) = tables.halves(records).splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == ["0.50 (worst 0.5, cases 1)", "1.50 (worst 1.5, cases 1)", "-"]
