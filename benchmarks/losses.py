"""What an evaluation of each loss costs beside a product with the data."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Table, alternated
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.losses.base import OneScoreLoss
from bmrm.problem import Targets
from bmrm.registry import Entry
from bmrm.risk.linear import LinearRisk

ROWS, FEATURES, ENTRIES = 200_000, 10_000, 10
"""Ten non-zeros a row: a loss has less to hide behind than in most data."""


def measure() -> Table:
    """For every loss of one score that is a sum over rows."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, FEATURES, (ROWS, ENTRIES)).astype(np.int32), axis=1).ravel()
    X = Csr(np.arange(0, ROWS * ENTRIES + 1, ENTRIES), indices, rng.normal(size=indices.size), FEATURES)
    w = rng.normal(size=FEATURES) / np.sqrt(ENTRIES)
    return Table(
        "Time of an evaluation, by loss",
        f"{ROWS} rows, {FEATURES} features, {ENTRIES} non-zeros a row, values float64, one thread. *Product* is"
        " A w; *loss* is value and slope from scores; *whole* is R(w) and its subgradient, against A w and A' s with"
        " all active rows.",
        ("loss", "loss / product", "whole / two products"),
        tuple((entry.name, *_ratios(entry, X, w, rng)) for entry in LOSSES.all() if _is_simple(entry)),
    )


def _is_simple(entry: Entry[object]) -> bool:
    return issubclass(entry.cls, OneScoreLoss)


def _ratios(entry: Entry[object], X: Csr, w: np.ndarray, rng: np.random.Generator) -> tuple[str, str]:
    loss = entry.cls()
    y = rng.choice([-1.0, 1.0], X.rows) if loss.task == "binary" else rng.poisson(2.0, X.rows) + 0.5  # type: ignore[attr-defined]
    risk = LinearRisk(Dataset(X, Targets(y)), loss, threads=1)  # type: ignore[arg-type]
    prepared = risk.bound.whole
    f, ones = risk.map.matvec(w), np.ones(X.rows)
    times = alternated(
        {
            "product": lambda: risk.map.matvec(w),
            "back": lambda: risk.map.rmatvec(ones),
            "loss": lambda: prepared.value_and_slope(f),
            "whole": lambda: risk.value_and_subgradient(w),
        },
        repetitions=15,
        warm_ups=2,
    )
    t = {name: np.array(each.seconds) for name, each in times.items()}
    return f"{np.median(t['loss'] / t['product']):.2f}", f"{np.median(t['whole'] / (t['product'] + t['back'])):.2f}"
