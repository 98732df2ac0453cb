"""Run in either tree (`PYTHONPATH`), by its path: only what both trees have. Reads JSON, writes JSON.

python in_a_tree.py CASES FOUND       the fits alone; under mpirun shared out over the ranks
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import bmrm
from bmrm.losses import LOSSES
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.run import guarded
from bmrm.solvers import SOLVERS

FIGURES = ("objective", "lower_bound", "iterations", "passes")


def main(source: str, target: str) -> None:
    """All cases of a file, their results to another."""
    asked = json.loads(Path(source).read_text())

    def work(group: Any) -> int:
        found = {name: tried(case, asked["data"][case["data"]], group) for name, case in asked["cases"].items()}
        if group.rank == 0:
            Path(target).write_text(json.dumps(found))
        return 0

    sys.exit(guarded(work))


def tried(case: dict[str, Any], data: dict[str, Any], group: Any) -> dict[str, Any] | None:
    """What there is to compare: status and figures, or that the fit was refused; None but on rank 0."""
    X = csr_matrix(np.array(data["X"])) if case["features"] == "sparse" else np.array(data["X"])
    y = [set(row) for row in data["y"]] if data["sets"] else np.array(data["y"])
    weights = np.array(data["weights"], float) if case["weighted"] else None
    groups = None if data["groups"] is None else np.array(data["groups"])
    fit = alone if group.size == 1 else shared
    try:
        solution = fit(X, y, weights, groups, case["bias"], made(case["fit"]), group)
    except bmrm.BmrmError as error:
        return {"status": type(error).__name__}
    return None if solution is None else figures(solution)


def alone(X: Any, y: Any, weights: Any, groups: Any, bias: str, plug_ins: dict[str, Any], group: Any) -> Any:
    """By `bmrm.fit`."""
    return bmrm.fit(X, y, sample_weight=weights, groups=groups, bias=bias, threads=1, **plug_ins).solution


def shared(X: Any, y: Any, weights: Any, groups: Any, bias: str, plug_ins: dict[str, Any], group: Any) -> Any:
    """The rows in rank order, cut where groups end."""
    whole = bmrm.Dataset.from_arrays(X, y, weights, groups)
    cuts = [_border(groups, whole.rows * rank // group.size) for rank in range(group.size)] + [whole.rows]
    mine = whole.part(cuts[group.rank], cuts[group.rank + 1])
    risk = shared_risk(mine, plug_ins["loss"], group, bias=bias == "regularized", threads=1)
    wrap = FreeIntercept if bias == "free" else lambda risk: risk
    return lead(risk, group, lambda risk: plug_ins["solver"].minimize(wrap(risk), plug_ins["regularizer"]))


def made(fit: dict[str, Any]) -> dict[str, Any]:
    """The plug-ins that `{"loss": {"name": ..., option: value}, ...}` describes; they want tuples, JSON has lists."""
    registries = {"loss": LOSSES, "regularizer": REGULARIZERS, "solver": SOLVERS}
    sections = {kind: {key: _tuples(value) for key, value in fit[kind].items()} for kind in registries}
    return {kind: registry.make(sections[kind].pop("name"), sections[kind]) for kind, registry in registries.items()}


def figures(solution: Any) -> dict[str, Any]:
    """Status and numbers."""
    return {"status": solution.status.name, **{key: float(getattr(solution, key)) for key in FIGURES}}


def _border(groups: Any, row: int) -> int:
    """The first row from `row` on where a group begins."""
    while groups is not None and 0 < row < len(groups) and groups[row] == groups[row - 1]:
        row += 1
    return row


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
