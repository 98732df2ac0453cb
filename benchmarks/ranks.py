"""Training on one rank and on two: seconds in the solver, passes and messages, one thread a rank.

The rows are dealt out as `data.share_rows` does it. `measure` starts mpirun, which runs `main` here on every rank;
the figures are kept beside the page as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from benchmarks.harness import Table

KEPT = Path(__file__).with_name("results") / "ranks.json"
PROBLEMS = (
    ("covtype-scaled", "hinge", 1e-5),
    ("covtype-scaled", "logistic", 1e-5),
    ("farm-ads", "hinge", 1e-4),
    ("farm-ads", "squared_hinge", 1e-4),
    ("usps", "softmax", 1e-3),
    ("usps", "multiclass_hinge", 1e-3),
    ("a9a", "roc_area", 1e-4),
)
"""Data of the race, loss, lambda of l2."""
SOLVERS = ("auto", "bundle", "line_search_bundle", "lbfgs", "newton", "semismooth_newton", "dual_coordinate")
RANKS = (1, 2)
TOLERANCE, LIMIT, REPETITIONS = 1e-4, 10.0, 3


def measure() -> Table | None:
    """A line for each problem, a column for each solver: seconds on one rank and on two."""
    from benchmarks.race.sets import available
    from bmrm.kernels.workers import usable_cores

    if usable_cores() < max(RANKS) or not all(available(data) for data, _, _ in PROBLEMS):
        return None
    found: dict[str, Any] = {str(ranks): _launched(ranks) for ranks in RANKS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    return table(found)


def table(found: dict[str, Any]) -> Table:
    """Of the figures by number of ranks, problem and solver."""
    one, two = (found[str(ranks)] for ranks in RANKS)
    rows = []
    for data, loss, lam in PROBLEMS:
        name = _name(data, loss, lam)
        rows.append((f"{loss} {data} {lam:g}", *(_cell(one[name].get(s), two[name].get(s)) for s in SOLVERS)))
    pairs = [(one[name]["auto"], two[name]["auto"]) for name in one]
    ratios = [b["seconds"] / a["seconds"] for a, b in pairs if a["gap"] <= TOLERANCE >= b["gap"]]
    longer = [b["seconds"] / a["seconds"] for a, b in pairs if a["seconds"] > 0.3]
    mean = f"{geometric_mean(ratios):.2f}" + (f"; above 0.3 s {geometric_mean(longer):.2f}" if longer else "")
    return Table(
        "One rank and two",
        f"l2, to a gap of {TOLERANCE:g}, at most {LIMIT:g} s, one thread a rank: seconds in the solver, best of"
        f" {REPETITIONS} (gap where it is not met), messages of two ranks an iteration in brackets. `auto` on two ranks"
        f" takes {mean} of its time on one (geometric means).",
        ("problem", *SOLVERS),
        tuple(rows),
    )


def _cell(one: dict[str, Any] | None, two: dict[str, Any] | None) -> str:
    if one is None or two is None:
        return "-"
    seconds = [
        f"{run['seconds']:.2f}" + ("" if run["gap"] <= TOLERANCE else f" (gap {run['gap']:.1e})") for run in (one, two)
    ]
    return f"{seconds[0]} -> {seconds[1]} [{two['messages'] / max(1, two['iterations']):.0f}]"


def _name(data: str, loss: str, lam: float) -> str:
    return f"{loss} {data} {lam:g}"


def _launched(ranks: int) -> dict[str, Any]:
    from bmrm.mpi.launch import needed_mpirun

    launcher = [needed_mpirun(), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, "-m", "benchmarks.ranks"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """On every rank: all problems by all solvers; rank 0 prints the figures as JSON."""
    from benchmarks.race.sets import load
    from bmrm.losses import LOSSES
    from bmrm.mpi.dealing import deal_out
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    group, found = open_group(), {}
    for data, loss, lam in PROBLEMS:
        whole = load(data)
        edges = [whole.rows * rank // group.size for rank in (group.rank, group.rank + 1)]
        mine = deal_out(whole.part(*edges), group, 0)
        risk = shared_risk(mine, LOSSES.make(loss), group, threads=1, share_rows=True)
        found[_name(data, loss, lam)] = lead(risk, group, lambda risk, lam=lam: _runs(risk, lam))
    if group.rank == 0:
        print(json.dumps(found))


def _runs(risk: Any, lam: float) -> dict[str, Any]:
    """By solver, the best of some runs."""
    from bmrm.problem import IncompatibleError, Traffic, ability
    from bmrm.regularizers.l2 import L2
    from bmrm.solvers import SOLVERS as REGISTRY

    found: dict[str, Any] = {}
    traffic = ability(risk, Traffic)
    for name in SOLVERS:
        runs: list[dict[str, Any]] = []
        try:
            REGISTRY.make(name, {"tolerance": 0.3, "time_limit": 3.0}).minimize(risk, L2(lam))  # loads kernels
            for _ in range(REPETITIONS):
                before = None if traffic is None else traffic.so_far()
                solver = REGISTRY.make(name, {"tolerance": TOLERANCE, "time_limit": LIMIT, "max_iterations": 10**6})
                solution = solver.minimize(risk, L2(lam))
                after = None if traffic is None else traffic.so_far()
                sent = (
                    (0, 0)
                    if before is None or after is None
                    else (after.messages - before.messages, after.bytes - before.bytes)
                )
                runs.append(
                    {
                        "seconds": solution.seconds,
                        "gap": float(np.nan_to_num(solution.relative_gap, posinf=1e9)),
                        "passes": solution.passes,
                        "iterations": solution.iterations,
                        "messages": sent[0],
                        "bytes": sent[1],
                        "solver": solution.solver,
                    }
                )
                if solution.seconds > 0.3 * LIMIT:
                    break
        except IncompatibleError:
            continue
        found[name] = min(runs, key=lambda run: run["seconds"])
    return found


if __name__ == "__main__":
    main()
