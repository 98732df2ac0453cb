"""Scikit-learn's breast cancer data: a file for each of two hospitals, and one with rows that nobody trains on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz


def write(folder: Path, shared: Path | None) -> str:
    """`owner-0.npz`, `owner-1.npz`, and `test.npz` with a fifth of all rows."""
    X, y = load_breast_cancer(return_X_y=True)
    whose = np.random.default_rng(0).choice(3, len(y), p=(0.5, 0.3, 0.2))
    for part, name in enumerate(("owner-0", "owner-1", "test")):
        write_npz(folder / f"{name}.npz", Dataset.from_arrays(X[whose == part], y[whose == part]))
    return "no ../shared/data is needed: 569 tumours of scikit-learn"
