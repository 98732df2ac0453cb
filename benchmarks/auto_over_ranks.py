"""`auto` on one rank and on two, on all problems of the race that take it long alone; a table and a picture.

`measure` starts mpirun, which runs `main` here on every rank; the figures are kept beside the page as JSON. Which
problems: those for which the kept results of the race have more than `LONG` seconds to `TOLERANCE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks.harness import Table, on_ranks

RESULTS = Path(__file__).with_name("results")
KEPT, PICTURE = RESULTS / "auto-over-ranks.json", Path("docs/figures/ranks.svg")
RANKS = (1, 2)
TOLERANCE, LONG, LIMIT, REPETITIONS, ENOUGH = 1e-6, 0.3, 15.0, 5, 8.0
"""`LONG` and `LIMIT` in seconds; no run begins after `ENOUGH` seconds of a problem, but for two."""


def long_problems() -> list[str]:
    """Names, in the order of the race."""
    from benchmarks.race.problems import all_problems

    known: dict[str, float] = {}
    folders = sorted((each for each in RESULTS.iterdir() if each.is_dir()), key=_date)
    for path in (path for folder in folders for path in folder.glob("*.json")):
        for problem in json.loads(path.read_text())["problems"]:
            for entrant in problem.get("entrants", ()):
                if entrant["name"] == "bmrm auto" and entrant["ladder"]:
                    known[problem["name"]] = entrant["ladder"][-1].get("seconds") or 0.0
    return [p.name for p in all_problems() if p.ours == "auto" and LONG < known.get(p.name, 0.0) < LIMIT]


def _date(folder: Path) -> str:
    return str(json.loads(next(folder.glob("*.json")).read_text())["date"])


def measure() -> Table | None:
    """A line for each problem."""
    from benchmarks.race.sets import available
    from bmrm.kernels.workers import usable_cores

    names = [name for name in long_problems() if available(name.split()[1])]
    if usable_cores() < max(RANKS) or not names:
        return None
    found = {str(ranks): on_ranks(ranks, "benchmarks.auto_over_ranks", json.dumps(names)) for ranks in RANKS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    draw(found)
    return table(found)


def pairs_of(found: Mapping[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The figures on one rank and on two, of problems that take more than `LONG` seconds on one, in this run too."""
    one, two = (found[str(ranks)] for ranks in RANKS)
    return {name: (one[name], two[name]) for name in one if name in two and median(one[name]["seconds"]) > LONG}


def table(found: Mapping[str, Any]) -> Table:
    """Of the figures by number of ranks and problem."""
    from benchmarks.race.halves import half_of_problem

    rows, ratios = [], {"tuning": [], "judging": [], "unlike": []}  # type: ignore[var-annotated]
    for name, (one, two) in pairs_of(found).items():
        ratio = median(two["seconds"]) / median(one["seconds"])
        ratios[half_of_problem(name)].append(ratio)
        cells = (_cell(one), _cell(two), f"{ratio:.2f}", f"{one['passes']:.0f} -> {two['passes']:.0f}")
        rows.append((name, half_of_problem(name), *cells, two["messages"], two["solver"]))
    everything = [ratio for part in ratios.values() for ratio in part]
    means = ", ".join(f"{half} {geometric_mean(part):.2f}" for half, part in ratios.items() if part)
    return Table(
        "auto on one rank and on two",
        f"The problems are those of the race on which `auto` alone takes more than {LONG:g} s to a gap of"
        f" {TOLERANCE:g}. They are solved by one rank on one core and by two ranks on two (rank 0 uses both where it"
        f" solves with all rows), rows distributed at random (`data.share_rows`). The table shows the seconds in the"
        f" solver, median (least to most) of up to {REPETITIONS} runs, and the gap where it missed the tolerance."
        f" Two ranks take {geometric_mean(everything):.2f} of the time of one (geometric mean;"
        f" {means}), {max(everything):.2f} at worst, less than .65 in {sum(r <= 0.65 for r in everything)} of"
        f" {len(everything)}."
        f"\n\n![Seconds on one rank and on two](figures/ranks.svg)",
        ("problem", "half", "one rank", "two ranks", "ratio", "passes", "messages", "solvers on two ranks"),
        tuple(rows),
    )


def _cell(run: Mapping[str, Any]) -> str:
    seconds = run["seconds"]
    missed = "" if run["gap"] <= TOLERANCE else f", gap {run['gap']:.1e}"
    return f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f}{missed})"


def draw(found: Mapping[str, Any]) -> None:
    """Seconds on two ranks against seconds on one."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bmrm"
    from matplotlib import pyplot
    from matplotlib.ticker import FixedLocator, NullLocator

    figure, axes = pyplot.subplots(figsize=(4.8, 5.2))
    pairs = [(median(one["seconds"]), median(two["seconds"])) for one, two in pairs_of(found).values()]
    gathered = ["rank 0 with all rows" in two["solver"] for _, two in pairs_of(found).values()]
    for all_rows, color, label in ((False, "#1f6fb4", "both ranks compute"), (True, "#d1701f", "rank 0 has all rows")):
        some = [pair for pair, alone in zip(pairs, gathered) if alone is all_rows]
        if some:
            axes.scatter(*zip(*some), s=22, color=color, label=label, zorder=3)
    ends = [0.8 * min(map(min, pairs)), 1.25 * max(map(max, pairs))]
    for factor, words in ((1.0, "as long"), (0.5, "half as long")):
        axes.plot(ends, [factor * end for end in ends], color="0.6", lw=0.9, ls="-" if factor == 1.0 else "--")
        place = 1.05 * ends[0], 1.05 * factor * ends[0]
        axes.annotate(words, place, rotation=45, rotation_mode="anchor", va="bottom", fontsize=8, color="0.35")
    ticks = [t for t in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if ends[0] < t < ends[1]]
    axes.set(xscale="log", yscale="log", aspect="equal", xlim=ends, ylim=[0.5 * ends[0], ends[1]])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.set(xlabel="seconds on one rank", ylabel="seconds on two ranks", title="auto to a gap of 1e-6")
    axes.grid(True, lw=0.3, color="0.9")
    axes.legend(loc="upper left", fontsize=8)
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    """On every rank: the problems named on the command line; rank 0 prints the figures as JSON."""
    from benchmarks.race.ours import regularizer_of
    from benchmarks.race.problem import Task
    from benchmarks.race.problems import all_problems
    from bmrm.losses import LOSSES
    from bmrm.mpi.dealing import deal_out
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    group, found = open_group(), {}
    problems = {problem.name: problem for problem in all_problems()}
    for name in json.loads(sys.argv[1]):
        task = Task.of(problems[name])
        loss = LOSSES.make(task.loss, dict(task.problem.options))
        first, last = _edges(task.dataset, group.rank, group.size)
        mine = deal_out(task.dataset.part(first, last), group, 0)
        threads = 1 if group.size == 1 else None  # of ranks their share; rank 0 with all rows has the cores of all
        risk = shared_risk(mine, loss, group, threads=threads, share_rows=True)
        run = lead(risk, group, lambda risk, task=task: _run(risk, regularizer_of(task)))
        if run is not None:
            found[name] = run
            print(name, run, file=sys.stderr, flush=True)
    if group.rank == 0:
        print(json.dumps(found))


def _edges(data: Any, rank: int, size: int) -> tuple[int, int]:
    """The rows of a rank, whole groups."""
    import numpy as np

    edges, groups = [data.rows * k // size for k in range(size + 1)], data.targets.groups
    if groups is not None:
        starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1], [True])))
        edges = [int(starts[np.searchsorted(starts, edge)]) if edge < data.rows else data.rows for edge in edges]
    return edges[rank], edges[rank + 1]


def _run(risk: Any, regularizer: Any) -> dict[str, Any]:
    from bmrm.problem import ability
    from bmrm.problem.abilities import Traffic
    from bmrm.solvers import SOLVERS

    traffic, seconds = ability(risk, Traffic), []
    SOLVERS.make("auto", {"tolerance": TOLERANCE, "time_limit": 1.0}).minimize(risk, regularizer)  # loads kernels
    while len(seconds) < 2 or (len(seconds) < REPETITIONS and sum(seconds) < ENOUGH):
        before = None if traffic is None else traffic.so_far()
        solver = SOLVERS.make("auto", {"tolerance": TOLERANCE, "time_limit": LIMIT, "max_iterations": 10**7})
        solution = solver.minimize(risk, regularizer)
        after = None if traffic is None else traffic.so_far()
        seconds.append(solution.seconds)
        if solution.seconds > LIMIT / 2:
            break
    return {
        "seconds": seconds,
        "gap": solution.relative_gap if solution.relative_gap < 1e9 else 1e9,
        "passes": solution.passes,
        "iterations": solution.iterations,
        "messages": 0 if before is None or after is None else after.messages - before.messages,
        "bytes": 0 if before is None or after is None else after.bytes - before.bytes,
        "solver": solution.solver,
    }


if __name__ == "__main__":
    main()
