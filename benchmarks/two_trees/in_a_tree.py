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


def main(source: str, target: str) -> None:
    """All cases of a file, their results to another."""
    asked = json.loads(Path(source).read_text())

    def work(group: Any) -> int:
        one = alone if group.size == 1 else shared
        found = {name: _tried(one, case, asked["data"][case["data"]], group) for name, case in asked["cases"].items()}
        if group.rank == 0:
            Path(target).write_text(json.dumps(found))
        return 0

    sys.exit(guarded(work))


def alone(case: dict[str, Any], data: dict[str, Any], group: Any) -> Any:
    """By `bmrm.fit`."""
    X, y, weights, groups = arrays(case, data)
    plug_ins = {kind: _tuples(case["fit"][kind]) for kind in ("loss", "solver", "regularizer")}
    bias = case["fit"]["bias"]
    return bmrm.fit(X, y, sample_weight=weights, groups=groups, bias=bias, threads=1, **plug_ins).solution


def shared(case: dict[str, Any], data: dict[str, Any], group: Any) -> Any:
    """The rows in rank order, cut where groups end."""
    X, y, weights, groups = arrays(case, data)
    whole = bmrm.Dataset.from_arrays(X, y, weights, groups)
    cuts = [_border(groups, whole.rows * rank // group.size) for rank in range(group.size)] + [whole.rows]
    fit = case["fit"]
    loss, regularizer, solver = (
        registry.make(options.pop("name"), options)
        for registry, options in (
            (LOSSES, _tuples(fit["loss"])),
            (REGULARIZERS, _tuples(fit["regularizer"])),
            (SOLVERS, _tuples(fit["solver"])),
        )
    )
    mine = whole.part(cuts[group.rank], cuts[group.rank + 1])
    risk = shared_risk(mine, loss, group, bias=fit["bias"] == "regularized", threads=1)
    wrap = FreeIntercept if fit["bias"] == "free" else lambda risk: risk
    return lead(risk, group, lambda risk: solver.minimize(wrap(risk), regularizer))


def arrays(case: dict[str, Any], data: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """X, y, weights and groups."""
    X = np.array(data["X"])
    y = [set(row) for row in data["y"]] if data["sets"] else np.array(data["y"])
    weights = np.array(data["weights"], float) if case["weighted"] else None
    groups = None if data["groups"] is None else np.array(data["groups"])
    return csr_matrix(X) if case["features"] == "sparse" else X, y, weights, groups


def _tried(one: Any, case: dict[str, Any], data: dict[str, Any], group: Any) -> dict[str, Any] | None:
    """What there is to compare: the solution's figures, or that the fit was refused."""
    try:
        solution = one(case, data, group)
    except bmrm.BmrmError as error:
        return {"status": type(error).__name__}
    if solution is None:  # not rank 0
        return None
    figures = ("objective", "lower_bound", "iterations", "passes")
    return {"status": solution.status.name, **{key: float(getattr(solution, key)) for key in figures}}


def _border(groups: Any, row: int) -> int:
    """The first row from `row` on where a group begins."""
    while groups is not None and 0 < row < len(groups) and groups[row] == groups[row - 1]:
        row += 1
    return row


def _tuples(value: Any) -> Any:
    """Plug-ins want tuples where JSON has lists."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    main(*sys.argv[1:])
