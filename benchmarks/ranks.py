"""Training on one rank and on two, and on one with two threads: seconds in the solver, passes and messages.

The rows are dealt out as `data.share_rows` does it. `measure` starts mpirun, which runs `main` here on every rank;
the figures are kept beside the page as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from benchmarks.harness import Table, on_ranks

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
SETTINGS = {"1": (1, 1), "2": (2, 1), "1 x 2": (1, 2)}
"""Ranks, and threads of each."""
TOLERANCE, LIMIT, REPETITIONS = 1e-4, 10.0, 5


def measure() -> Table | None:
    """A line for each problem, a column for each solver: seconds on one rank and on two."""
    from benchmarks.race.sets import available
    from bmrm.kernels.workers import usable_cores

    if usable_cores() < 2 or not all(available(data) for data, _, _ in PROBLEMS):
        return None
    found: dict[str, Any] = {
        name: on_ranks(ranks, "benchmarks.ranks", str(threads)) for name, (ranks, threads) in SETTINGS.items()
    }
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    return table(found)


def table(found: dict[str, Any]) -> Table:
    """Of the figures by setting, problem and solver."""
    one, two, threads = (found[name] for name in SETTINGS)
    rows = []
    for data, loss, lam in PROBLEMS:
        name = _name(data, loss, lam)
        cells = (_cell(*(of[name].get(solver) for of in (one, two, threads))) for solver in SOLVERS)
        rows.append((f"{loss} {data} {lam:g}", *cells))
    pairs = [(one[name]["auto"], two[name]["auto"]) for name in one]
    ratios = [_seconds(b) / _seconds(a) for a, b in pairs if a["gap"] <= TOLERANCE >= b["gap"]]
    longer = [_seconds(b) / _seconds(a) for a, b in pairs if _seconds(a) > 0.3]
    runs = [run for by_name in found.values() for by_solver in by_name.values() for run in by_solver.values()]
    spread = median(max(run["seconds"]) / min(run["seconds"]) - 1.0 for run in runs if len(run["seconds"]) > 1)
    mean = f"{geometric_mean(ratios):.2f}" + (f"; above 0.3 s {geometric_mean(longer):.2f}" if longer else "")
    return Table(
        "One rank and two",
        f"l2, to a gap of {TOLERANCE:g}, at most {LIMIT:g} s: seconds in the solver on one rank, on two with a thread"
        f" each, and on one with two threads, median of up to {REPETITIONS} runs (from the least to the most"
        f" {spread:.0%} in the middle case; gap where it is not met); messages of two ranks an iteration in brackets."
        f" `auto` on two ranks takes {mean} of its time on one (geometric means). {_threads_and_ranks(two, threads)}",
        ("problem", *SOLVERS),
        tuple(rows),
    )


def _cell(one: dict[str, Any] | None, two: dict[str, Any] | None, threads: dict[str, Any] | None) -> str:
    if one is None or two is None or threads is None:
        return "-"
    seconds = [
        f"{_seconds(run):.2f}" + ("" if run["gap"] <= TOLERANCE else f" (gap {run['gap']:.1e})")
        for run in (one, two, threads)
    ]
    return f"{seconds[0]} -> {seconds[1]} [{two['messages'] / max(1, two['iterations']):.0f}], {seconds[2]}"


def _threads_and_ranks(two: dict[str, Any], threads: dict[str, Any]) -> str:
    """Two ranks over two threads, by solver, where both take as many passes, up to a tenth."""
    said = []
    for solver in SOLVERS:
        pairs = [(two[name].get(solver), threads[name].get(solver)) for name in two]
        both = [(a, b) for a, b in pairs if a and b and max(a["gap"], b["gap"]) <= TOLERANCE]
        alike = [_seconds(a) / _seconds(b) for a, b in both if abs(a["passes"] / b["passes"] - 1.0) <= 0.1]
        if alike:
            said.append(f"{solver} {geometric_mean(alike):.2f} ({min(alike):.2f} to {max(alike):.2f})")
    return f"Two ranks over two threads, where passes are the same up to a tenth: {', '.join(said)}."


def _seconds(run: dict[str, Any]) -> float:
    return median(run["seconds"])


def _name(data: str, loss: str, lam: float) -> str:
    return f"{loss} {data} {lam:g}"


def main() -> None:
    """On every rank: all problems by all solvers, with so many threads; rank 0 prints the figures as JSON."""
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
        risk = shared_risk(mine, LOSSES.make(loss), group, threads=int(sys.argv[1]), share_rows=True)
        found[_name(data, loss, lam)] = lead(risk, group, lambda risk, lam=lam: _runs(risk, lam))
    if group.rank == 0:
        print(json.dumps(found))


def _runs(risk: Any, lam: float) -> dict[str, Any]:
    """By solver, the last of some runs, with the seconds of all."""
    from bmrm.problem import IncompatibleError, ability
    from bmrm.problem.abilities import Traffic
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
        found[name] = {**runs[-1], "seconds": [run["seconds"] for run in runs]}
    return found


if __name__ == "__main__":
    main()
