"""Measures of folds with a confidence interval (Komarek's thesis 2004, section 5.1.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.core import ScoredRows, chosen, value_of
from bmrm.problem import InputError, shown
from bmrm.registry import Range, checked_value


@dataclass(frozen=True)
class Interval:
    """A mean over folds and where the true mean lies with the confidence asked for."""

    mean: float
    low: float
    high: float
    values: tuple[float, ...]
    """Of the folds."""

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.low:.4f} to {self.high:.4f})"


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """mean -+ t s / sqrt(n), with t the quantile of Student's distribution of n - 1 degrees of freedom.

    Parameters
    ----------
    values : of the folds, taken as independent; at least two.
    confidence : in (0, 1).
    """
    if len(values) < 2:
        raise InputError(f"an interval needs at least two values, found {len(values)}")
    confidence = checked_value("confidence", confidence, (float,), Range(above=0.0, below=1.0))
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    half = _student(len(values) - 1, confidence) * deviation / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, tuple(map(float, values)))


@cache
def _student(freedom: int, confidence: float) -> float:
    """t such that Student's distribution of so many degrees of freedom has this mass in [-t, t].

    That is a finite sum in the angle whose tangent is t / sqrt(freedom) (Abramowitz & Stegun 26.7.3 and 26.7.4); it
    grows with the angle, which is found by halving. SciPy would do it, but its import takes longer than most runs.
    """
    odd = freedom % 2 == 1

    def mass(angle: float) -> float:
        square, term = math.cos(angle) ** 2, math.cos(angle) if odd else 1.0
        total = 0.0
        for k in range(2 + odd, freedom + 1, 2):
            total += term
            term *= square * (k - 1) / k
        return 2.0 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total

    low, high = 0.0, 0.5 * math.pi
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if mass(middle) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def parts_of(scored: ScoredRows, fold: NDArray[np.int64]) -> dict[int, ScoredRows]:
    """The rows of each fold, by its number; `fold` is (rows,)."""
    numbers, sizes = np.unique(fold, return_counts=True)
    small = np.searchsorted(numbers, fold).astype(np.uint16) if len(numbers) < 2**16 else fold
    order = np.argsort(small, kind="stable")  # of 16 bits without comparing
    rows = np.split(order, np.cumsum(sizes)[:-1])
    return {int(number): scored.rows(chosen) for number, chosen in zip(numbers, rows)}


def interval_over_folds(
    parts: Mapping[int, ScoredRows],
    measure: str | Callable[[ScoredRows], float | None] = "auc",
    confidence: float = 0.95,
) -> Interval:
    """The measure of each fold by itself, their mean and its interval, less what a registered measure cannot be.

    Parameters
    ----------
    parts : the rows of each fold, each with the score from the model that has not seen its fold.
    measure : the area under the ROC curve, or another: a name that `evaluate` knows, or a function.
    confidence : of the interval.

    Raises
    ------
    InputError
        Where the measure is not defined in some fold, or there are fewer than two folds.
    """
    judge = partial(value_of, measure) if isinstance(measure, str) else measure
    name = measure if isinstance(measure, str) else "the measure"
    values = []
    for number, part in parts.items():
        value = judge(part)
        if value is None:
            raise InputError(f"{name} is not defined in fold {number}; use fewer folds")
        values.append(value)
    found = t_interval(values, confidence)
    if not isinstance(measure, str):
        return found
    least, most = chosen(measure)[0].within
    return replace(found, low=max(least, found.low), high=min(most, found.high))


def folds_of(rows: int, folds: int, groups: NDArray[np.int64] | None = None, seed: int = 0) -> NDArray[np.int64]:
    """The fold of each row, (rows,): at random, of equal sizes; rows of one group are in one fold.

    Parameters
    ----------
    rows : how many.
    folds : how many, from 2 to the number of rows or groups.
    groups : (rows,), or None.
    seed : of the draw.
    """
    units = np.arange(rows) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    count = int(units.max(initial=-1)) + 1
    folds = checked_value("folds", folds, (int,))
    seed = checked_value("seed", seed, (int,), Range(least=0))
    if not 2 <= folds <= count:
        what = "rows" if groups is None else "groups"
        raise InputError(f"folds is {shown(folds)}, expected a number from 2 to the {count} {what}")
    fold: NDArray[np.int64] = (np.random.default_rng(seed).permutation(count) % folds)[units]
    return fold
