"""The hottest kernels: instructions (callgrind) and time per entry, and how near to the memory's limit they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import Table, alternated
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.problem import Scored, Targets, ability
from bmrm.problem.abilities import DualBlocks
from bmrm.risk.linear import LinearRisk

Operation = Callable[[], object]
REPEATS = 8
"""Operations that callgrind counts."""
FEW = 20_000
"""Rows under callgrind, which is fifty times slower."""
TARGET_CPU = "skylake"
"""Whose instructions valgrind understands: AVX2, not AVX-512."""


def sparse(rows: int, features: int, entries: int, loss: str = "hinge") -> LinearRisk:
    """Sorted rows of random columns, float64 values."""
    rng = np.random.default_rng(0)
    width = features // entries
    columns = np.arange(entries) * width + rng.integers(0, width, (rows, entries))
    indptr = np.arange(rows + 1, dtype=np.int64) * entries
    values = rng.random(columns.size) / np.sqrt(entries)
    X = Csr(indptr, columns.ravel().astype(np.int32), values, features)
    return LinearRisk(Dataset(X, Targets(rng.choice([-1.0, 1.0], rows))), LOSSES.make(loss), threads=1)


def _scores(rows: int) -> tuple[Operation, int, int]:
    risk = sparse(rows, 20_000, 75)
    w = np.random.default_rng(1).normal(size=risk.dim)
    return lambda: risk.map.matvec(w), risk.data.nnz, 12 * risk.data.nnz + 16 * rows


def _rmatvec(rows: int) -> tuple[Operation, int, int]:
    risk = sparse(rows, 20_000, 75)
    slope = np.random.default_rng(1).normal(size=rows)
    return lambda: risk.map.rmatvec(slope), risk.data.nnz, 12 * risk.data.nnz + 16 * rows


def _gram(rows: int) -> tuple[Operation, int, int]:
    """Per product of two entries of a row, half of them, since the matrix is symmetric."""
    risk = sparse(rows, 140, 14)
    weights = np.random.default_rng(1).random(rows)
    return lambda: risk.map.gram(weights), risk.data.nnz * 15 // 2, 12 * risk.data.nnz


def _dual_sweep(rows: int) -> tuple[Operation, int, int]:
    risk = sparse(rows, 20_000, 75)
    steps = ability(risk, DualBlocks)
    assert steps is not None
    ascent = steps.ascent(0.0, 1.0 / rows, seed=0)

    def sweep() -> object:
        ascent.unshrink()
        return ascent.sweep()

    return sweep, risk.data.nnz, 12 * risk.data.nnz + 72 * rows


def _loss_along(rows: int) -> tuple[Operation, int, int]:
    """Per row, at three trial points: what a line search asks for."""
    risk = sparse(rows, 140, 14)
    scored = ability(risk, Scored)
    assert scored is not None
    rng = np.random.default_rng(1)
    curve = scored.phi.along(rng.normal(size=rows), rng.normal(size=rows))
    ts = np.array([0.5, 1.0, 2.0])
    return lambda: curve(ts), 3 * rows, 3 * 24 * rows


OPERATIONS: dict[str, Callable[[int], tuple[Operation, int, int]]] = {
    "A w, CSR (csr.scores)": _scores,
    "A' slope, CSR (csr.scatter)": _rmatvec,
    "A' D A, CSR (gram.add_gram)": _gram,
    "dual coordinate sweep, hinge": _dual_sweep,
    "hinge along a line, three points": _loss_along,
}
"""Each gives the operation, the entries that it goes through, and the bytes that it must read."""


def measure() -> Table | None:
    """None where valgrind is not installed."""
    if shutil.which("valgrind") is None:
        return None
    instructions = _instructions()
    rate = _reading_rate()
    rows = []
    for name, make in OPERATIONS.items():
        operation, entries, needed = make(200_000)
        seconds = alternated({name: operation})[name].median
        reached = needed / seconds / 1e9
        rows.append(
            (
                name,
                f"{instructions[name]:.1f}",
                f"{1e9 * seconds / entries:.2f}",
                f"{needed / entries:.1f}",
                f"{reached:.1f}",
                f"{reached / rate:.2f}",
            )
        )
    return Table(
        "Hot kernels",
        "Per entry: of the sparse matrix, for A'DA per product of two entries of a row, for the line per row and point."
        f" Instructions by callgrind, compiled for {TARGET_CPU} (AVX2); times, on this machine's own instruction set,"
        f" with data beyond the cache; a plain sum of the same bytes runs at {rate:.1f} GB/s on one thread.",
        ("kernel", "instructions", "ns", "bytes", "GB/s", "share of a plain read"),
        tuple(rows),
    )


def _reading_rate() -> float:
    """GB/s of a sum over 400 MB."""
    words = np.ones(50_000_000)
    return words.nbytes / alternated({"sum": words.sum})["sum"].median / 1e9


def _instructions() -> dict[str, float]:
    """Instructions per entry of each operation, from one process under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CPU_NAME": TARGET_CPU, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        program = [str(Path(sys.executable)), "-m", "benchmarks.hot_kernels"]
        subprocess.run([*program, "1"], env=environment, check=True)  # compiles
        out = Path(folder) / "counts"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        subprocess.run([*tool, *program, str(REPEATS)], env=environment, check=True, capture_output=True)
        counts = [_total(Path(f"{out}.{number + 1}")) for number in range(2 * len(OPERATIONS) + 2)]
    idle = counts[1]
    return {
        name: (counts[2 * k + 3] - idle) / REPEATS / make(FEW)[1] for k, (name, make) in enumerate(OPERATIONS.items())
    }


def _total(dump: Path) -> int:
    found = re.search(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def _repeat(times: int) -> None:
    """Every operation so many times, between two dumps of the counts; first nothing between two."""
    _dump(times)
    _dump(times)
    for make in OPERATIONS.values():
        operation, _, _ = make(FEW)
        operation()
        _dump(times)
        for _ in range(times):
            operation()
        _dump(times)


def _dump(times: int) -> None:
    if times > 1:
        subprocess.run(["callgrind_control", "-d", "mark", str(os.getpid())], check=True, capture_output=True)


if __name__ == "__main__":
    _repeat(int(sys.argv[1]))
