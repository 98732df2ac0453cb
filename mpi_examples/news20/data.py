"""Posts of twenty newsgroups, or generated classes."""

from __future__ import annotations

from pathlib import Path

from bmrm.data.reading import read
from mpi_examples.prepare import write_split


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    if shared is not None:
        write_split(folder, read(shared / "news20.svm.xz"))
        return "news20, a fifth of its rows to test"
    write_split(folder, read("synthetic:multiclass?rows=10000&features=100&classes=20&spread=0.4"))
    return "no ../shared/data: twenty generated classes instead of news20"
