"""CRFsuite, by its Python package and by its program: L-BFGS on the likelihood of chains.

It minimises a sum over sentences with c2 ||w||^2, so c2 = lambda N / 2. By default it has weights only for the pairs
of feature and label that occur: a smaller space than ours, whose minimum is higher. `own_space` then says that its
suboptimality is measured from the best point of its own ladder. "all pairs" has every weight and our very objective.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, Vector, rungs
from benchmarks.race.peers import Folder, enter, not_installed
from benchmarks.race.problem import Task

ITERATIONS = (30, 60, 100, 150, 200, 300)
WEIGHT = re.compile(r"^\s*\((\d)\)\s+(\S+) --> (\S+): (\S+)$", re.MULTILINE)
"""A line of a dumped model: 0 for a feature and a label, 1 for two labels."""
SECONDS = re.compile(r"Total seconds required for training: ([0-9.]+)")


def _settings(task: Task, rung: Rung, all_pairs: bool) -> dict[str, Any]:
    strict = {"epsilon": 1e-12, "delta": 1e-12, "period": 100}
    pairs = {"feature.possible_states": 1, "feature.possible_transitions": 1} if all_pairs else {}
    c2 = 0.5 * task.problem.l2 * sentences(task)
    return {"c1": 0.0, "c2": c2, **strict, **pairs, "max_iterations": int(rung.options["iterations"])}


def sentences(task: Task) -> int:
    """How many there are."""
    return int(np.unique(task.dataset.targets.groups).size)


def _tokens(task: Task) -> Iterator[tuple[list[list[str]], list[str]]]:
    """For each sentence the features of its tokens, column numbers as text, and the labels."""
    X, groups = task.dataset.X, task.dataset.targets.groups
    assert groups is not None
    edges = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), task.rows]
    for a, b in pairwise(edges):
        yield (
            [[str(j) for j in X.indices[X.indptr[t] : X.indptr[t + 1]]] for t in range(a, b)],  # type: ignore[union-attr]
            [str(label) for label in task.y[a:b]],
        )


def weights_of(dump: str, task: Task) -> Vector:
    """w from a dumped model; what it does not have is 0."""
    place = {str(label): k for k, label in enumerate(task.labels)}
    count = len(place)
    w = np.zeros(task.features * count + count * count)
    for kind, first, second, weight in WEIGHT.findall(dump):
        row = place[first] + task.features if kind == "1" else int(first)
        w[row * count + place[second]] = float(weight)
    return w


@dataclass(frozen=True)
class _Base:
    """What both share."""

    all_pairs: bool
    family: str = "crfsuite"

    @property
    def own_space(self) -> bool:
        return not self.all_pairs

    def serves(self, task: Task) -> bool:
        return task.loss == "chain_crf" and task.problem.penalty == "l2"

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("iterations", ITERATIONS)


@dataclass(frozen=True)
class Package(_Base):
    """python-crfsuite; the seconds are those of its own log, without making the features."""

    @property
    def name(self) -> str:
        return "python-crfsuite all pairs" if self.all_pairs else "python-crfsuite"

    def missing(self) -> str:
        return not_installed("pycrfsuite")

    def prepare(self, task: Task) -> Prepared:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        for tokens, labels in _tokens(task):
            trainer.append(tokens, labels)
        folder = Folder()
        model = folder.path / "model"

        def trial(rung: Rung) -> Trial:
            trainer.set_params(_settings(task, rung, self.all_pairs))

            def train() -> float:
                trainer.train(str(model))
                return float(sum(line["time"] for line in trainer.logparser.iterations))

            return Trial(train, lambda: _dumped(model, folder, task))

        return trial


def _dumped(model: Path, folder: Folder, task: Task) -> Vector:
    import pycrfsuite

    tagger, text = pycrfsuite.Tagger(), folder.path / "dump"
    tagger.open(str(model))
    tagger.dump(str(text))
    tagger.close()
    return weights_of(text.read_text(), task)


@dataclass(frozen=True)
class Program(_Base):
    """`crfsuite` on PATH: `learn` prints the seconds, `dump` the weights."""

    @property
    def name(self) -> str:
        return "crfsuite program all pairs" if self.all_pairs else "crfsuite program"

    def missing(self) -> str:
        return "" if shutil.which("crfsuite") else "no program `crfsuite` on PATH"

    def prepare(self, task: Task) -> Prepared:
        folder = Folder()
        train, model = folder.path / "train", folder.path / "model"
        with open(train, "w") as file:
            for tokens, labels in _tokens(task):
                file.writelines("\t".join([y, *x]) + "\n" for x, y in zip(tokens, labels, strict=True))
                file.write("\n")

        def trial(rung: Rung) -> Trial:
            pairs = [f"{key}={value}" for key, value in _settings(task, rung, self.all_pairs).items()]
            options = [part for pair in pairs for part in ("-p", pair)]
            learn = ["crfsuite", "learn", "-a", "lbfgs", "-m", str(model), *options, str(train)]

            def run() -> float:
                assert folder  # keeps the files
                output = subprocess.run(learn, capture_output=True, text=True, check=True).stdout
                return float(SECONDS.findall(output)[-1])

            return Trial(run, _program_weights(model, folder, task))

        return trial


def _program_weights(model: Path, folder: Folder, task: Task) -> Callable[[], Vector]:
    def read() -> Vector:
        assert folder
        dump = subprocess.run(["crfsuite", "dump", str(model)], capture_output=True, text=True, check=True).stdout
        return weights_of(dump, task)

    return read


for _all in (False, True):
    enter(Package(_all))
    enter(Program(_all))
