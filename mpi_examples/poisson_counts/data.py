"""Rented bicycles per hour, or generated counts."""

from __future__ import annotations

import csv
import lzma
from pathlib import Path

import numpy as np

from bmrm.data.dataset import Dataset
from mpi_examples.prepare import write_split

NUMBERS = ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")
KINDS = ("season", "mnth", "hr", "weekday", "weathersit")


def write(folder: Path, shared: Path | None) -> str:
    """`train.npz` and, a fifth of the rows, `test.npz`."""
    if shared is not None:
        write_split(folder, _rentals(shared / "bike_hour.csv.xz"))
        return "bike_hour, calendar columns one-hot"
    write_split(folder, _generated())
    return "no ../shared/data: generated counts instead of bike_hour"


def _rentals(path: Path) -> Dataset:
    """Numbers as they are, a 0/1 column for each hour, month, weekday, season and weather."""
    with lzma.open(path, "rt") as text:
        rows = list(csv.DictReader(text))
    columns = [np.array([float(row[name]) for row in rows]) for name in NUMBERS]
    for name in KINDS:
        values = np.array([int(row[name]) for row in rows])
        columns += [(values == value).astype(float) for value in np.unique(values)]
    return Dataset.from_arrays(np.column_stack(columns), [float(row["cnt"]) for row in rows])


def _generated() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20))
    return Dataset.from_arrays(X, rng.poisson(np.exp(2.0 + X @ (0.2 * rng.normal(size=20)))))
