"""Functions of yeast genes, or generated sets of labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.reading import read
from bmrm.data.writers import write_npz
from mpi_examples.prepare import write_split


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and `test.npz`, a set of labels per row."""
    if shared is None:
        write_split(folder, _generated())
        return "no ../shared/data: generated sets of labels instead of yeast"
    for part in ("train", "test"):
        data = read(shared / f"yeast.{part}.svm.xz", format={"name": "svmlight", "multilabel": True}, features=103)
        write_npz(folder / f"{part}.npz", data)
    return "yeast, its own split"


def _generated() -> Dataset:
    """Each of 14 labels where its own score is among the row's best, with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 100))
    scores = X @ rng.normal(size=(100, 14)) / 10.0 + rng.normal(size=(2400, 14))
    return Dataset.from_arrays(X, LabelSets.from_rows(np.flatnonzero(row > 0.5) for row in scores))
