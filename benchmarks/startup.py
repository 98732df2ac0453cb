"""How soon a new process trains: imports, kernel loading, the first iteration, with warm caches."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Table

PROBE = """
import json, sys, time
begin = time.perf_counter()
import bmrm
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
imported = time.perf_counter()
data = read(sys.argv[1])
loaded = time.perf_counter()
risk = LinearRisk(data, LOSSES.make("hinge"))
first = []
SOLVERS.make("auto").minimize(risk, L2(1e-3), callback=lambda line: first.append(time.perf_counter()))
print(json.dumps([imported - begin, loaded - imported, first[1] - loaded, first[1] - begin]))
"""
REPETITIONS = 9


def measure() -> Table:
    """On a generated sparse set written as svmlight text."""
    from bmrm.data.reading import read
    from bmrm.data.writing import write_svmlight

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.svm"
        write_svmlight(path, read("synthetic:sparse_binary?rows=5000&features=2000"))
        runs = [_run(path) for _ in range(REPETITIONS + 1)][1:]
    table = np.array(runs)
    names = ("imports", "reading 5000 rows", "from data to the second iteration", "sum, from the first import")
    rows = tuple(
        (name, f"{np.median(column):.2f} s", f"{np.quantile(column, 0.05):.2f} to {np.quantile(column, 0.95):.2f} s")
        for name, column in zip(names, table.T, strict=True)
    )
    return Table(
        "Start of a new process",
        "Hinge, `auto`, compiled kernels in the cache (a first process has run before). The interpreter's own start is"
        " not included.",
        ("step", "median", "5 % to 95 %"),
        rows,
    )


def _run(path: Path) -> list[float]:
    output = subprocess.run([sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, check=True).stdout
    answer: list[float] = json.loads(output)
    return answer
