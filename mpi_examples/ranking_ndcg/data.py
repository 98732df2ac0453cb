"""Documents found for queries, graded by people (MQ2008, fold 1), or generated queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bmrm.data.reading import read
from bmrm.data.writers import write_npz

FILES = {"train": "train", "validation": "vali", "test": "test"}
FEATURES = 46
GENERATED = {"train": (0, 400), "validation": (400, 550), "test": (550, 700)}
"""Queries of the generated set for each part."""


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz`, `validation.npz` and `test.npz`."""
    if shared is not None:
        for part, name in FILES.items():
            write_npz(folder / f"{part}.npz", read(shared / f"mq2008.fold1.{name}.svm.xz", features=FEATURES))
        return "MQ2008, fold 1"
    data = read("synthetic:ranking?queries=700&noise=2")
    assert data.targets.groups is not None
    for part, (first, behind) in GENERATED.items():
        rows = np.flatnonzero((data.targets.groups > first) & (data.targets.groups <= behind))
        write_npz(folder / f"{part}.npz", data.select(rows))
    return "no ../shared/data: generated queries instead of MQ2008"
