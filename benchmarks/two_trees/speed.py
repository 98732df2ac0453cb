"""Whether two trees are equally fast: the quick problems of the race, fit by fit in turn in two processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Table
from benchmarks.race.ours import regularizer_of
from benchmarks.race.problem import Task
from benchmarks.race.problems import all_problems
from benchmarks.race.sets import available
from benchmarks.two_trees.results import HERE, NEW_TREE, environment
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.regularizers import REGULARIZERS

SCRIPT = HERE.with_name("fits_in_turn.py")
PAIRS, BUDGET = 7, 6.0
"""Pairs of fits for each problem after the first, until they have taken so many processor seconds."""
SMALL = (("100 x 5", 100, 5), ("4,600 x 57", 4600, 57))
FIXED = (
    ("hinge", "bundle"),
    ("hinge", "line_search_bundle"),
    ("hinge", "dual_coordinate"),
    ("hinge", "semismooth_newton"),
    ("least_squares", "newton"),
    ("least_squares", "lbfgs"),
    ("logistic", "newton"),
    ("logistic", "lbfgs"),
    ("logistic", "irls"),
)
"""Losses and solvers on the `SMALL` data, where bookkeeping is much of the time."""


@dataclass(frozen=True)
class Fit:
    """A problem and a solver; `asked` are the plug-ins with their options."""

    kind: str
    name: str
    data: str
    asked: dict[str, Any]


@dataclass
class Pairs:
    """What both trees have answered to one fit, in turn."""

    fit: Fit
    old: list[dict[str, Any]] = field(default_factory=list)
    new: list[dict[str, Any]] = field(default_factory=list)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Of the fits of the old tree, of the new one: (2, pairs)."""
        return np.array([[one["seconds"] for one in answers] for answers in (self.old, self.new)])

    @property
    def ratio(self) -> float:
        """The median of new/old seconds."""
        old, new = self.seconds
        return float(np.median(new / old))

    def row(self) -> tuple[object, ...]:
        """Of the table."""
        times = [f"{1e3 * one:.3g}" for one in np.median(self.seconds, axis=1)]
        last = self.old[-1], self.new[-1]
        steps, passes = (" / ".join(f"{one[key]:g}" for one in last) for key in ("iterations", "passes"))
        return (self.fit.kind, self.fit.name, *times, f"{self.ratio:.3f}", len(self.old), steps, passes)


class Tree:
    """A process that fits with the code of a tree, one fit after the other."""

    def __init__(self, tree: Path) -> None:
        self._process: Any = subprocess.Popen(
            [sys.executable, str(SCRIPT)], env=environment(tree), text=True, stdin=PIPE, stdout=PIPE
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """Its answer."""
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Let it end."""
        self._process.stdin.close()
        self._process.wait()


def measure(old_tree: Path, pattern: str = "") -> int:
    """Run all fits in both trees and print the table."""
    trees = Tree(old_tree), Tree(NEW_TREE)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for fit in fits(Path(folder), trees, pattern):
            found.append(in_turn(fit, trees))
            print(*found[-1].row(), flush=True)
    for tree in trees:
        tree.close()
    print(table(found).markdown())
    return 0


def in_turn(fit: Fit, trees: tuple[Tree, Tree]) -> Pairs:
    """Pairs of fits, now the old tree first, now the new one; the first pair, which may compile, does not count."""
    pairs = Pairs(fit)
    for tree in trees:
        tree.ask(data=fit.data, **fit.asked)
    places = list(zip(trees, (pairs.old, pairs.new), strict=True))
    for turn in range(PAIRS):
        for tree, answers in places if turn % 2 else places[::-1]:
            answers.append(tree.ask(data=fit.data, **fit.asked))
        if pairs.seconds.sum() > BUDGET:
            break
    return pairs


def fits(folder: Path, trees: tuple[Tree, Tree], pattern: str) -> Iterator[Fit]:
    """The quick problems of the race and the small fits, their data loaded in both trees."""
    there: set[str] = set()

    def give(name: str, data: Dataset) -> None:
        if name not in there:
            there.add(name)
            path = saved(folder / f"{len(there)}.npz", data)
            for tree in trees:
                tree.ask(load=name, **{"from": str(path)})

    for problem in all_problems():
        if not (problem.quick and available(problem.data) and pattern in problem.name):
            continue
        task = Task.of(problem)
        give(problem.data, task.dataset)
        for tolerance in (1e-3, 1e-6):
            solver = {"name": problem.ours, "tolerance": tolerance, "max_iterations": 10**7, "time_limit": 60.0}
            asked = {
                "loss": {"name": problem.loss, **problem.options},
                "regularizer": REGULARIZERS.describe(regularizer_of(task)),
                "solver": solver,
            }
            name = f"{problem.name}, to {tolerance:g}"
            yield Fit(problem.kind, name, problem.data, asked)
    for size, rows, features in SMALL:
        for loss, solver in FIXED:
            name = f"{loss} {size} {solver}"
            if pattern in name:
                data = f"{loss} {size}"
                give(data, small(rows, features, loss == "least_squares"))
                plug_ins = {"loss": {"name": loss}, "regularizer": {"name": "l2", "lambda": 1e-3}}
                asked = {**plug_ins, "solver": {"name": solver, "tolerance": 1e-6}}
                yield Fit("bookkeeping", name, data, asked)


def small(rows: int, features: int, numbers: bool) -> Dataset:
    """Dense data with noise; targets are numbers or signs."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, features))
    f = X @ random.normal(size=features) + random.normal(size=rows)
    return Dataset.from_arrays(X, f if numbers else np.where(f > 0.0, 1.0, -1.0))


def saved(path: Path, data: Dataset) -> Path:
    """The arrays of a data set in a file that both trees read."""
    y, groups, X = data.targets.y, data.targets.groups, data.X
    parts = {"y": y.astype(str) if y.dtype == object else y, **({} if groups is None else {"groups": groups})}
    if isinstance(X, Csr):
        parts |= {"indptr": X.indptr, "indices": X.indices, "columns": np.array(X.columns)}
        parts |= {} if X.values is None else {"values": X.values}
    else:
        parts["X"] = X
    np.savez(path, **parts)
    return path


def table(found: list[Pairs]) -> Table:
    """A row for each fit, then the geometric mean of the ratios of each class."""
    rows = [pairs.row() for pairs in found]
    for kind in dict.fromkeys(pairs.fit.kind for pairs in found):
        ratios = [pairs.ratio for pairs in found if pairs.fit.kind == kind]
        mean = float(np.exp(np.mean(np.log(ratios))))
        rows.append((kind, f"geometric mean of {len(ratios)}", "", "", f"{mean:.3f}", "", "", ""))
    note = "Processor ms of a fit on one core, medians; the median of new/old of pairs that followed one another."
    columns = ("class", "fit", "old", "new", "new/old", "pairs", "iterations", "passes")
    return Table("The speed of two trees", note, columns, tuple(rows))
