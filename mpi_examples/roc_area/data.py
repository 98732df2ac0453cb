"""Web pages of one kind among many others (w8a, 3 % positive), or generated texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.reading import read
from mpi_examples.prepare import write_split


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    if shared is not None:
        write_split(folder, read(shared / "w8a.svm.xz"))
        return "w8a"
    data = read("synthetic:sparse_binary?rows=40000&features=2000")
    keep = (np.asarray(data.targets.y) < 0.0) | (np.random.default_rng(0).random(data.rows) < 0.04)
    write_split(folder, data.select(np.flatnonzero(keep)))
    return "no ../shared/data: generated texts, few of them positive, instead of w8a"
