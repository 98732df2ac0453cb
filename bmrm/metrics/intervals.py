"""Measures of folds with a confidence interval (Komarek's thesis 2004, section 5.1.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.core import Scored, chosen, value_of
from bmrm.problem import InputError
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
    from scipy.special import stdtrit  # as scipy.stats.t.ppf, without its module's imports

    if len(values) < 2:
        raise InputError(f"an interval needs at least two values, found {len(values)}")
    confidence = checked_value("confidence", confidence, (float,), Range(above=0.0, below=1.0))
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
    half = float(stdtrit(len(values) - 1, 0.5 + 0.5 * confidence)) * deviation / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, tuple(map(float, values)))


def interval_over_folds(
    scored: Scored,
    fold: NDArray[np.int64],
    measure: str | Callable[[Scored], float | None] = "auc",
    confidence: float = 0.95,
) -> Interval:
    """The measure of each fold by itself, their mean and its interval, less what a registered measure cannot be.

    Parameters
    ----------
    scored : all rows, each with the score from the model that has not seen its fold.
    fold : (rows,) the number of each row's fold.
    measure : the area under the ROC curve, or another: a name as of `evaluate`, or a function.
    confidence : of the interval.

    Raises
    ------
    InputError
        Where the measure is not defined in some fold, or there are fewer than two folds.
    """
    judge = partial(value_of, measure) if isinstance(measure, str) else measure
    name = measure if isinstance(measure, str) else "the measure"
    values = []
    for number in np.unique(fold):
        value = judge(scored.rows(fold == number))
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
        raise InputError(f"folds is {folds}, expected a number from 2 to the {count} {what}")
    fold: NDArray[np.int64] = (np.random.default_rng(seed).permutation(count) % folds)[units]
    return fold
