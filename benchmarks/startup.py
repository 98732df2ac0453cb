"""How soon a new process trains, and where the time goes: interpreter, imports, kernel loading, reading, solving."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.harness import SHARED, Table

PROBE = """
import json, sys, time
begin = time.perf_counter()
import numpy
numpy_imported = time.perf_counter()
import numba
numba_imported = time.perf_counter()
import bmrm
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
solver = SOLVERS.make("auto")
imported = time.perf_counter()

def train():
    start = time.perf_counter()
    data = read(sys.argv[1])
    loaded = time.perf_counter()
    first = []
    risk = LinearRisk(data, LOSSES.make("hinge"), threads=1)
    solver.minimize(risk, L2(1e-3), callback=lambda line: first.append(time.perf_counter()))
    return numpy.array([loaded - start, first[0] - loaded])

cold = train()
warm = numpy.min([train() for _ in range(3)], axis=0)
kernels = float((cold - warm).sum())
parts = [numpy_imported - begin, numba_imported - numpy_imported, imported - numba_imported, kernels, *warm.tolist()]
print(json.dumps(parts))
"""
NAMES = (
    "interpreter",
    "import numpy",
    "import numba",
    "import bmrm",
    "kernel loading and first calls",
    "reading the text",
    "from data to the first iteration",
    "sum",
)
REPETITIONS = 9


def measure() -> Table:
    """On a9a where the shared data are there, else on a generated sparse set; both as svmlight text."""
    from bmrm.data.reading import read
    from bmrm.data.writers import write_svmlight

    shared = SHARED / "a9a.svm.xz"
    source = str(shared) if shared.exists() else "synthetic:sparse_binary?rows=30000&features=2000"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.svm"
        write_svmlight(path, read(source))
        caches = os.environ | {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
        caches.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [_run(path, caches) for _ in range(REPETITIONS + 1)][1:]
    table = np.array(runs)
    rows = tuple(
        (name, f"{np.median(column):.3f} s", f"{np.quantile(column, 0.05):.3f} to {np.quantile(column, 0.95):.3f} s")
        for name, column in zip(NAMES, table.T, strict=True)
    )
    return Table(
        "Start of a new process",
        f"{'a9a' if shared.exists() else source}, hinge, `auto`, one thread; compiled kernels and bytecode are in their"
        " caches (a first process has run before). Kernel loading is what the first reading and training take more than"
        " later ones.",
        ("step", "median", "5 % to 95 %"),
        rows,
    )


def _run(path: Path, caches: Mapping[str, str]) -> list[float]:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=caches, check=True)
    interpreter = time.perf_counter() - begin
    command = [sys.executable, "-c", PROBE, str(path)]
    done = subprocess.run(command, env=caches, capture_output=True, text=True, check=True)
    parts: list[float] = json.loads(done.stdout)
    return [interpreter, *parts, interpreter + sum(parts)]
