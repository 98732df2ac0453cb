"""Rows brought together by group, for losses that look at one query at a time."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import Labels, LossBase
from bmrm.problem import InputError, Summary, Targets

Rows = NDArray[np.int64]


class Grouping:
    """The order of rows in which those of a group stand together.

    Attributes
    ----------
    starts : (groups + 1,): group k is the rows starts[k] to starts[k + 1] in that order.
    """

    def __init__(self, groups: Rows) -> None:
        borders = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        self._rows: Rows | None = None
        if groups.size and len(np.unique(groups)) != borders.size + 1:
            self._rows = np.argsort(groups, kind="stable")
            groups = groups[self._rows]
            borders = np.flatnonzero(groups[1:] != groups[:-1]) + 1
        ends = np.array([groups.size] if groups.size else [], np.int64)
        self.starts: Rows = np.concatenate([np.zeros(1, np.int64), borders, ends])

    @classmethod
    def one(cls, rows: int) -> Grouping:
        """All rows are one group."""
        return cls(np.zeros(rows, np.int64))

    @property
    def groups(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> Rows:
        """(groups,) number of rows."""
        return np.diff(self.starts)

    def together(self, array: NDArray[Any]) -> NDArray[Any]:
        """The rows of `array`, those of a group together."""
        return array if self._rows is None else array[self._rows]

    def back(self, array: NDArray[Any]) -> NDArray[Any]:
        """The inverse of `together`."""
        if self._rows is None:
            return array
        out = np.empty_like(array)
        out[self._rows] = array
        return out

    def per_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """(groups,) values repeated for the rows, those of a group together."""
        return np.repeat(values, self.sizes)

    def sums(self, array: Array) -> Array:
        """(groups,) sums over the rows of each group, given with the rows of a group together."""
        return np.add.reduceat(array, self.starts[:-1]) if self.groups else np.zeros(0)


def grades_within(grouping: Grouping, y: Array) -> tuple[Rows, Rows]:
    """Each row's grade as 0, 1, ... among those of its group, (rows,), and the number of grades, (groups,).

    `y` is given with the rows of a group together.
    """
    if not grouping.groups:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    group = grouping.per_row(np.arange(grouping.groups))
    order = np.lexsort((y, group))
    ordered = y[order]
    rises = np.ones(y.size, np.int64)
    rises[1:] = ordered[1:] != ordered[:-1]
    rises[grouping.starts[:-1]] = 1
    level = np.cumsum(rises)
    first = level[grouping.starts[:-1]]
    grades = np.empty(y.size, np.int64)
    grades[order] = level - grouping.per_row(first)
    return grades, level[grouping.starts[1:] - 1] - first + 1


class RankingLoss(LossBase):
    """A loss over queries: rows with a grade, higher ones are to score higher; `Targets.groups` tells the queries."""

    task: ClassVar[str] = "ranking"
    decomposes: ClassVar[Literal["rows", "groups", "no"]] = "groups"
    scattered_groups: ClassVar[bool] = True
    only_ranks: ClassVar[bool] = True
    no_free_intercept: ClassVar[str] = "a common shift of a query's scores changes nothing"
    metrics: ClassVar[tuple[str, ...]] = ("ndcg@10", "ndcg", "mrr", "map", "kendall_tau")

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows and their weight; InputError for weights that the loss gives no meaning."""
        self._check_weights(targets)
        return domain.summary_of_rows(targets, self.title)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The scores themselves, (rows,): the higher, the earlier in the ranking."""
        return f

    def grouping(self, targets: Targets) -> Grouping:
        """The groups of some rows; InputError where there are none, or for weights that the loss gives no meaning."""
        self._check_weights(targets)
        if targets.groups is None:
            if targets.rows:
                raise InputError(
                    f"{self.title}: the rows have no groups; expected the query of each row "
                    "(qid:NUMBER in svmlight files, groups= in Python)"
                )
            return Grouping(np.zeros(0, np.int64))
        return Grouping(np.asarray(targets.groups, np.int64))

    def grades(self, targets: Targets, least: float = -np.inf, most: float = np.inf) -> Array:
        """The grades as numbers; InputError for one outside [least, most]."""
        y = domain.grades(targets, self.title)
        bad = np.flatnonzero((y < least) | (y > most))
        if bad.size:
            raise InputError(
                f"{self.title}: the grade of row {bad[0]} is {y[bad[0]]:g}, expected one from {least:g} to {most:g}"
            )
        return y

    def _check_weights(self, targets: Targets) -> None:
        if not self.weighted:
            domain.refuse_weights(targets, self.title)


NO_PAIRS = "no query has rows of different grades, so there is nothing to rank"
