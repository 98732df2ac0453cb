"""Losses that sort: an evaluation against sorting the scores and against one product with the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Table, alternated, ratio
from bmrm.data.matrix import Csr
from bmrm.kernels.workers import Workers
from bmrm.losses import LOSSES
from bmrm.problem import Targets
from bmrm.risk.linear_map import DataMap

ROWS, PER_ROW, FEATURES = 1_000_000, 50, 2_000
SORTING: dict[str, dict[str, Any]] = {
    "roc_area": {},
    "partial_roc_area": {},
    "f_beta": {},
    "precision_at_k": {"k": 1000},
    "recall_at_k": {"k": 1000},
    "break_even": {},
    "ordinal": {},
    "ordinal_thresholds": {},
    "rank_hinge": {},
    "ndcg": {"joint": "ranks"},
    "expected_rank_utility": {"joint": "ranks"},
    "mean_reciprocal_rank": {"joint": "ranks"},
    "winner_takes_all": {"joint": "ranks"},
}


def measure() -> Table:
    """On a million rows of fifty non-zeros: classes 3:7, five grades, queries of 100 rows."""
    rng = np.random.default_rng(0)
    X = _rows(rng)
    data = DataMap(X, workers=Workers(1))
    w = rng.normal(size=FEATURES) / np.sqrt(PER_ROW)
    f = data.matvec(w)
    noisy = f + rng.normal(size=ROWS)
    grades = np.digitize(noisy, np.quantile(noisy, [0.4, 0.7, 0.85, 0.95])).astype(np.float64)
    groups = np.repeat(np.arange(ROWS // 100), 100)
    targets = {
        "binary": Targets(np.where(noisy > np.quantile(noisy, 0.7), 1.0, -1.0)),
        "ordinal": Targets(grades),
        "ranking": Targets(grades, None, groups),
    }
    rows = []
    for name, options in SORTING.items():
        loss: Any = LOSSES.make(name, options)
        given = targets[loss.task]
        prepared = loss.prepare(given, loss.summarise(given))
        times = alternated(
            {
                "product": lambda: data.matvec(w),
                "argsort": lambda: np.argsort(f),
                "loss": lambda prepared=prepared: prepared.value_and_slope(f),
            }
        )
        loss_time = times["loss"]
        rows.append((f"`{name}`", loss_time, ratio(loss_time, times["argsort"]), ratio(loss_time, times["product"])))
    return Table(
        "Losses that sort",
        f"Value and slope of a million rows on one thread, against `numpy.argsort` of the scores and against one"
        f" product of the weights with the data ({PER_ROW} non-zeros a row).",
        ("loss", "an evaluation", "over argsort", "over a product"),
        tuple(rows),
    )


def _rows(rng: np.random.Generator) -> Csr:
    """Sorted distinct columns: one of every `FEATURES / PER_ROW` neighbours."""
    width = FEATURES // PER_ROW
    indices = np.empty((ROWS, PER_ROW), np.int32)
    for start in range(0, ROWS, 50_000):
        block = slice(start, start + 50_000)
        indices[block] = rng.integers(0, width, (50_000, PER_ROW)) + width * np.arange(PER_ROW)
    indptr = np.arange(0, ROWS * PER_ROW + 1, PER_ROW, dtype=np.int64)
    return Csr(indptr, indices.ravel(), rng.standard_normal(ROWS * PER_ROW), FEATURES)
