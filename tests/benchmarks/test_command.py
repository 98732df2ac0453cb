"""The whole way, on a tiny generated problem: race, tables, figures, page, comparison, peers of an old race."""

import json
from pathlib import Path

import pytest

from benchmarks.race import command, comparison, problems, results
from benchmarks.race.problem import Problem
from benchmarks.race.targets import KINDS

pytestmark = pytest.mark.nightly

TINY = (
    Problem("hinge-low", "tiny-binary", "hinge", l2=0.01, quick=True),
    Problem("l1", "tiny-regression", "least_squares", l1=0.01, quick=True),
)


@pytest.fixture
def small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(command, "all_problems", lambda: TINY)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)


@pytest.mark.usefixtures("small_race")
def test_from_the_command_to_the_page(tmp_path: Path) -> None:
    peers = ["--peers", "liblinear -s 3", "sk Lasso", "svmperf"]
    first = [*peers, "--repetitions", "3", "--limit", "5", "--solvers", "line_search_bundle"]
    command.main([*first, "--output", str(tmp_path / "one")])
    found = results.read(tmp_path / "one")
    assert [record["name"] for record in found["problems"]] == [problem.name for problem in TINY]
    assert {one["name"] for one in found["missing"]} <= {"svmperf"}
    entrants = [[entrant["name"] for entrant in record["entrants"]] for record in found["problems"]]
    assert entrants[0] == ["bmrm auto", "bmrm line_search_bundle", "liblinear -s 3"]
    assert entrants[1] == ["bmrm auto", "bmrm line_search_bundle", "sk Lasso"]
    text = (tmp_path / "one" / "race.md").read_text()
    assert KINDS["hinge-low"].title in text
    assert "best single solver" in text
    assert len(list((tmp_path / "one" / "figures").glob("*.png"))) == 3
    lines = (tmp_path / "one" / "race.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3 * 2
    again = ["--only-ours", str(tmp_path / "one"), "--repetitions", "3", "--compare", str(tmp_path / "one")]
    command.main([*again, "--output", str(tmp_path / "two")])
    second = results.read(tmp_path / "two")
    assert [entrant["name"] for entrant in second["problems"][0]["entrants"]] == ["bmrm auto", "liblinear -s 3"]
    assert "slower" in (tmp_path / "two" / "changes.md").read_text()


def test_a_race_goes_into_the_results_of_its_commit(
    small_race: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "commit", lambda: {"commit": "abc", "date": "2026-01-01"})
    monkeypatch.setattr(results.keep, "__defaults__", (tmp_path / "results",))
    small = ["--peers", "sk Lasso", "--repetitions", "1", "--limit", "1", "--keep", "--output", str(tmp_path / "run")]
    for problem in TINY:
        command.main([*small, "--problems", problem.name])
    (first, second) = results.kept(tmp_path / "results")
    assert {first["commit"], second["commit"]} == {"abc"}
    assert sorted(record["name"] for record in results.joined([first, second])) == sorted(one.name for one in TINY)
    before = (tmp_path / "results" / "abc" / "l1.json").read_text()
    command.main([*small, "--problems", TINY[1].name])
    (again,) = (race for race in results.kept(tmp_path / "results") if race["problems"][0]["kind"] == "l1")
    assert [record["name"] for record in again["problems"]] == [TINY[1].name]
    assert len(again["runs"]) == 2
    assert "history" not in before


@pytest.mark.parametrize("name", ["", "abc+"])
def test_results_of_no_commit_are_not_kept(name: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="kept by commit"):
        results.keep({"commit": name, "problems": []}, tmp_path)


def record(seconds: float | None, peer: float) -> dict:
    best = {} if seconds is None else {"0.001": {"rung": "x", "seconds": [seconds] * 5, "in_rounds": True}}
    theirs = {"0.001": {"rung": "x", "seconds": [peer] * 5, "in_rounds": True}}
    entrants = [
        {"name": "bmrm auto", "family": "bmrm", "ours": True, "best": best, "ladder": []},
        {"name": "peer", "family": "peers", "ours": False, "best": theirs, "ladder": []},
    ]
    return {"name": "p", "kind": "hinge-low", "accuracies": [1e-3], "entrants": entrants}


@pytest.mark.parametrize(
    ("then", "now", "peer_then", "peer_now", "verdict"),
    [
        (1.0, 2.0, 1.0, 1.1, "regression"),
        (1.0, 2.0, 1.0, 2.0, ""),  # the machine has become slower, not we
        (1.0, 1.0, 1.0, 2.0, "faster"),
        (1.0, None, 1.0, 1.5, "lost"),
        (None, 1.0, 1.0, 1.5, "gained"),
    ],
)
def test_changes(then: float | None, now: float | None, peer_then: float, peer_now: float, verdict: str) -> None:
    (change,) = comparison.changes([record(now, peer_now)], [record(then, peer_then)])
    assert change.verdict == verdict


def test_the_page_names_no_folder() -> None:
    asked = ["--quick", "--output", "some/where", "--problems", "hinge a9a*", "--resume", "else/where"]
    assert command.command_line(asked) == "python -m benchmarks.race --quick --problems 'hinge a9a*'"


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "race.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(SystemExit, match="schema 99"):
        results.read(tmp_path)


def test_every_problem_belongs_to_a_class_and_has_a_set() -> None:
    from benchmarks.race.judge import MEANS, WHOLE
    from benchmarks.race.sets import MAKERS

    for problem in problems.all_problems():
        assert problem.kind in KINDS
        assert problem.data in MAKERS
        assert problem.loss in MEANS or problem.loss in WHOLE
        assert (problem.l1 > 0.0) or (problem.l2 > 0.0)
    assert {problem.kind for problem in problems.all_problems() if problem.quick} == set(KINDS)


def test_every_set_is_in_one_half_and_every_class_in_each() -> None:
    from benchmarks.race.halves import HALVES

    names = [name for half in HALVES.values() for name in half]
    assert sorted(names) == sorted({problem.data for problem in problems.all_problems()})
    for half in ("tuning", "judging"):
        assert {problem.kind for problem in problems.all_problems() if problem.half == half} == set(KINDS)


def test_a_peer_that_always_fails_is_named():
    def entrant(name, *statuses):
        return {"name": name, "ladder": [{"status": status, "message": f"{name} {status}"} for status in statuses]}

    records = [
        {"entrants": [entrant("broken", "error"), entrant("slow", "time-out"), entrant("good", "ok", "error")]},
        {"entrants": [entrant("broken", "error", "error"), entrant("unserved")]},
    ]
    assert command.never_ran(records) == {"broken": "broken error"}
