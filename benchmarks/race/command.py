"""The command line of the race."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.race import comparison, page, results, tables
from benchmarks.race.competitor import Competitor
from benchmarks.race.contest import Rules, hold
from benchmarks.race.halves import HALVES
from benchmarks.race.ours import Ours, solvers
from benchmarks.race.peers import peers
from benchmarks.race.problem import Problem, Task
from benchmarks.race.problems import all_problems
from benchmarks.race.sets import available
from benchmarks.race.targets import KINDS
from benchmarks.race.worker import CLOCKS

QUICK = Rules(repetitions=5, limit=5.0, budget=4.0, patience=6.0, hopeless=4.0)
"""Of `make bench`."""
RUNS = Path(__file__).resolve().parents[2] / "runs" / "benchmarks"


def parser() -> argparse.ArgumentParser:
    """All options."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.race", description="bmrm against other programs")
    made.add_argument("--quick", action="store_true", help="the problems of `make bench`, 5 rounds, short limits")
    made.add_argument("--classes", nargs="+", choices=tuple(KINDS), help="only these classes")
    made.add_argument("--problems", nargs="+", metavar="PATTERN", help="only problems whose names match, with * and ?")
    made.add_argument(
        "--halves", nargs="+", choices=tuple(HALVES), help="only sets for tuning, judging, or unlike both"
    )
    made.add_argument("--peers", nargs="+", metavar="PATTERN", help="only these peers, or families")
    made.add_argument("--solvers", nargs="+", metavar="NAME", help="our single solvers beside auto; `all` for all")
    made.add_argument("--accuracies", nargs="+", type=float, default=[1e-3, 1e-6])
    made.add_argument("--repetitions", type=int, help="rounds; 9, or 5 with --quick")
    made.add_argument("--limit", type=float, help="seconds for a run; 60, or 5 with --quick")
    made.add_argument("--budget", type=float, help="seconds for the rounds of a problem; 60, or 4 with --quick")
    made.add_argument("--core", type=int, help="the core to run on; the last usable one")
    made.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="cpu where the machine does other work")
    made.add_argument("--seed", type=int, default=0, help="of the order of the runs")
    made.add_argument("--only-ours", type=Path, metavar="JSON", help="time only us; take peers from an old race")
    made.add_argument("--compare", type=Path, metavar="JSON", help="show what changed since an old race")
    made.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with a race that was interrupted")
    made.add_argument("--output", type=Path, help="folder of the results; runs/benchmarks/<time>")
    made.add_argument("--keep", action="store_true", help="keep the results under benchmarks/results, by commit")
    made.add_argument("--page", action="store_true", help="run nothing: the pages in docs/ from the kept results")
    made.add_argument("--list", action="store_true", help="list the problems and the peers, run nothing")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    options = parser().parse_args(arguments)
    if options.list:
        _list(options)
        return
    if options.page:
        print(f"written: {', '.join(map(str, page.write_docs()))}")
        print(*(f"{page.REASONS.name} has no reason for {name}" for name in page.unexplained(results.kept())), sep="\n")
        return
    folder = options.output or options.resume or RUNS / time.strftime("%Y%m%d-%H%M%S")
    found = _race(options, arguments, folder)
    results.write(folder, found)
    print(f"\n{tables.classes(found['problems'])}\n{tables.halves(found['problems'])}")
    print(*(f"never ran: {name}: {message}" for name, message in never_ran(found["problems"]).items()), sep="\n")
    print(f"written: {page.write(folder, found)}")
    if options.compare:
        text = comparison.report(found, results.read(options.compare))
        (folder / "changes.md").write_text(text)
        print(f"\n{text}")
    if options.keep:
        print("kept:", *results.keep(found), sep="\n")


def never_ran(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Entrants of which every run ended in an error, with the first message: their absence proves nothing."""
    ladders: dict[str, list[Any]] = {}
    for entrant in (entrant for record in records for entrant in record["entrants"]):
        ladders.setdefault(entrant["name"], []).extend(entrant["ladder"])
    return {
        name: rungs[0]["message"]
        for name, rungs in ladders.items()
        if rungs and all(rung["status"] == "error" for rung in rungs)
    }


def _race(options: argparse.Namespace, arguments: Sequence[str] | None, folder: Path) -> dict[str, Any]:
    """Hold the contests one by one; what is done is on disk after each."""
    resumed = results.read(options.resume) if options.resume else {"problems": [], "runs": []}
    found = _head(options, arguments)
    found["runs"] = resumed["runs"] + found["runs"]
    if options.keep:
        results.check_commit(found["commit"], resumed.get("commit", found["commit"]))
    _pin(options.core)
    rules = rules_of(options)
    every = list(peers().values())
    taking = [] if options.only_ours else [one for one in every if _wanted(one, options.peers)]
    preload(taking)
    missing = [{"name": one.name, "reason": one.missing()} for one in taking if one.missing()]
    old = _earlier(options.only_ours)
    done = {record["name"]: record for record in resumed["problems"]}
    records: list[dict[str, Any]] = []
    found |= {"missing": missing, "problems": records}
    for problem in chosen_problems(options):
        if not available(problem.data):
            missing.append({"name": problem.name, "reason": "the shared data sets are not beside the checkout"})
            continue
        if problem.name in done:
            records.append(done[problem.name])
            continue
        begin = time.perf_counter()
        try:
            record = hold(Task.of(problem), _ours(problem, options, rules), taking, rules)
        except Exception as error:  # hours of work do not end with one problem
            missing.append({"name": problem.name, "reason": f"{type(error).__name__}: {error}"})
            print(f"{problem.name}: {missing[-1]['reason']}", flush=True)
            continue
        if options.only_ours and problem.name in old:
            results.take_over(record, old[problem.name])
        records.append(record)
        results.write(folder, found)
        print(f"{_line(record)}  [{time.perf_counter() - begin:.0f} s]", flush=True)
    return found


def _head(options: argparse.Namespace, arguments: Sequence[str] | None) -> results.Race:
    """What is known of a race before it begins."""
    rules = rules_of(options)
    run = {
        "command": command_line(sys.argv[1:] if arguments is None else arguments),
        "started": datetime.now().isoformat(timespec="milliseconds"),
        "options": {name: getattr(rules, name) for name in ("repetitions", "limit", "budget", "seed")},
    }
    about = {"clock": rules.clock, "machine": results.machine(), "versions": results.versions(), "runs": [run]}
    return {"schema": results.SCHEMA, **results.commit(), **about}


def command_line(arguments: Sequence[str]) -> str:
    """For the page: what was asked for, without the folders of this machine."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument not in PLACES and (place == 0 or arguments[place - 1] not in PLACES):
            kept.append(shlex.quote(argument))
    return " ".join(["python -m benchmarks.race", *kept])


PLACES = ("--output", "--resume", "--compare", "--only-ours")
"""Options that are followed by a path."""


def _earlier(path: Path | None) -> dict[str, Any]:
    """The problems of an old race by name; it must be of this machine."""
    if path is None:
        return {}
    found = results.read(path)
    if found["machine"] != results.machine():
        raise SystemExit(f"{path} was measured on {found['machine']}, this is {results.machine()}")
    return {record["name"]: record for record in found["problems"]}


def rules_of(options: argparse.Namespace) -> Rules:
    """From the options, with what they leave open by --quick or not."""
    default = QUICK if options.quick else Rules()
    given = {name: getattr(options, name) for name in ("repetitions", "limit", "budget")}
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(default, accuracies=tuple(options.accuracies), seed=options.seed, clock=options.clock, **changes)


def chosen_problems(options: argparse.Namespace) -> list[Problem]:
    """Those of the classes and patterns asked for."""
    found = [problem for problem in all_problems() if problem.quick or not options.quick]
    if options.classes:
        found = [problem for problem in found if problem.kind in options.classes]
    if options.halves:
        found = [problem for problem in found if problem.half in options.halves]
    if options.problems:
        found = [p for p in found if any(fnmatch.fnmatch(p.name, pattern) for pattern in options.problems)]
    return found


def _ours(problem: Problem, options: argparse.Namespace, rules: Rules) -> list[Competitor]:
    names = [problem.ours]
    wanted = options.solvers or []
    names += [name for name in (solvers() if "all" in wanted else wanted) if name not in names]
    return [Ours(name, rules.accuracies, rules.limit) for name in names]


def preload(competitors: Sequence[Competitor]) -> None:
    """Import their packages and all of ours, once, in the process that all others are forked from.

    A long race then measures one state of the code, whatever is edited meanwhile.
    """
    from bmrm.losses import LOSSES
    from bmrm.regularizers import REGULARIZERS
    from bmrm.solvers import SOLVERS

    for registry in (LOSSES, REGULARIZERS, SOLVERS):
        registry.all()
    for module in {getattr(one, "module", "") for one in competitors if not one.missing()} - {""}:
        importlib.import_module(module)


def _wanted(peer: Competitor, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatch.fnmatch(text, p) for p in patterns for text in (peer.name, peer.family))


def _pin(core: int | None) -> None:
    """Stay on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if core is None else core})


def _line(record: dict[str, Any]) -> str:
    from benchmarks.race.summary import compare

    parts = []
    for accuracy in record["accuracies"]:
        one = compare(record, accuracy)
        parts.append(f"{accuracy:g}: {tables.seconds(one.seconds)} / {tables.seconds(one.other_seconds)} {one.other}")
        parts[-1] += f" = {one.ratio}" if one.counts else ""
    return f"{record['name']}: " + "; ".join(parts)


def _list(options: argparse.Namespace) -> None:
    for problem in chosen_problems(options):
        print(f"{problem.kind:15s} {problem.name}{'  (quick)' if problem.quick else ''}")
    print()
    for peer in peers().values():
        print(f"{peer.family:15s} {peer.name}  {peer.missing()}")
