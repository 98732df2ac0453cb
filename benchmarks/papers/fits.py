"""Runs that studies share: risks on one thread, processor seconds, curves that fit into a field of a CSV file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.risk.linear import LinearRisk

SOON, LONG = 3.0, 60.0
"""Seconds of one run up to which it is repeated five times, and above which once more at most."""


LADDER = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5)
"""Tolerances that a peer is told, the largest first."""


def risk(data: Dataset, loss: str, **options: Any) -> LinearRisk:
    """R of a loss by name, without an intercept."""
    return LinearRisk(data, LOSSES.make(loss, options), threads=1)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a run, and its result."""
    begin = time.process_time()
    found = run()
    return time.process_time() - begin, found


def seconds(run: Callable[[], Any]) -> tuple[float, int, Any]:
    """Median processor seconds of several runs after one that does not count, how many, and the last result."""
    found = run()
    taken: list[float] = []
    while len(taken) < _repetitions(taken):
        last, found = timed(run)
        taken.append(last)
    return float(np.median(taken)), len(taken), found


def _repetitions(taken: Sequence[float]) -> int:
    longest = max(taken, default=0.0)
    return 5 if longest <= SOON else 3 if longest <= LONG else 2


def again(run: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a run, and its result: the median of three more runs where it takes no longer than SOON.

    The first of these loads kernels and modules.
    """
    first, found = timed(run)
    if first > SOON:
        return first, found
    return float(np.median([timed(run)[0] for _ in range(3)])), found


def times(ratio: float) -> str:
    """A ratio, to two digits and without an exponent."""
    return f"{ratio:.0f}" if ratio >= 99.5 else f"{ratio:.2g}"


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


def alternated(candidates: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Processor seconds of runs in turn: five turns after one that does not count, of long ones one."""
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(6):
        for name, run in candidates.items():
            taken[name].append(timed(run)[0])
        if max(map(max, taken.values())) > LONG / 2.0 or (turn == 3 and max(map(max, taken.values())) > SOON):
            break
    return {name: times[1:] or times for name, times in taken.items()}


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median of theirs over ours, turn by turn, the least and the largest."""
    each = np.array(theirs) / np.maximum(np.array(ours), 1e-9)
    return float(np.median(each)), float(each.min()), float(each.max())


def hinge_by_liblinear(X: Any, y: Any, lam: float, tolerance: float, costs: Mapping[float, float] | None = None) -> Any:
    """w of LIBLINEAR's dual method as scikit-learn has it, without an intercept; `costs` by label."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    options = {"loss": "hinge", "fit_intercept": False, "max_iter": 1_000_000, "random_state": 0}
    machine = LinearSVC(C=1.0 / (lam * len(y)), tol=tolerance, class_weight=costs, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(X, y).coef_.ravel()


def loosest(accurate: Callable[[float], bool], ladder: Sequence[float] = LADDER) -> float:
    """The largest tolerance of a peer that is accurate enough; the last where none is."""
    return next((tolerance for tolerance in ladder if accurate(tolerance)), ladder[-1])
