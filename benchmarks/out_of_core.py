"""Training of a store that is larger than the memory that the process may take, against reading the file alone.

`python -m benchmarks.out_of_core --gigabytes 0.6 --limit 0.3` is the same on a small scale. The limit is one of memory
that a process takes for itself (`RLIMIT_DATA`, `ulimit -d`); pages of mapped files belong to the system, which drops
them when it likes. `--cold` asks it to, before each run, so that the disk is read.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Table

GIGABYTES, LIMIT, TOLERANCE = 8.0, 2.0, 1e-3
LOSSES = ("hinge", "logistic")
WIDTHS = {"sparse": (100_000, 50), "dense": (200, 200)}
"""Features, and entries of a row."""
AT_A_TIME = 20_000
BLOCK = 1 << 22
"""Bytes that are read at once."""
OBSERVED = 0.01
"""Seconds between two looks at the memory of a process."""


@dataclass(frozen=True)
class Run:
    """What a training took.

    Attributes
    ----------
    seconds, read : in the solver, and bytes of rows that were read per second there.
    peak : bytes that the process took for itself at most.
    """

    status: str
    solver: str
    gap: float
    passes: float
    seconds: float
    total: float
    read: float
    peak: int


def generate(path: Path, kind: str, size: float, seed: int = 0) -> None:
    """A store of about `size` bytes: labels of a planted w, a tenth of them wrong."""
    from bmrm.data.dataset import Dataset
    from bmrm.data.matrix import Csr
    from bmrm.data.store import new_store

    features, width = WIDTHS[kind]
    random = np.random.default_rng(seed)
    w = random.normal(size=features)
    each = width * (12 if kind == "sparse" else 8)
    left = round(size / each)
    with new_store(path) as store:
        while left:
            rows = min(left, AT_A_TIME)
            values = random.normal(size=(rows, width))
            X: Any = values
            scores = values @ w[:width]
            if kind == "sparse":
                step = features // width
                indices = (random.integers(0, step, (rows, width)) + step * np.arange(width)).astype(np.int32)
                X = Csr(np.arange(0, rows * width + 1, width), indices.ravel(), values.ravel(), features)
                scores = (values * w[indices]).sum(axis=1)
            y = np.where((scores > 0.0) == (random.random(rows) < 0.9), 1, -1)
            store.add(Dataset.from_arrays(X, y), np.array([0.0, float(features)]), None)
            left -= rows
        store.finish("generated")


def reading(path: Path, cold: bool) -> float:
    """Bytes per second of reading the arrays of a store from the first to the last, as `dd` does."""
    if cold:
        forget(path)
    begin, total = time.perf_counter(), 0
    for one in sorted(path.glob("*.npy")):
        with open(one, "rb", buffering=0) as file:
            while block := file.read(BLOCK):
                total += len(block)
    return total / (time.perf_counter() - begin)


def forget(path: Path) -> None:
    """Have the system drop what it holds of the files."""
    for one in path.iterdir():
        with open(one, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_of(path: Path) -> int:
    """Those of the features, which every pass reads."""
    return sum(one.stat().st_size for one in path.glob("*.npy") if one.stem in ("X", "indptr", "indices", "values"))


def train(store: Path, loss: str, limit: float | None, folder: Path, cold: bool, words: tuple[str, ...] = ()) -> Run:
    """Train by the command in a process of its own that may take `limit` bytes."""
    if cold:
        forget(store)
    output = folder / f"run-{store.stem}-{loss}"
    command = [sys.executable, "-m", "bmrm.cli", "train", str(store), "--loss", loss, "--tolerance", str(TOLERANCE)]
    command += ["--output", str(output), "--overwrite", "--quiet", *words]

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))

    begin = time.perf_counter()
    with subprocess.Popen(command, preexec_fn=limited, stderr=subprocess.PIPE, text=True) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, own_bytes(process.pid))
            time.sleep(OBSERVED)
        assert process.stderr is not None
        said = process.stderr.read()
    total = time.perf_counter() - begin
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {process.returncode}: {said}")
    found = json.loads((output / "summary.json").read_text())
    seconds, passes = found["seconds"]["total"] - found["seconds"]["load"], found["passes"]
    read = passes * bytes_of(store) / seconds
    return Run(found["status"], found["solver"], found["relative_gap"], passes, seconds, total, read, peak)


def own_bytes(process: int) -> int:
    """Bytes of a process that are no pages of files; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def rows_of(gigabytes: float, limit: float, folder: Path, cold: bool) -> list[tuple[object, ...]]:
    """A row of the table for each kind of rows and loss."""
    found: list[tuple[object, ...]] = []
    for kind in WIDTHS:
        store = folder / f"{kind}-{gigabytes}.store"
        if not store.exists():
            generate(store, kind, gigabytes * 1e9)
        alone = reading(store, cold)
        for loss in LOSSES:
            run = train(store, loss, limit * 1e9, folder, cold)
            print(kind, run, f"reading alone {alone / 1e6:.0f} MB/s", flush=True)
            found.append(
                (
                    f"{kind}, {loss}",
                    f"{bytes_of(store) / 1e9:.2f}",
                    f"{run.peak / 1e9:.2f}",
                    run.solver.split(" ")[0],
                    f"{run.gap:.0e}",
                    f"{run.passes:.0f}",
                    f"{run.seconds:.0f}",
                    f"{run.read / 1e6:.0f}",
                    f"{alone / 1e6:.0f}",
                )
            )
    return found


def measure(
    gigabytes: float = GIGABYTES, limit: float = LIMIT, cold: bool = True, folder: Path | None = None
) -> Table | None:
    """Sparse and dense rows, hinge and logistic loss."""
    with tempfile.TemporaryDirectory(prefix="bmrm-") as temporary:
        rows = rows_of(gigabytes, limit, Path(temporary) if folder is None else folder, cold)
    return Table(
        "Data larger than memory",
        f"Stores of {gigabytes:g} GB, generated, trained by `bmrm train` to a gap of {TOLERANCE:g} in a process that"
        f" may take {limit:g} GB for itself (`ulimit -d`). Peak: of that memory. MB/s: bytes of rows times passes over"
        " the seconds of the solver, against reading the files alone, from the first byte to the last, with the same"
        " page cache before.",
        ("rows, loss", "GB", "peak GB", "solver", "gap", "passes", "seconds", "MB/s", "reading alone"),
        tuple(rows),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_core", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=GIGABYTES, help="size of each store")
    parser.add_argument("--limit", type=float, default=LIMIT, help="GB that the process may take for itself")
    parser.add_argument("--warm", action="store_true", help="leave the files in the page cache")
    parser.add_argument("--folder", type=Path, help="where stores are made and kept; else they are removed")
    given = parser.parse_args()
    table = measure(given.gigabytes, given.limit, not given.warm, given.folder)
    assert table is not None
    print(table.markdown())
