"""How a smooth loss, a hinge and a loss of the whole sample grow: ranks and threads here, and clusters, predicted.

`measure` runs the same rows, and rows that grow with the cores, on one rank and two, and on one with two threads; runs
that outnumber the cores by far, for their objectives; and records runs on one rank, from which `benchmarks.simulator`
predicts all others. The figures are kept as JSON; the page *How it grows* is written from them.
`python -m benchmarks.scaling --rows 20000` is the same on fewer rows; `--page` only writes the page again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Table, machine, on_ranks

KEPT = Path(__file__).with_name("results") / "scaling.json"
ROWS, FEATURES, ITERATIONS = 200_000, 20_000, 40
ROUNDS, REPETITIONS = 3, 3
"""How often each process is started, and how often it runs a problem."""
PROBLEMS: Mapping[str, tuple[str, str, float]] = {
    "logistic": ("logistic", "lbfgs", 1e-6),
    "hinge": ("hinge", "line_search_bundle", 1e-5),
    "roc_area": ("roc_area", "line_search_bundle", 1e-4),
}
"""Loss, solver and lambda of l2, by name."""
SETTINGS: Mapping[str, tuple[int, int]] = {"1": (1, 1), "2": (2, 1), "1 x 2": (1, 2)}
"""Ranks, and threads of each."""
CROWDS = (1, 2, 4, 8, 16, 32, 64)
CROWD_ROWS, CROWD_FEATURES, CROWD_GAP = 3_200, 60, 1e-10
"""Of problems that are solved on more ranks than there are cores."""
TEXTS: Mapping[str, tuple[str, int, tuple[str, str, float, float]]] = {
    "mesh": ("rows=20000&words=130&features=", 200_000, ("hinge", "line_search_bundle", 1e-5, 1e-2)),
    "vw": ("rows=20000&words=150&features=", 1_000_000, ("logistic", "lbfgs", 1e-6, 1e-3)),
}
"""Generated texts that are recorded for problems of the literature, their features; loss, solver, lambda and gap."""
FEW = 1_000
"""Features of a run that has next to none."""
Figures = dict[str, Any]


def measure() -> Table | None:
    """A line for each problem; the page *How it grows* is written, too."""
    return measured(ROWS)


def measured(rows: int) -> Table | None:
    """The same on so many rows."""
    from benchmarks.race.sets import available
    from benchmarks.simulator import page
    from bmrm.kernels.workers import usable_cores

    if usable_cores() < 2 or not available("covtype-scaled"):
        return None
    found: Figures = {"rows": rows, "features": FEATURES, "iterations": ITERATIONS}
    found |= {"runs": ROUNDS * REPETITIONS, "on": machine(), "load": os.getloadavg()[1]}
    for stage in (timed(rows), cases, crowds):
        found |= stage()
        keep(found)
    page.write(found)
    return table(found)


def timed(rows: int) -> Callable[[], Figures]:
    """Runs, this machine as a cluster, and recordings: in turn, so that a noisy moment hits all; the fastest counts."""

    def growing(weak: bool) -> Figures:
        settings = {name: of for name, of in SETTINGS.items() if not weak or max(of) > 1}
        return {name: _launched(n, "run", rows * (n * t if weak else 1), t) for name, (n, t) in settings.items()}

    def once() -> Figures:
        cluster = on_ranks(2, "benchmarks.simulator.machine", str(rows // 2), str(FEATURES))
        runs = {"strong": growing(weak=False), "weak": growing(weak=True)}
        return {**runs, "machine": cluster, "recordings": _launched(1, "record", rows)}

    return lambda: best([once() for _ in range(ROUNDS)])


def best(rounds: Sequence[Figures]) -> Figures:
    """Of some rounds, each run that was fastest; the machine as it was when messages were."""
    found: Figures = {"machine": min((each["machine"] for each in rounds), key=lambda one: one["latency"])}
    for kind in ("strong", "weak"):
        found[kind] = {
            name: {
                problem: min((each[kind][name][problem] for each in rounds), key=lambda run: run["seconds"])
                for problem in PROBLEMS
            }
            for name in rounds[0][kind]
        }
    recordings = (each["recordings"] for each in rounds)
    found["recordings"] = {name: min(of, key=_seconds) for name, of in _by_name(recordings).items()}
    return found


def _by_name(rounds: Iterable[Figures]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for each in rounds:
        for name, value in each.items():
            found.setdefault(name, []).append(value)
    return found


def _seconds(recording: Figures) -> float:
    from benchmarks.simulator.recording import Recording

    return Recording.model_validate(recording).seconds


def cases() -> Figures:
    """Recordings for the problems of the literature."""
    return {"cases": _launched(1, "record_cases")}


def crowds() -> Figures:
    """Little data on many ranks."""
    return {"crowds": {str(ranks): _launched(ranks, "agree") for ranks in CROWDS}}


def _launched(ranks: int, *arguments: object) -> Any:
    return on_ranks(ranks, "benchmarks.scaling", *map(str, arguments))


def keep(found: Figures) -> None:
    """Write the figures, a line for each run."""

    def lines(value: Any, depth: int) -> str:
        if depth == 0 or not isinstance(value, dict):
            return json.dumps(_short(value), separators=(",", ":"))
        inner = ",\n".join(f"{json.dumps(name)}: {lines(each, depth - 1)}" for name, each in value.items())
        return f"{{\n{inner}\n}}"

    KEPT.write_text(lines(found, 3) + "\n")


def _short(value: Any) -> Any:
    """The same, numbers in lists (of the steps of a recording) to six digits."""
    if isinstance(value, dict):
        return {name: _short(each) if isinstance(each, (dict, list)) else each for name, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def table(found: Figures) -> Table:
    """Of the figures: what two ranks bring, and how near the prediction is."""
    from benchmarks.simulator import page

    rows = []
    for check in page.checks(found):
        strong, weak = found["strong"], found["weak"]
        alone = page.seconds(strong["1"][check.problem])
        ratios = (page.seconds(runs["2"][check.problem]) / alone for runs in (strong, weak))
        rows.append((check.problem, f"{alone:.2f}", *(f"{ratio:.2f}" for ratio in ratios), *check.cells()))
    return Table(
        "How it grows",
        f"Generated texts, {found['rows']:,} rows of {found['features']:,} features, {found['iterations']} iterations:"
        " seconds of one rank, and of two with a thread each over these, with the same rows and with twice as many"
        f" (fastest of {found['runs']} runs). The last columns are seconds predicted from a run recorded on one rank,"
        " over those measured. Laws, larger clusters and pictures: [How it grows](scaling.md)."
        f"{page.busy(found)}",
        ("problem", "one rank, s", "two ranks, same rows", "two ranks, twice as many", *page.CHECKED),
        tuple(rows),
    )


# -- on every rank ---------------------------------------------------------------------------------


def run(group: Any, rows: int, threads: int) -> dict[str, Any]:
    """By problem, the fastest of some runs on texts of so many rows, which stay where they are."""
    found = {}
    for name in PROBLEMS:
        found[name] = _on_all(group, f"rows={rows}&features={FEATURES}", name, threads, 1e-9, ITERATIONS, REPETITIONS)
    return found


def agree(group: Any) -> dict[str, Any]:
    """By problem, the run to a small gap on little data."""
    words = f"rows={CROWD_ROWS}&features={CROWD_FEATURES}&words=20"
    return {name: _on_all(group, words, name, 1, CROWD_GAP, 3_000, 1) for name in PROBLEMS}


def _on_all(group: Any, words: str, name: str, threads: int, gap: float, iterations: int, repetitions: int) -> Any:
    from benchmarks.simulator.recorder import Setting
    from bmrm.data.reading import read
    from bmrm.losses import LOSSES
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    loss, solver, lam = PROBLEMS[name]
    whole = read(f"synthetic:sparse_binary?{words}")
    edges = [whole.rows * rank // group.size for rank in (group.rank, group.rank + 1)]
    risk = shared_risk(whole.part(*edges), LOSSES.make(loss), group, threads=threads)
    setting = Setting(loss, solver, lam, gap, iterations)
    return lead(risk, group, lambda risk: _fastest(risk, group, setting, repetitions))


def _fastest(risk: Any, group: Any, setting: Any, repetitions: int) -> Figures:
    from bmrm.problem import ability
    from bmrm.problem.abilities import Traffic

    setting.load(risk)
    runs, traffic = [], ability(risk, Traffic)
    for _ in range(repetitions):
        busy, before = getattr(group, "busy", 0.0), traffic.so_far() if traffic else None
        solution = setting.minimise(risk)
        last, after = solution.history[-1], traffic.so_far() if traffic else None
        runs.append(
            {
                "seconds": solution.seconds,
                "passes": solution.passes,
                "objective": solution.objective,
                "shared": getattr(group, "busy", 0.0) - busy,
                "waiting": last.seconds_waiting,
                "network": last.seconds_network,
                "messages": after.messages - before.messages if after and before else 0,
                "bytes": after.bytes - before.bytes if after and before else 0,
            }
        )
    best = min(runs, key=lambda one: one["seconds"])
    return best | {"slowest": max(one["seconds"] for one in runs)}


def record(group: Any, rows: int) -> dict[str, Any]:
    """Recordings of the problems, alone."""
    words = f"rows={rows}&features={FEATURES}"
    runs = {name: _recorded(words, name, (*of, 1e-9), ITERATIONS) for name, of in PROBLEMS.items()}
    return {name: run.model_dump(mode="json") for name, run in runs.items()}


def record_cases(group: Any) -> dict[str, Any]:
    """Recordings for problems of the literature, alone."""
    from benchmarks.papers.nodes import PROBLEMS as OF_KDD
    from benchmarks.papers.nodes import TOLERANCE, load
    from benchmarks.simulator.recorder import Setting, recorded, with_bare

    found = {}
    for name, (words, features, of) in TEXTS.items():
        wide, narrow = (_recorded(f"{words}{count}", name, of) for count in (features, FEW))
        found[name] = with_bare(wide, narrow).model_dump(mode="json")
    for name in ("hinge", "ndcg", "ordinal"):
        data, loss, lam = OF_KDD[name]
        setting = Setting(loss, "bundle", lam, TOLERANCE)
        found[f"kdd_{name}"] = recorded(load(data), setting, f"kdd_{name}").model_dump(mode="json")
    return found


def _recorded(words: str, name: str, of: tuple[str, str, float, float], iterations: int = 10_000) -> Any:
    from benchmarks.simulator.recorder import Setting, recorded
    from bmrm.data.reading import read

    data = read(f"synthetic:sparse_binary?{words}")
    return recorded(data, Setting(*of, iterations), name, REPETITIONS)


ON_RANKS: Mapping[str, Callable[..., Figures]] = {
    "run": run,
    "agree": agree,
    "record": record,
    "record_cases": record_cases,
}
"""What ranks are started for, by the first argument; rank 0 prints what it returns as JSON."""


def main(arguments: list[str]) -> None:
    """As a command, or on a rank."""
    if arguments and arguments[0] in ON_RANKS:
        from bmrm.mpi.launch import open_group

        group = open_group()
        found = ON_RANKS[arguments[0]](group, *map(int, arguments[1:]))
        if group.rank == 0:
            print(json.dumps(found))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the problems that are timed")
    parser.add_argument("--page", action="store_true", help="write the page again, from the kept figures")
    given = parser.parse_args(arguments)
    if given.page:
        from benchmarks.simulator import page

        page.write(json.loads(KEPT.read_text()))
    else:
        found = measured(given.rows)
        print("(skipped)" if found is None else found.markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
