"""The papers, answered: every claim's rule, a small run of every study, the pages from the rows that are kept."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

from benchmarks.papers import page
from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.results import KEPT, Results, identity
from benchmarks.papers.study import IN_PART, OPEN, REFUTED, REPRODUCED, Finding, studies, verdict

STUDIES = studies()


def test_verdicts():
    yes, no, unknown = Finding(True, "1"), Finding(False, "2"), Finding(None, "")
    assert verdict({"a": yes, "b": yes, "c": unknown}) == REPRODUCED
    assert verdict({"a": yes, "b": no}) == IN_PART
    assert verdict({"a": no, "b": no, "c": unknown}) == REFUTED
    assert verdict({"a": unknown}) == OPEN


@pytest.mark.parametrize("name", STUDIES)
def test_cells_of_a_quick_run_are_some_of_all(name):
    study = STUDIES[name]
    full = [identity(cell) for cell in study.cells("full")]
    quick = [identity(cell) for cell in study.cells("quick")]
    assert set(quick) <= set(full)
    assert len(set(full)) == len(full)
    assert len({tuple(cell) for size in ("tiny", "quick", "full") for cell in study.cells(size)}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_small_run(name, tmp_path):
    study, results = STUDIES[name], Results(STUDIES[name], tmp_path)
    for cell in study.cells("tiny"):
        results.add(cell, 0, study.run(cell, 0), 1.0)
    frame = results.frame(0)
    assert set(results.done(0)) == {identity(cell) for cell in study.cells("tiny")}
    assert results.done(1) == set()
    findings = study.findings(frame)
    assert list(findings) == list(CLAIMS[name].parts)
    assert all(one.holds in (True, False, None) and one.number for one in findings.values())
    columns, rows = study.table(frame)
    assert rows
    assert all(len(row) == len(columns) for row in rows)
    study.plot(frame, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_command_deals_cells_to_processes(tmp_path):
    command = [sys.executable, "-m", "benchmarks.papers", "kdd_7", "--tiny", "--jobs", "2", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert Results(STUDIES["kdd_7"], tmp_path).done(0) == {identity(cell) for cell in STUDIES["kdd_7"].cells("tiny")}
    assert "kdd_7" in done.stdout
    assert list((tmp_path / "pages").iterdir())


def test_rows_of_a_cell_are_kept_whole(tmp_path):
    study = STUDIES["thesis_cg_updates"]
    results, cells = Results(study, tmp_path), study.cells("full")
    results.add(cells[0], 0, [{"value": 0.1}, {"value": float("nan")}], 2.0)
    results.add(cells[1], 1, [{"value": 2.0}], 2.0)
    assert results.done(0) == {identity(cells[0])}
    assert results.done(1) == {identity(cells[1])}
    assert results.frame()["value"].isna().tolist() == [False, True, False]


@pytest.fixture(scope="module")
def written():
    """The pages as the kept rows make them."""
    return page.written()


def test_the_pages_are_those_of_the_kept_rows(written):
    for name, text in written.items():
        assert (page.DOCS / name).read_text(encoding="utf-8") == text, "run python -m benchmarks.papers --page"


@pytest.mark.parametrize("name", [name for name in STUDIES if Results(STUDIES[name], KEPT).path.exists()])
def test_a_table_of_the_page_is_made_from_the_file(name, written):
    study = STUDIES[name]
    rows = pd.read_csv(KEPT / f"{name}.csv", keep_default_na=False, na_values=["nan"])
    columns, lines = study.table(rows[rows["seed"] == 0].reset_index(drop=True))
    text = written[study.page or page.PAGE]
    assert "| " + " | ".join(columns) + " |" in text
    assert all("| " + " | ".join(map(str, line)) + " |" in text for line in lines)
    assert (page.DOCS / page.FIGURES / f"{name}.png").exists()


def test_an_empty_folder_has_a_page_of_rules(tmp_path):
    text = page.written(tmp_path)[page.PAGE]
    assert text.count(f"| {OPEN} |") == len(CLAIMS)
    assert all(part.rule in text for claim in CLAIMS.values() for part in claim.parts.values())
