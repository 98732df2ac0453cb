"""Processor load of a computer system by its counters, or generated numbers with outliers."""

from __future__ import annotations

from pathlib import Path

from bmrm.data.reading import read
from mpi_examples.prepare import write_split


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    if shared is not None:
        write_split(folder, read(shared / "cpusmall.svm.xz"))
        return "cpusmall"
    write_split(folder, read("synthetic:dense_regression?rows=8192&features=12&noise=0.5&outliers=0.1"))
    return "no ../shared/data: generated numbers with outliers instead of cpusmall"
