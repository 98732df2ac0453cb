"""The pages of benchmarks: from the results that the repository keeps, or `race.md` from one race."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.race import figures, halves, points, results, tables
from benchmarks.race.peers import programs
from benchmarks.race.problems import all_problems
from benchmarks.race.results import Race
from benchmarks.race.summary import Record, worst_cases
from benchmarks.race.targets import KINDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
REASONS = results.KEPT / "reasons.json"
"""Why a case is among the worst, by problem; written by hand."""
HEAD = """# Benchmarks

How long `bmrm` takes, beside the best other program for each problem. Below 1 we are faster: 0.5 is half the time. Our
time includes the proof of the gap; a peer's time is that at the loosest of its own settings that reaches the accuracy,
which its user does not know beforehand. One thread, one core.

{glance}
The table has geometric means over problems that both solved. Rules and defaults were chosen on the *tuning* sets;
*judging* sets are other real data, *unlike* are generated families that resemble neither (`benchmarks/race/halves.py`
names them all; their results were looked at {looks} times since the split was made). Every class with its worst case,
failures and targets, and the machines and versions, are on the page [Races in full](races.md).

![Performance profile]({figures}/profile.png)

The curve of a program (Dolan & More 2002) is the share of all cases that it solves within a factor, the abscissa, of
the fastest program's time. It starts at the share of cases in which the program is the fastest; at the right it tends
to the share that it solves at all. A family of peers is one curve, with its best method on each case. What a program
cannot minimise counts as not solved, so the curve of a specialist stays low; the classes above compare on its own
ground. Cases that no peer here can minimise are left out.

{profile}
## How it is measured

All programs minimise the same `J(w) = l1 ||w||_1 + l2/2 ||w||^2 + mean loss`, without an intercept. A *case* is one
problem (loss, data set, lambda) to one accuracy. Every returned w is judged by one float64 formula of NumPy and SciPy;
its suboptimality is `(J - J*) / |J*|`, `J*` the smallest J that any program has reached.

- **Our time** is that of `solver: auto` until its *certified* relative gap is at the accuracy, from arrays in memory,
  building the risk included.
- **A peer's time** is that of its training alone, without converting the data, at the fastest of its own tolerances
  whose w is within the accuracy. Peers are stopped by our evaluation, not by their own criterion.
- One thread, one core, kernels compiled beforehand; each program has a process and a copy of the data of its own, and
  the runs alternate in a random order.
- **Ratios** are our median time over that of the best peer. Intervals are 90 %, by bootstrap.
"""
DETAILS = """# Races in full

The results behind the page [Benchmarks](benchmarks.md).

## Classes

"""
CLASSES = """
The mean is over the cases in which a peer got to the accuracy. It is inf where a peer got there and we did not within
the time limit; the mean of the other cases stands beside it. *Target* is what this project aims at, to be met by the
upper end of the interval. *Fastest in* is the share of cases in which we got there and no peer did sooner, over the
problems on which a peer took part.
"""
SPLIT = """
## Tuning and judging

Each cell has the geometric mean of the cases that both reached, and the worst case.

"""
POINTS = """
## Shapes on which `auto` was slow

What cost most on data that nobody had tuned for, at commit f6681da: our time over the best peer's *then*, on a set of
that shape that is not here, and *now* (the geometric mean, and the worst case) on problems of the same shape. Threads
have a [table of their own](measurements.md#two-threads-against-one).

"""
WORST = """
## The ten worst cases

The largest ratios of all classes.

"""
CHOICES = """
## `auto` against our best single solver

The time of `auto` over that of the single solver of ours that turns out to be the fastest in that case, which nobody
knows beforehand; cases in which both got there.

"""
USAGE = """
## How to run it

<!-- not run: hours of measuring, on data that the repository does not have -->
```console
$ make bench                        # the quick problems
$ make bench-full                   # everything, for hours; writes the pages
$ python -m benchmarks.race --list  # the problems and the peers
$ python -m benchmarks.race --problems 'hinge a9a*' --repetitions 3
$ # our single solvers beside auto
$ python -m benchmarks.race --classes logistic --solvers all
$ # peers of an old race, and what became slower
$ python -m benchmarks.race --only-ours OLD --compare OLD
$ # go on with a race that was interrupted
$ python -m benchmarks.race --resume FOLDER
$ # keep the results in the repository
$ python -m benchmarks.race --classes logistic --keep
$ # write the pages from the kept results, run nothing
$ python -m benchmarks.race --page
```

A race writes into `runs/benchmarks/`: `race.json`, `race.csv` (a line for each case and program), `race.md` (both
pages), and a plot of suboptimality against time for each problem. `--keep` also puts the results into
`benchmarks/results/COMMIT/CLASS.json`. The pages join all of these: of each problem, the race of the newest commit
counts; a peer that this race left out is taken over from the next older race on the same machine and clock.

Python peers come with the extra `bench`, except for those that are built from source: dlib and
sklearn-contrib-lightning take part where they are installed. `--clock cpu` counts the time for which a process had its
core, for a machine that does other work.

{programs}
"""


def write(folder: Path, race: Race) -> Path:
    """`race.md` and `figures/` of one race into its folder."""
    path = folder / "race.md"
    figures.trajectories(race["problems"], folder / "figures")
    figures.profile(race["problems"], folder / "figures" / figures.PROFILE)
    path.write_text("\n".join(texts([race], "figures").values()))
    return path


def write_docs() -> list[Path]:
    """The pages and their figures in `docs/`, from the results of the repository."""
    races = results.kept()
    target = DOCS / "figures" / "benchmarks"
    shutil.rmtree(target, ignore_errors=True)
    figures.profile(results.joined(races), target / figures.PROFILE)
    found = texts(races, "figures/benchmarks")
    for name, text in found.items():
        (DOCS / name).write_text(text)
    return [DOCS / name for name in found]


def unexplained(races: Sequence[Race]) -> list[str]:
    """Problems of the worst cases whose reason nobody has given."""
    reasons = _reasons()
    return [one.problem for one in worst_cases(results.joined(races))[: tables.WORST] if one.problem not in reasons]


def _reasons() -> dict[str, str]:
    return json.loads(REASONS.read_text()) if REASONS.exists() else {}


def texts(races: Sequence[Race], folder: str) -> dict[str, str]:
    """The pages of races by file, for users and in full; races newest first, figures in the folder of that name."""
    records = results.joined(races)
    users = [
        HEAD.format(glance=tables.glance(records), looks=halves.LOOKS, figures=folder, profile=tables.profile(records))
    ]
    details = [DETAILS, tables.classes(records), CLASSES, SPLIT, tables.halves(records)]
    slow = points.points(records)
    details += [POINTS, slow] if slow else []
    details += [WORST, tables.worst(records, _reasons())]
    choices = tables.choices(records)
    details += [CHOICES, choices] if choices else []
    details += [_missing(races, records), "\n## Commits and machines\n\n", _measured(races)]
    details += [USAGE.format(programs=(programs.__doc__ or "").strip())]
    return {"benchmarks.md": "".join(users), "races.md": "".join(details)}


def _measured(races: Iterable[Race]) -> str:
    """A paragraph for each commit: what was measured when and on what."""
    by_commit: dict[tuple[str, ...], list[Race]] = {}
    for race in races:
        by_commit.setdefault((race["commit"], race["date"][:10], race.get("source", "")), []).append(race)
    parts = []
    for (commit, date, source), some in by_commit.items():
        one = some[0]
        machine = one["machine"]
        kinds = {record["kind"] for race in some for record in race["problems"]}
        titles = "; ".join(kind.title for name, kind in KINDS.items() if name in kinds)
        titles = "all classes" if len(kinds) == len(KINDS) else titles
        clock = "processor" if one["clock"] == "cpu" else "wall"
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        parts.append(
            f"Commit {commit or 'unknown'} ({date or 'no date'}): {titles}. {machine['processor']}, {machine['cores']} "
            f"cores, Python {machine['python']}, {clock} clock; {versions}.{f' {source}' if source else ''}\n"
        )
    return "\n".join(parts)


def _missing(races: Sequence[Race], records: Sequence[Record]) -> str:
    """Who did not take part, and why."""
    there = {record["name"] for record in records} | {one["name"] for record in records for one in record["entrants"]}
    reasons = {problem.name: "not raced" for problem in all_problems()}
    reasons |= {one["name"]: one["reason"] for race in reversed(races) for one in race["missing"]}
    rows = [[name, reason] for name, reason in reasons.items() if name not in there]
    found = tables.table(("peer or problem", "reason"), rows)
    return f"\n## What did not run\n\n{found or 'Everything ran.'}"
