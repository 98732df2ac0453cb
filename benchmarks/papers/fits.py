"""Runs that studies share: risks on one thread, processor seconds, curves that fit into a field of a CSV file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.risk.linear import LinearRisk

SOON, LONG = 3.0, 60.0
"""Seconds of one run up to which it is repeated five times, and above which once more at most."""


def risk(data: Dataset, loss: str, **options: Any) -> LinearRisk:
    """R of a loss by name, without an intercept."""
    return LinearRisk(data, LOSSES.make(loss, options), threads=1)


def seconds(run: Callable[[], Any]) -> tuple[float, int, Any]:
    """Median processor seconds of several runs after one that does not count, how many, and the last result."""
    found = run()
    taken: list[float] = []
    while len(taken) < _repetitions(taken):
        begin = time.process_time()
        found = run()
        taken.append(time.process_time() - begin)
    return float(np.median(taken)), len(taken), found


def _repetitions(taken: Sequence[float]) -> int:
    longest = max(taken, default=0.0)
    return 5 if longest <= SOON else 3 if longest <= LONG else 2


def curve(x: Sequence[float], y: Sequence[float], points: int = 25) -> str:
    """`x:y x:y ...` at places that are even on a logarithmic scale of x."""
    if not len(x):
        return ""
    chosen = np.unique(np.round(np.geomspace(1, len(x), points)).astype(int)) - 1
    return " ".join(f"{x[k]:.6g}:{y[k]:.4g}" for k in chosen)


def points(text: str) -> tuple[list[float], list[float]]:
    """What `curve` has written."""
    pairs = [part.split(":") for part in str(text).split()]
    return [float(x) for x, _ in pairs], [float(y) for _, y in pairs]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the least-squares line through log y against log x; nan of fewer than two points."""
    if len(x) < 2 or not np.all(np.isfinite(y)):
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
