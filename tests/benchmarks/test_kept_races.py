"""What is kept of races, and the pages made from it."""

from __future__ import annotations

from benchmarks.race import page, results


def test_the_pages_are_what_the_kept_results_give() -> None:
    texts = page.texts(results.kept(), "figures/benchmarks")
    assert {name: (page.DOCS / name).read_text() for name in texts} == texts
    shown = texts["benchmarks.md"]
    assert "| inf" not in shown
    figures = sorted(path.name for path in (page.DOCS / "figures" / "benchmarks").iterdir())
    assert all(f"figures/benchmarks/{name}" in shown for name in figures)


def test_kept_results_name_no_machine_and_no_path() -> None:
    for race in results.kept():
        assert set(race["machine"]) == {"processor", "cores", "python"}
        assert all(part not in run["command"] for run in race["runs"] for part in ("--output", "/"))


def test_every_case_among_the_worst_has_a_reason() -> None:
    assert page.unexplained(results.kept()) == []
