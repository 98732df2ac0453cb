"""Whether two trees give the same results: every small fit in each, alone and over two ranks, figure by figure."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Table
from benchmarks.two_trees.in_a_tree import FIGURES
from bmrm.mpi.launch import needed_mpirun

HERE = Path(__file__).resolve()
SCRIPT = HERE.with_name("in_a_tree.py")
NEW_TREE = HERE.parents[2]

CLOSE, ALLOWED = 1e-12, 1e-9
"""Relative differences: as good as the same; the most between objectives."""

Found = Mapping[str, Mapping[str, Any]]
"""By case: `status`, and where it was solved the `FIGURES`."""


@dataclass(frozen=True)
class Comparison:
    """The results of the same fits in two trees.

    Attributes
    ----------
    title : where they were run.
    old, new : what each tree has found.
    allowed : the most by which objectives may differ, relatively.
    """

    title: str
    old: Found
    new: Found
    allowed: float = ALLOWED

    def counts(self, figure: str) -> Counter[str]:
        """How many of the solved fits agree: to the bit, closely, not."""
        return Counter(self._agreement(name, figure) for name, one in self.old.items() if "objective" in one)

    def others(self) -> list[str]:
        """A line for each figure or status that does not agree, with how the fit ended in the old tree."""
        return [
            f"{name} [{one['status']}]: {figure} {one.get(figure)!r} -> {self.new[name].get(figure)!r}"
            for name, one in self.old.items()
            for figure in ("status", *FIGURES)
            if self._agreement(name, figure) == "other"
        ]

    def failures(self) -> list[str]:
        """The fits whose status differs, or whose objectives differ by more than is allowed."""
        return [
            name
            for name, one in self.old.items()
            if one["status"] != self.new[name]["status"] or self._apart(name, "objective") > self.allowed
        ]

    def largest(self, converged: bool) -> float:
        """The largest difference of objectives of fits that have, or have not, converged in the old tree."""
        names = [name for name, one in self.old.items() if (one["status"] == "CONVERGED") is converged]
        return max([self._apart(name, "objective") for name in names], default=0.0)

    def rows(self) -> list[tuple[object, ...]]:
        """Of the table: a row for each figure."""
        kinds = ("identical", "close", "other")
        return [(self.title, figure, *(self.counts(figure)[kind] for kind in kinds)) for figure in FIGURES]

    def _apart(self, name: str, figure: str) -> float:
        old, new = self.old[name].get(figure), self.new[name].get(figure)
        return difference(old, new) if isinstance(old, float) and isinstance(new, float) else float(old != new)

    def _agreement(self, name: str, figure: str) -> str:
        apart = self._apart(name, figure)
        return "identical" if apart == 0.0 else ("close" if apart <= CLOSE else "other")


def difference(a: float, b: float) -> float:
    """|a - b| relative to the larger; inf where only one is finite."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    return abs(a - b) / max(abs(a), abs(b)) if math.isfinite(a) and math.isfinite(b) else math.inf


def measure(old_tree: Path, pattern: str = "") -> int:
    """Run the fits in both trees, print the table and what differs; 0 where nothing does that matters, else 1."""
    from benchmarks.two_trees.cases import all_cases, all_data

    data = all_data()
    cases = {name: case for name, case in all_cases().items() if pattern in name}
    automatic = {name for name, case in cases.items() if case["fit"]["solver"]["name"] == "auto"}
    alone = [in_tree(tree, cases, data) for tree in (old_tree, NEW_TREE)]
    over_ranks = chosen(cases, alone[0])
    ranked = [in_tree(tree, over_ranks, data, ranks=2) for tree in (old_tree, NEW_TREE)]
    comparisons = [
        Comparison("alone", *(_without(found, automatic) for found in alone)),
        Comparison("2 ranks", *ranked),
        Comparison("auto, alone", *(_only(found, automatic) for found in alone), allowed=1e-6),
    ]
    print(table(comparisons).markdown())
    for comparison in comparisons:
        for line in comparison.others():
            print(f"{comparison.title}: {line}")
    failures = [f"{one.title}: {name}" for one in comparisons for name in one.failures()]
    print(f"{len(failures)} fits differ in status, or in the objective by more than allowed", *failures, sep="\n  ")
    return 1 if failures else 0


def table(comparisons: list[Comparison]) -> Table:
    """Counts for each figure."""
    note = " ".join(
        f"{one.title}: {sum(one.counts('objective').values())} fits; objectives differ by at most"
        f" {one.largest(True):.2g} relatively where they converged, by {one.largest(False):.2g} elsewhere."
        for one in comparisons
    )
    columns = ("run", "figure", "identical", f"within {CLOSE:g}", "others")
    return Table("The same fits in two trees", note, columns, tuple(row for one in comparisons for row in one.rows()))


def chosen(cases: Mapping[str, Any], found: Found, per_loss: int = 2, per_solver: int = 5) -> dict[str, Any]:
    """Cases for the ranks, of those that were solved alone: some of every loss and every solver, but no `auto`."""
    losses: Counter[str] = Counter()
    solvers: Counter[str] = Counter()
    kept = {}
    for name, case in cases.items():
        loss, solver = case["fit"]["loss"]["name"], case["fit"]["solver"]["name"]
        wanted = losses[loss] < per_loss or solvers[solver] < per_solver
        if wanted and solver != "auto" and "objective" in found[name]:
            kept[name] = case
            losses[loss] += 1
            solvers[solver] += 1
    return kept


def in_tree(tree: Path, cases: Mapping[str, Any], data: Mapping[str, Any], ranks: int = 1) -> dict[str, Any]:
    """The results of the cases by the code of a tree, in a process of its own or over ranks."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "cases.json"), Path(folder, "found.json")
        source.write_text(json.dumps({"cases": cases, "data": data}))
        command = [sys.executable, str(SCRIPT), str(source), str(target)]
        if ranks > 1:
            command = [needed_mpirun(), "-n", str(ranks), *command]
        done = subprocess.run(command, env=environment(tree), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"the fits ended with status {done.returncode} in {tree}:\n{done.stderr}")
        return dict(json.loads(target.read_text()))


def environment(tree: Path) -> dict[str, str]:
    """Of a process that imports the package from `tree`; one thread for BLAS."""
    return {**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1"}


def _only(found: Found, names: set[str]) -> Found:
    return {name: one for name, one in found.items() if name in names}


def _without(found: Found, names: set[str]) -> Found:
    return {name: one for name, one in found.items() if name not in names}
