"""The page of a race: tables and figures, into its folder and, on request, into the documentation."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.race import tables
from benchmarks.race.figures import all_figures
from benchmarks.race.peers import programs
from benchmarks.race.targets import KINDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
HEAD = """# Benchmarks

Every figure here can be produced again by
{runs}
Machine: {machine}.

All programs minimise the same J(w) = l1 ||w||_1 + l2/2 ||w||^2 + mean loss, without an intercept. Every returned w is
judged by one float64 formula of NumPy and SciPy; suboptimality is (J - J*) / |J*|, J* the smallest J that anybody has
reached. Our time is that of `{ours}` until the *certified* relative gap is reached, from arrays in memory, the risk
built within it; a peer's time is that of its training alone, without converting the data, at the fastest of its own
tolerances whose w is within the accuracy (a peer does not know when it is there: it is told). One thread, one core,
kernels warmed up, each program in a process of its own with its own copy of the data, the runs in turn in a random
order. Ratios are ours over the best peer's (below 1: we are faster) of medians, with a bootstrap 90 % interval; a
target counts as met by the upper end.

"""

USAGE = """
## How to run it

    make bench                                                  # the quick problems
    make bench-full                                             # hours: everything; writes this page
    python -m benchmarks.race --list                            # the problems and the peers
    python -m benchmarks.race --problems 'hinge a9a*' --repetitions 3
    python -m benchmarks.race --classes logistic --solvers all  # our single solvers beside auto
    python -m benchmarks.race --only-ours OLD --compare OLD     # peers of an old race, and what became slower
    python -m benchmarks.race --resume FOLDER                   # go on with a race that was interrupted

Results go to `runs/benchmarks/`: `race.json`, `race.csv`, `race.md`, a plot for each problem; `--from FOLDER --page`
makes the page of an old race, or of several that shared out the problems (of one in two races the later counts).
Python peers come with the extra `bench`, but for those that are built from source: dlib and sklearn-contrib-lightning
take part where they are installed. `--clock cpu` measures the time that a process had its core, for a machine that does
other work.

{programs}
"""
PROFILE = """The performance profile (Dolan & More 2002) counts, over all problems and accuracies, the share that a
program solves within a factor of the fastest. A family of peers is one curve, with its best method on each problem;
what a program cannot minimise counts as not solved. Problems that no peer here can minimise are left out.
"""


def write(folder: Path, results: Mapping[str, Any], docs: bool = False) -> Path:
    """`race.md` and `figures/` into the folder; with `docs` also the page of the documentation."""
    records = results["problems"]
    figures = all_figures(records, folder / "figures")
    path = folder / "race.md"
    path.write_text(text(results, "figures"))
    if docs:
        target = DOCS / "figures" / "benchmarks"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for figure in figures:
            shutil.copy(figure, target / figure.name)
        (DOCS / "benchmarks.md").write_text(text(results, "figures/benchmarks"))
    return path


def text(results: Mapping[str, Any], figures: str) -> str:
    """The page, with figures in the folder of that name."""
    records = results["problems"]
    parts = [HEAD.format(**_facts(results)), "## Classes\n\n", tables.classes(records)]
    if records:
        parts.append(f"\n![Performance profile]({figures}/profile.png)\n\n{PROFILE}")
    for kind, facts in KINDS.items():
        found = tables.problems(records, kind)
        if found:
            parts.append(f"\n## {facts.title}\n\n{found}")
            parts.append(f"\n![Suboptimality against time]({figures}/class-{kind}.png)\n")
            parts.append(_folded("All entrants", tables.every_peer(records, kind)))
    single = tables.single_solvers(records)
    if single:
        parts.append(f"\n## `auto` against our best single solver\n\n{single}")
    for extra in results.get("extras", []):
        parts.append(f"\n## {extra['title']}\n\n{extra['note']}\n\n{tables.table(extra['columns'], extra['rows'])}")
    parts.append(_missing(results, records))
    parts.append(USAGE.format(programs=(programs.__doc__ or "").strip()))
    return "".join(parts)


def _facts(results: Mapping[str, Any]) -> dict[str, str]:
    machine = results["machine"]
    return {
        "runs": "\n".join(_run(run) for run in results.get("runs", [results])),
        "machine": f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}",
        "ours": "solver: auto",
    }


def _run(run: Mapping[str, Any]) -> str:
    """A line on what was asked for."""
    options = run["options"]
    clock = "processor" if options["clock"] == "cpu" else "wall"
    rounds = f"up to {options['repetitions']} rounds, {clock} clock, {options['limit']:g} s at most for a run"
    return f"\n    {run['command']}\n\n(bmrm at commit {run['commit'] or 'unknown'}; {rounds}).\n"


def _missing(results: Mapping[str, Any], records: Any) -> str:
    """Who did not take part and why, what failed, and the versions."""
    rows = [[one["name"], one["reason"]] for one in results["missing"]]
    parts = ["\n## What did not run\n\n"]
    parts.append(tables.table(("peer or problem", "reason"), rows) or "Everything ran.\n")
    failures = tables.failures(records)
    parts.append(_folded("Failures and time-outs", failures) if failures else "")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return "".join([*parts, f"\nVersions: {versions}.\n"])


def _folded(title: str, content: str) -> str:
    """A block that opens on a click."""
    return f'\n<details markdown="1"><summary>{title}</summary>\n\n{content}\n</details>\n' if content else ""
