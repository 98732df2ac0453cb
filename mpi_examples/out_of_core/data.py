"""Generated rows like texts, a shard of svmlight text at a time, and stores of these."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from bmrm.app.convert import convert
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.data.writers import write_svmlight

ROWS, FEATURES, ENTRIES = 10_000, 2_000, 40
SHARDS = {"train": range(3), "test": range(3, 4)}
"""Numbers of the shards of each part; the number is the seed of their rows."""


def write(folder: Path, shared: Path | None) -> str:
    """`train-*.svm` and `test-*.svm`, and `train.store` and `test.store`, written part by part."""
    for part, shards in SHARDS.items():
        for shard in shards:
            write_svmlight(folder / f"{part}-{shard}.svm", rows(shard))
        shutil.rmtree(folder / f"{part}.store", ignore_errors=True)
        convert(str(folder / f"{part}-*.svm"), folder / f"{part}.store")
    return "no ../shared/data is needed: generated rows, as shards of text and as stores"


def rows(seed: int) -> Dataset:
    """Labels of a planted w, a tenth of them wrong; each row has a feature of each of 40 blocks."""
    random = np.random.default_rng([1, seed])
    w = np.random.default_rng(0).normal(size=FEATURES)
    step = FEATURES // ENTRIES
    indices = random.integers(0, step, (ROWS, ENTRIES)) + step * np.arange(ENTRIES)
    values = random.normal(size=(ROWS, ENTRIES)).round(3)
    y = np.where(((values * w[indices]).sum(axis=1) > 0.0) == (random.random(ROWS) < 0.9), 1, -1)
    ends = np.arange(0, ROWS * ENTRIES + 1, ENTRIES)
    return Dataset.from_arrays(Csr(ends, indices.astype(np.int32).ravel(), values.ravel(), FEATURES), y)
