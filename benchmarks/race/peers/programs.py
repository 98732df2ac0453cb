"""Programs that are looked for on PATH: SVMperf, SVMrank, OCAS, and wrappers of the C++ bundle programs.

| name on PATH     | program                     | how it is called                                            |
|------------------|-----------------------------|-------------------------------------------------------------|
| `svm_perf_learn` | SVMperf (Joachims)          | `-c C -e E -w 3 -l LOSS --b 0 -v 1 TRAIN MODEL`             |
| `svm_rank_learn` | SVMrank (Joachims)          | `-c C -e E -v 1 TRAIN MODEL`                                |
| `svmocas`        | OCAS (libocas)              | `-c C -r TOLERANCE -b 0 -v 1 TRAIN MODEL`                   |
| `bmrm-train`     | BMRM (C++), in a script     | `bmrm-train LOSS PENALTY LAMBDA TOLERANCE TRAIN WEIGHTS`    |
| `ls-bmrm-train`  | ls-bmrm (C++), in a script  | the same                                                    |

The last two read configuration files that differ between versions, so a script of that name is wanted: it gets one
of our names of a loss (`hinge`, `logistic`, ...), `l2` or `l1`, lambda of lambda/2 ||w||^2 or lambda ||w||_1 beside
the mean loss, writes the weights, a number a line, and prints `seconds S`, those of the training alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.competitor import Prepared, Rung, Trial, Vector, rungs
from benchmarks.race.peers import Folder, enter
from benchmarks.race.problem import Task

Command = Callable[[Task, float, Path, Path], list[str]]
"""Arguments from the task, the tolerance, the training file and the file of the weights."""


@dataclass(frozen=True)
class Program:
    """One program on PATH, run as a process of its own; the seconds are those that it prints."""

    name: str
    program: str
    serving: Mapping[str, tuple[str, ...]]
    tolerances: Sequence[float]
    command: Command
    seconds: re.Pattern[str]
    weights: Callable[[str, int], Vector]
    family: str

    def missing(self) -> str:
        return "" if shutil.which(self.program) else f"no program `{self.program}` on PATH"

    def serves(self, task: Task) -> bool:
        return task.problem.penalty in self.serving.get(task.loss, ())

    def ladder(self, task: Task) -> Sequence[Rung]:
        return rungs("e", self.tolerances)

    def prepare(self, task: Task) -> Prepared:
        from bmrm.data.writers import write_svmlight

        folder = Folder()
        train, model = folder.path / "train.svm", folder.path / "model"
        write_svmlight(train, task.dataset)

        def trial(rung: Rung) -> Trial:
            command = [self.program, *self.command(task, rung.options["e"], train, model)]

            def run() -> float:
                assert folder  # keeps the files
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found = self.seconds.findall(done.stdout)
                if not found:
                    raise ValueError(f"{self.program} printed no {self.seconds.pattern!r}")
                return float(found[-1])

            def weights() -> Vector:
                assert folder
                return self.weights(model.read_text(), task.features)

            return Trial(run, weights)

        return trial


def svmlight_model(text: str, features: int) -> Vector:
    """w of a linear model of SVMlight's family: the sum of its support vectors, each times its coefficient."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if "threshold b" in line)
    w = np.zeros(features)
    for line in lines[start + 1 :]:
        first, *pairs = line.partition("#")[0].split()
        for index, _, value in (pair.partition(":") for pair in pairs if not pair.startswith("qid")):
            if int(index) <= features:
                w[int(index) - 1] += float(first) * float(value)
    return w


def numbers(text: str, features: int) -> Vector:
    """A number a line; an intercept behind the weights, which is 0, is dropped, missing columns are 0."""
    found = np.array(text.split(), float)[:features]
    return np.concatenate([found, np.zeros(features - found.size)])


def _perf(task: Task, e: float, train: Path, model: Path) -> list[str]:
    which = {"hinge": "2", "f_beta": "1", "roc_area": "10"}[task.loss]
    cost = 1.0 / (100.0 * task.problem.l2)  # its losses are in per cent
    return ["-c", repr(cost), "-e", repr(e), "-w", "3", "-l", which, "--b", "0", "-v", "1", str(train), str(model)]


def _rank(task: Task, e: float, train: Path, model: Path) -> list[str]:
    queries, pairs = _queries_and_pairs(task)
    cost = queries / (pairs * task.problem.l2)
    return ["-c", repr(cost), "-e", repr(e), "-v", "1", str(train), str(model)]


def _queries_and_pairs(task: Task) -> tuple[int, int]:
    y, groups = task.y, task.dataset.targets.groups
    every, pairs = np.unique(groups), 0
    for group in every:
        counts = np.unique(y[groups == group], return_counts=True)[1]
        pairs += (int(counts.sum()) ** 2 - int((counts**2).sum())) // 2
    return every.size, pairs


def _ocas(task: Task, e: float, train: Path, model: Path) -> list[str]:
    cost = 1.0 / (task.problem.l2 * task.rows)
    return ["-c", repr(cost), "-r", repr(e), "-b", "0", "-v", "1", str(train), str(model)]


def _script(task: Task, e: float, train: Path, model: Path) -> list[str]:
    problem = task.problem
    return [problem.loss, problem.penalty, repr(problem.lam), repr(e), str(train), str(model)]


L2 = ("l2",)
CPU = re.compile(r"Runtime in cpu-seconds: ([0-9.]+)")
PERCENT = (10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4)
RELATIVE = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
SCRIPT: dict[str, Any] = {
    "serving": {
        **dict.fromkeys(("hinge", "logistic"), ("l2", "l1")),
        **dict.fromkeys(
            ("squared_hinge", "least_squares", "huber", "poisson", "quantile", "epsilon_insensitive", "roc_area"), L2
        ),
        **dict.fromkeys(("least_absolute_deviation", "f_beta", "rank_hinge"), L2),
    },
    "tolerances": RELATIVE,
    "command": _script,
    "seconds": re.compile(r"^seconds ([0-9.e+-]+)", re.MULTILINE),
    "weights": numbers,
}
_PERF: dict[str, tuple[str, ...]] = {"hinge": L2, "f_beta": L2, "roc_area": L2}
enter(Program("svmperf", "svm_perf_learn", _PERF, PERCENT, _perf, CPU, svmlight_model, "svmperf"))
enter(Program("svmrank", "svm_rank_learn", {"rank_hinge": L2}, PERCENT, _rank, CPU, svmlight_model, "svmrank"))
_OCAS = re.compile(r"ocas_time\s*: ([0-9.]+)")
enter(Program("ocas", "svmocas", {"hinge": L2}, RELATIVE, _ocas, _OCAS, numbers, "ocas"))
enter(Program("bmrm c++", "bmrm-train", family="bmrm c++", **SCRIPT))
enter(Program("ls-bmrm c++", "ls-bmrm-train", family="ls-bmrm c++", **SCRIPT))
