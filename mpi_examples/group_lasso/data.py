"""Few rows of many features that come in groups, of which few groups matter: made by code."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.files import whole_file
from mpi_examples.prepare import write_split

ROWS, GROUPS, SIZE = 500, 400, 10
ACTIVE = (7, 91, 160, 222, 371)
"""Groups by which the target is made."""


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz`, a fifth of the rows as `test.npz`, and `groups.txt`, the feature numbers of a group on each line."""
    random = np.random.default_rng(0)
    common = random.normal(size=(ROWS, GROUPS))  # features of a group have half of their variance in common
    X = (np.repeat(common, SIZE, axis=1) + random.normal(size=(ROWS, GROUPS * SIZE))) / np.sqrt(2.0)
    w = np.zeros((GROUPS, SIZE))
    w[list(ACTIVE)] = random.normal(size=(len(ACTIVE), SIZE))
    signal = X @ w.ravel()
    y = signal + 0.3 * signal.std() * random.normal(size=ROWS)
    write_split(folder, Dataset.from_arrays(X, y))
    with whole_file(folder / "groups.txt") as file:
        lines = np.arange(GROUPS * SIZE).reshape(GROUPS, SIZE)
        file.write("".join(" ".join(map(str, line)) + "\n" for line in lines.tolist()).encode())
    return "no ../shared/data is needed: 500 rows of 4,000 features in 400 groups, of which 5 matter"
