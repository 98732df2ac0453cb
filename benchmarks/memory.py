"""Peak memory of every solver against the formula in its docstring; each run in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Table

ALLOWANCE = 30e6
"""Bytes beside the formula: kernels, small arrays, what an allocator keeps."""
TOKENS = 20
"""Rows of a sentence, T."""
WHOLE = 100e6
"""The same for a whole process, interpreter and libraries included, but for the pages of files that are mapped.

How many of those count as ours depends on how the page cache holds the libraries, not on us.
"""


@dataclass(frozen=True)
class Sizes:
    """What formulas are made of; `planes` are the most that a bundle kept, `columns` those of a working set, `K` the
    scores of a row."""

    rows: int
    dim: int
    nnz: int
    planes: int = 0
    columns: int = 0
    memory: int = 10
    K: int = 1

    @property
    def scores(self) -> int:
        """Of all rows."""
        return self.rows * self.K

    @property
    def data(self) -> int:
        """Bytes of the rows."""
        return 12 * self.nnz + 8 * self.rows


@dataclass(frozen=True)
class Formula:
    """Bytes beyond data and interpreter: as the docstring says it, and as a function."""

    text: str
    bytes: Callable[[Sizes], float]


@dataclass(frozen=True)
class Case:
    """A run that shows a term of a formula: random rows of `entries` numbers, of two `classes` or more.

    For a loss of chains `TOKENS` rows are a sentence.
    """

    solver: str
    rows: int
    features: int
    loss: str = "logistic"
    regularizer: str = "l2"
    options: Mapping[str, Any] = field(default_factory=dict)
    entries: int = 4
    classes: int = 2

    def __str__(self) -> str:
        options = "".join(f", {name} {value}" for name, value in self.options.items() if name != "max_iterations")
        entries = "" if self.entries == 4 else f", {self.entries} numbers a row"
        return f"{self.loss}, {self.regularizer}, {self.rows:,} x {self.features:,}{entries}{options}"


def tall(solver: str, **more: Any) -> Case:
    """Numbers for each row dominate."""
    return Case(solver, 2_000_000, 20, **more)


def wide(solver: str, **more: Any) -> Case:
    """Numbers for each feature dominate."""
    return Case(solver, 2_000, 2_000_000, **more)


def square(solver: str, **more: Any) -> Case:
    """Dense matrices dominate."""
    return Case(solver, 8_000, 3_000, **more)


def _both(solver: str, **more: Any) -> tuple[Case, Case]:
    return wide(solver, **more), tall(solver, **more)


FORMULAS: Mapping[str, Formula] = {
    "auto": Formula("that of the running solver + 8 dim", lambda s: 0.0),
    "bundle": Formula("8 (planes + 4) dim + 40 planes^2", lambda s: 8 * (s.planes + 4) * s.dim + 40 * s.planes**2),
    "line_search_bundle": Formula(
        "8 (planes + 6) dim + 40 planes^2 + 56 scores",
        lambda s: 8 * (s.planes + 6) * s.dim + 40 * s.planes**2 + 56 * s.scores,
    ),
    "lbfgs": Formula("8 (memory + 15) dim + 48 scores", lambda s: 8 * (s.memory + 15) * s.dim + 48 * s.scores),
    "newton dense": Formula("18 dim^2 + 72 scores", lambda s: 18 * s.dim**2 + 72 * s.scores),
    "newton softmax": Formula(
        "96 dim + 72 scores + 16 dim^2 / K", lambda s: 96 * s.dim + 72 * s.scores + 16 * s.dim**2 / s.K
    ),
    "newton": Formula("96 dim + 72 scores", lambda s: 96 * s.dim + 72 * s.scores),
    "semismooth_newton": Formula(
        "18 dim^2 + 96 scores + 0.3 data", lambda s: 18 * s.dim**2 + 96 * s.scores + 0.3 * s.data
    ),
    "irls": Formula("96 dim + 48 scores", lambda s: 96 * s.dim + 48 * s.scores),
    "nonlinear_cg": Formula("80 dim + 40 scores", lambda s: 80 * s.dim + 40 * s.scores),
    "proximal_gradient": Formula("80 dim + 32 scores", lambda s: 80 * s.dim + 32 * s.scores),
    "pegasos": Formula("56 dim + 32 rows", lambda s: 56 * s.dim + 32 * s.rows),
    "probe": Formula("64 dim + 32 rows", lambda s: 64 * s.dim + 32 * s.rows),
    "dual_coordinate": Formula("32 dim + 112 rows + 12 nnz", lambda s: 32 * s.dim + 112 * s.rows + 12 * s.nnz),
    "dual_coordinate chain_crf": Formula(
        "40 dim + (80 + 32 K) rows + 12 nnz + (8 T + 16 K + 16 K^2 / T) rows",
        lambda s: 40 * s.dim + (80 + 48 * s.K + 8 * TOKENS + 16 * s.K**2 / TOKENS) * s.rows + 12 * s.nnz,
    ),
    "proximal_newton": Formula(
        "137 dim + 56 scores + 16 W^2", lambda s: 137 * s.dim + 56 * s.scores + 16 * s.columns**2
    ),
    "coordinate_descent": Formula(
        "89 dim + 80 scores + 24 nnz of W", lambda s: 89 * s.dim + 80 * s.scores + 24 * s.nnz
    ),
}
"""By solver, and where it has several by the option or the loss that chooses."""
CASES: tuple[Case, ...] = (
    *_both("bundle", loss="hinge"),
    *_both("line_search_bundle", loss="hinge"),
    Case("line_search_bundle", 3_000, 2_500, loss="hinge", options={"max_iterations": 700, "idle_limit": None}),
    *_both("lbfgs"),
    *_both("newton", options={"hessian": "cg"}),
    square("newton", options={"hessian": "dense", "max_iterations": 4}),
    tall("newton", options={"hessian": "dense"}),
    Case("newton", 20_000, 700, loss="softmax", classes=20),
    square("semismooth_newton", loss="hinge", options={"max_iterations": 4}),
    tall("semismooth_newton", loss="hinge"),
    Case("semismooth_newton", 1_000_000, 20, loss="multiclass_hinge", classes=4),
    *_both("irls"),
    *_both("nonlinear_cg"),
    *_both("proximal_gradient", regularizer="l1"),
    *_both("proximal_newton", regularizer="l1"),
    *_both("coordinate_descent", regularizer="l1"),
    *_both("dual_coordinate", loss="hinge"),
    Case("dual_coordinate", 200_000, 4_000, loss="chain_crf", classes=20),
    wide("pegasos", loss="hinge", options={"max_iterations": 2}),
    tall("pegasos", loss="hinge", options={"max_iterations": 2, "sample": 200_000}),
    tall("pegasos", loss="hinge", options={"max_iterations": 2, "sample": 200_000, "variant": "probability"}),
    *_both("probe", loss="hinge"),
    *_both("auto"),
    Case("auto", 1_000_000, 100_000, entries=30),
    Case("lbfgs", 1_000_000, 100_000, entries=30),
)
ITERATIONS = 12
"""Enough for the peak, except of planes, which go on growing."""
SPARSE = "synthetic:sparse_binary?rows=20000&features=47000"
PROBE = """
import json, sys
from benchmarks.memory import account, count_planes
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

kept = count_planes()
data = read(sys.argv[1])
bytes_of_data = sum(a.nbytes for a in (data.X.indptr, data.X.indices, data.X.values, data.targets.y) if a is not None)
risk = LinearRisk(data, LOSSES.make("hinge"))
SOLVERS.make(sys.argv[2], {"tolerance": 1e-3}).minimize(risk, L2(float(sys.argv[3])))
print(json.dumps([bytes_of_data, kept[0], risk.dim, account("VmHWM") - account("RssFile")]))
"""


def problem(case: Case, rows: int, features: int) -> tuple[Any, Any, Any]:
    """A risk of the kind of `case`, of any size, its regularizer and the solver."""
    from bmrm.data.dataset import Dataset
    from bmrm.data.matrix import Csr
    from bmrm.losses import LOSSES
    from bmrm.problem import Targets
    from bmrm.regularizers import REGULARIZERS
    from bmrm.risk.linear import LinearRisk
    from bmrm.solvers import SOLVERS

    rng = np.random.default_rng(0)
    width = features // case.entries
    columns = np.arange(case.entries) * width + rng.integers(0, width, (rows, case.entries))
    values = rng.standard_normal(columns.size)
    X = Csr(np.arange(rows + 1) * case.entries, columns.ravel().astype(np.int32), values, features)
    y = np.where(values[:: case.entries] + rng.standard_normal(rows) > 0.0, 1.0, -1.0)
    y = y if case.classes == 2 else rng.integers(0, case.classes, rows)
    groups = np.arange(rows) // TOKENS if case.loss.startswith("chain") else None
    risk = LinearRisk(Dataset(X, Targets(y, groups=groups)), LOSSES.make(case.loss), threads=1)
    options = {"tolerance": 1e-14, "max_iterations": ITERATIONS, **case.options}
    return risk, REGULARIZERS.make(case.regularizer, {"lambda": 1e-4}), SOLVERS.make(case.solver, options)


def measured(case: Case) -> tuple[Sizes, float, str]:
    """Sizes, the bytes of the peak, and who ran: from a process of its own, whose allocator gives all back at once.

    `auto` may choose another solver for few rows than for all, so a process before fills the cache of kernels for it.
    """
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(asdict(case))]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"}
    for _ in range(2 if case.solver == "auto" else 1):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return Sizes(**answer["sizes"]), answer["peak"], answer["solver"]


def formula(case: Case, ran: str) -> Formula:
    """That of the solver; of `auto` those of all that ran, the largest of which counts."""
    if case.solver == "auto":
        used = [known.bytes for name, known in FORMULAS.items() if re.search(rf"\b{name}\b", ran)]
        return Formula(FORMULAS["auto"].text, lambda s: 8 * s.dim + max(each(s) for each in used))
    special = f"{case.solver} {case.options.get('hessian', case.loss)}"
    return FORMULAS.get(special, FORMULAS.get(case.solver, FORMULAS["auto"]))


def measure() -> Table:
    """Every solver where its terms dominate, and whole processes of bundles with many planes."""
    rows = []
    for case in CASES:
        sizes, peak, ran = measured(case)
        known = formula(case, ran)
        allowed = known.bytes(sizes) + ALLOWANCE
        rows.append((case.solver, str(case), known.text, f"{allowed / 1e6:.0f}", f"{peak / 1e6:.0f}"))
    return Table(
        "Peak memory",
        f"Peak of a process from the start of `minimize`, in megabytes, against the formula in the solver's docstring"
        f" and {ALLOWANCE / 1e6:.0f} MB; random rows of 4 numbers (12 bytes each), kernels and libraries loaded before;"
        f" W are the columns of a working set, T the tokens of a sentence."
        f" Where it says whole process, the allowance is {WHOLE / 1e6:.0f} MB, and pages of shared libraries"
        f" are not counted. On many features `auto` runs `dual_coordinate`, which copies the rows in the"
        f" order in which it visits them: 490 bytes a row of 30 numbers, where `lbfgs` takes 23.",
        ("solver", "problem", "bytes", "allowed", "measured"),
        (*rows, *_whole_processes()),
    )


def _whole_processes() -> Iterator[tuple[str, ...]]:
    """Bundles on a generated set of many features, interpreter, libraries and data included."""
    for solver, lam in (("bundle", "1e-4"), ("line_search_bundle", "1e-4"), ("line_search_bundle", "1e-5")):
        command = [sys.executable, "-c", PROBE, SPARSE, solver, lam]
        answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        data, planes, dim, peak = answer
        allowed = data + 2 * planes * dim * 8 + WHOLE
        problem = f"hinge to 1e-3, lambda {lam}, `{SPARSE}`, {planes} planes; whole process"
        yield solver, problem, "data + 16 planes dim", f"{allowed / 1e6:.0f}", f"{peak / 1e6:.0f}"


def run(case: Case) -> dict[str, Any]:
    """Train once on few rows, so that kernels and libraries are loaded, then on all; sizes and the peak."""
    kept = count_planes()
    risk, regularizer, solver = problem(case, 400, 40)
    solver.minimize(risk, regularizer)
    kept[0] = 0
    risk, regularizer, solver = problem(case, case.rows, case.features)
    gc.collect()
    before = _reset_peak()
    solution = solver.minimize(risk, regularizer)
    peak = account("VmHWM") - before
    columns = max(getattr(solver, "first_columns", 0), 2 * int(np.count_nonzero(solution.w)))
    sizes = {
        "rows": case.rows,
        "dim": risk.dim,
        "nnz": risk.data.nnz,
        "planes": kept[0],
        "columns": columns,
        "K": risk.scores_per_row,
    }
    return {"sizes": sizes, "peak": peak, "solver": solution.solver}


def count_planes() -> list[int]:
    """The most planes that a model has from now on."""
    from bmrm.solvers._core.plane_model import PlaneModel

    kept, solve = [0], PlaneModel.solve

    def counted(self: PlaneModel, accuracy: float) -> Any:
        kept[0] = max(kept[0], len(self.planes))
        return solve(self, accuracy)

    PlaneModel.solve = counted  # type: ignore[method-assign]
    return kept


def _reset_peak() -> float:
    """Forget the peak so far; the bytes in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return account("VmRSS")


def account(name: str) -> float:
    """Bytes, from the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    print(json.dumps(run(Case(**json.loads(sys.argv[1])))))
