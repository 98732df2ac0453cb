"""The synthetic data of Komarek's thesis (2004), section 5.1.3.3: binary attributes that depend along a random tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets
from bmrm.registry import check_parameters, parameter

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "numrows": {"rows": 1_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.0, "share": 0.5},
    "numatts": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.15, "share": 0.1},
    "sparse": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.0, "share": 0.1},
    "coupled": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.05, "share": 0.1},
}
"""Table 5.2: what is fixed, and one value of what varies: the first for `rows` (to 1e6) and `features` (to 1e5), 0.01
for `sparsity` (1e-4 to 0.1), and for `coupling` (0 to 0.45) the first above 0, as at 0 the family would be `sparse`."""


@dataclass(frozen=True)
class Thesis:
    """Rows of 0 and 1: attributes along a random tree, labels from a linear rule without noise.

    The root is 1 with probability `sparsity` s. A node whose parent is 1 is 1 with probability p = min(s + 2c, 1), c
    the `coupling`; one whose parent is 0 with probability s (1 - p) / (1 - s), so that every attribute is 1 with
    probability s. The thesis prints "set to 0 with probability max(s - 2c, 0)" in the second case. "Set to 0"
    contradicts its examples (c = 0 makes attributes independent, s = c = 1/2 makes rows all 0 or all 1); "set to 1" is
    our formula for s = 1/2 and for c = 0, but where s is small and c is not, it leaves nearly all rows empty.

    Labels are 1 for the `positives` rows of largest <b, x>, b uniform in [-1, 1], and 0 for the others: the classes
    can be separated.
    """

    name: ClassVar[str] = "thesis"
    family: str = parameter("numrows", doc="values of what is not given", choices=tuple(FAMILIES), example="coupled")
    rows: int | None = parameter(None, doc="examples", least=2, example=50)
    features: int | None = parameter(None, doc="attributes", least=1, example=20)
    sparsity: float | None = parameter(None, doc="s, the expected share of ones", least=0.0, most=1.0, example=0.3)
    coupling: float | None = parameter(None, doc="c, dependence along the tree", least=0.0, most=0.5, example=0.2)
    positives: int | None = parameter(None, doc="rows of label 1; null = half of them, or a tenth", least=1, example=7)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """Labels 0 and 1; `X` is a `Csr` without values."""
        table = FAMILIES[self.family]
        values = {key: table[key] if getattr(self, key, None) is None else getattr(self, key) for key in table}
        rows, features = int(values["rows"]), int(values["features"])
        positives = self.positives or max(1, round(values["share"] * rows))
        if positives >= rows:
            raise InputError(f"synthetic:thesis: positives is {positives}, expected fewer than the {rows} rows")
        rng = np.random.default_rng(self.seed)
        columns = _columns(rng, rows, features, float(values["sparsity"]), float(values["coupling"]))
        X = rows_of_columns(columns, rows)
        b = rng.uniform(-1.0, 1.0, features)
        scores = np.zeros(rows)
        for j, ones in enumerate(columns):
            scores[ones] += b[j]
        y = np.zeros(rows)
        y[np.argsort(-scores, kind="stable")[:positives]] = 1.0
        return Dataset(X, Targets(y))


def _columns(
    rng: np.random.Generator, rows: int, features: int, sparsity: float, coupling: float
) -> list[NDArray[np.int64]]:
    """For each attribute the rows where it is 1, ascending; attribute numbers are in random order along the tree."""
    after_one = min(sparsity + 2.0 * coupling, 1.0)
    after_zero = sparsity * (1.0 - after_one) / (1.0 - sparsity) if sparsity < 1.0 else 1.0
    place = rng.permutation(features)
    columns: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * features
    known = np.zeros(rows, bool)
    for k in range(features):
        if k == 0:
            columns[place[0]] = _chosen(rng, rows, sparsity)
            continue
        parent = columns[place[rng.integers(k)]]
        # every row by the chance of those whose parent is 0; rows whose parent is 1 are then drawn anew
        ones = _chosen(rng, rows, after_zero)
        known[parent] = True
        ones = np.concatenate((ones[~known[ones]], parent[rng.random(parent.size) < after_one]))
        known[parent] = False
        columns[place[k]] = np.sort(ones)
    return columns


def _chosen(rng: np.random.Generator, rows: int, chance: float) -> NDArray[np.int64]:
    """Rows, each with this probability; the cost is proportional to their number if they are few."""
    count = int(rng.binomial(rows, chance))
    return np.sort(rng.choice(rows, count, replace=False, shuffle=False))


def rows_of_columns(columns: Sequence[NDArray[np.int64]], rows: int) -> Csr:
    """A matrix of 0 and 1 without values; `columns` lists for each column the rows with a 1, ascending."""
    counts = np.fromiter((column.size for column in columns), np.int64, len(columns))
    row = np.concatenate(columns) if len(columns) else np.empty(0, np.int64)
    column = np.repeat(np.arange(len(columns), dtype=np.int32), counts)
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:])
    return Csr(indptr, column[np.argsort(row, kind="stable")], None, len(columns))
