"""Handwritten zeros to learn from; held-out zeros and all other digits to judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.data.writers import write_npz


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and `test.npz` hold zeros, `others.npz` the digits 1 to 9; grey values from 0 to 1."""
    if shared is not None:
        train, test = (_usps(shared, part) for part in ("train", "test"))
        said = "USPS digits"
    else:
        digits = read("sklearn:digits")
        grey = Dataset.from_arrays(np.asarray(digits.X) / 16.0, digits.targets.y)
        train, test = grey.part(0, 1200), grey.part(1200, grey.rows)
        said = "no ../shared/data: the digits of scikit-learn instead of USPS"
    write_npz(folder / "train.npz", train.select(np.flatnonzero(train.targets.y == 0.0)))
    write_npz(folder / "test.npz", test.select(np.flatnonzero(test.targets.y == 0.0)))
    write_npz(folder / "others.npz", test.select(np.flatnonzero(test.targets.y != 0.0)))
    return said


def _usps(shared: Path, part: str) -> Dataset:
    """Grey values are from -1 to 1 in the file."""
    raw = read(shared / f"usps.{part}.svm.xz", features=256)
    return Dataset.from_arrays(0.5 * (raw.X.to_scipy().toarray() + 1.0), raw.targets.y)  # type: ignore[union-attr]
