"""Web pages of one kind among many others (w8a, 3 % positive), or generated texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from mpi_examples.prepare import write_split


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    data, said = load(shared)
    write_split(folder, data)
    return said


def load(shared: Path | None) -> tuple[Dataset, str]:
    """All rows, and what they are."""
    if shared is not None:
        return read(shared / "w8a.svm.xz"), "w8a"
    data = read("synthetic:sparse_binary?rows=40000&features=2000")
    keep = (np.asarray(data.targets.y) < 0.0) | (np.random.default_rng(0).random(data.rows) < 0.04)
    said = "no ../shared/data: generated texts, few of them positive, instead of w8a"
    return data.select(np.flatnonzero(keep)), said
