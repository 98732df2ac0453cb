"""The whole way, on a tiny generated problem: race, tables, figures, page, comparison, peers of an old race."""

import json
from pathlib import Path

import pytest

from benchmarks.race import command, comparison, problems, results
from benchmarks.race.problem import Problem
from benchmarks.race.targets import KINDS

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
    first = [*peers, "--repetitions", "3", "--limit", "5", "--extras", "--solvers", "line_search_bundle"]
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
    assert len(list((tmp_path / "one" / "figures").glob("*.png"))) >= 3
    lines = (tmp_path / "one" / "race.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3 * 2
    again = ["--only-ours", str(tmp_path / "one"), "--repetitions", "3", "--extras", "--compare", str(tmp_path / "one")]
    command.main([*again, "--output", str(tmp_path / "two")])
    second = results.read(tmp_path / "two")
    assert [entrant["name"] for entrant in second["problems"][0]["entrants"]] == ["bmrm auto", "liblinear -s 3"]
    assert "slower" in (tmp_path / "two" / "changes.md").read_text()


@pytest.mark.usefixtures("small_race")
def test_races_that_shared_out_the_problems_are_joined(tmp_path: Path) -> None:
    small = ["--peers", "none", "--repetitions", "1", "--limit", "1", "--extras"]
    for place, problem in enumerate(TINY):
        command.main([*small, "--problems", problem.name, "--output", str(tmp_path / str(place))])
    parts = [str(tmp_path / str(place)) for place in reversed(range(len(TINY)))]
    command.main(["--from", *parts, "--output", str(tmp_path / "all")])
    found = results.read(tmp_path / "all")
    assert [record["name"] for record in found["problems"]] == [problem.name for problem in TINY]
    text = (tmp_path / "all" / "race.md").read_text()
    assert all(f"--problems '{problem.name}'" in text for problem in TINY)
    command.main(["--from", parts[0], "--output", str(tmp_path / "one")])
    with pytest.raises(SystemExit, match=f"twice in races of one time: {TINY[0].name}"):
        command.main(["--from", *parts, parts[-1], "--output", str(tmp_path / "twice")])


def test_of_a_problem_in_two_races_the_later_counts() -> None:
    def race(started: str, *names: str) -> dict:
        problems = [{"name": name, "of": started} for name in names]
        facts = {"machine": {}, "versions": {}, "options": {"clock": "cpu"}, "extras": [], "missing": []}
        return facts | {"started": started, "command": f"race {started}", "commit": started, "problems": problems}

    found = results.joined([race("2026-01-03", "a", "b"), race("2026-01-01", "a", "c"), race("2026-01-02", "b")])
    assert [(one["name"], one["of"]) for one in found["problems"]] == [
        ("a", "2026-01-03"),
        ("b", "2026-01-03"),
        ("c", "2026-01-01"),
    ]
    assert [run["commit"] for run in found["runs"]] == ["2026-01-03", "2026-01-01"]


def test_what_was_not_raced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "all_problems", lambda: TINY)
    head = {"schema": 1, "machine": {}, "versions": {}, "started": "", "extras": [], "options": {"clock": "cpu"}}
    for name in "ab":
        results.write(tmp_path / name, head | {"command": "x", "commit": "", "missing": [], "problems": []})
    found = command._old([tmp_path / "a", tmp_path / "b"])
    assert found["missing"] == [{"name": problem.name, "reason": "not raced"} for problem in TINY]


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
