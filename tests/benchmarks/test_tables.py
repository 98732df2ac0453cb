"""The tables of a race."""

from __future__ import annotations

from typing import Any

from benchmarks.race import tables


def record(name: str, solvers: dict[str, float]) -> dict[str, Any]:
    def best(seconds: float) -> dict[str, Any]:
        return {"0.001": {"rung": "x", "seconds": [seconds] * 5, "in_rounds": True}}

    entrants = [{"name": f"bmrm {one}", "ours": True, "best": best(taken)} for one, taken in solvers.items()]
    return {"name": name, "kind": "hinge-low", "accuracies": [1e-3], "entrants": entrants}


def test_auto_is_compared_where_it_ran_and_others_did() -> None:
    both = record("both", {"auto": 3.0, "newton": 2.0, "lbfgs": 4.0})
    alone = record("alone", {"auto": 3.0})
    without = record("without", {"line_search_bundle": 3.0, "newton": 2.0})
    (*_, row, mean) = tables.single_solvers([both, alone, without]).splitlines()
    assert [cell.strip() for cell in row.strip("|").split("|")][:4] == ["`both`", "0.001", "3 s", "2 s bmrm newton"]
    assert "1.50" in row
    assert "1.50" in mean
    text = tables.single_solvers([both, alone, without])
    assert "alone" not in text
    assert "without" not in text
