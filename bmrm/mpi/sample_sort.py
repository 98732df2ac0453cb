"""A sample sort (Shi & Schaeffer 1992): numbers of many ranks in rising order, each rank with a range of them.

Each rank sorts its own numbers and shows as many of them as there are ranks, evenly spaced. Ranges end at some of
these, so that a range has at most three times the mean. Equal numbers have the order of their ranks, and may be
parted. `bmrm.losses._core.over_ranks` says what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rankings.sorting import FEW, ascending
from bmrm.losses._core.over_ranks import SortsOverRanks
from bmrm.mpi.group import Alone, Group
from bmrm.problem import InputError, Summary, Targets

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
NOTHING = np.empty(0)


class SampleSort:
    """As of `ManyRanks`."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.rank, self.size = group.rank, group.size

    def sum(self, numbers: Array) -> Array:
        """As of `ManyRanks`."""
        return self._group.sum(np.asarray(numbers, np.float64))

    def table(self, numbers: Array) -> Array:
        """As of `ManyRanks`."""
        table = np.zeros((self.size, len(numbers)))
        table[self.rank] = numbers
        return self._group.sum(table)

    def sort(self, keys: Array, beside: Array | None = None) -> Sorted:
        """As of `ManyRanks`."""
        order, rising = ascending(plain(keys))
        ends, middle = self._ends(rising)
        columns = [rising] if beside is None else [rising, beside[order]]
        parts = self.exchange(np.split(np.column_stack(columns), ends))
        sizes = [part.size // len(columns) for part in parts]
        table = np.concatenate(parts).reshape(-1, len(columns))
        merged, found = ascending(plain(table[:, 0]))
        others = table[merged, 1] if len(columns) > 1 else NOTHING
        return Sorted(self, found, others, middle, merged, sizes, order)

    def _ends(self, rising: Array) -> tuple[Rows, float]:
        """Where the ranges of the ranks end among these numbers, but for the last one; and one from their middle."""
        ranks = self.size
        shown = rising[np.arange(ranks) * rising.size // ranks] if rising.size else np.zeros(ranks)
        table = self.table(np.append(shown, rising.size))
        counts = table[:, -1].astype(np.int64)
        full = np.flatnonzero(counts)
        if not full.size:
            return np.zeros(ranks - 1, np.int64), 0.0
        owner = np.repeat(full, ranks)
        place = np.tile(np.arange(ranks), full.size) * counts[owner] // ranks
        key = table[full, :-1].ravel()
        order = np.lexsort((place, owner, key))
        stands_for = counts[owner[order]] / ranks
        before = np.cumsum(stands_for) - stands_for
        ends = np.searchsorted(before, counts.sum() * np.arange(1, ranks) / ranks)
        chosen = order[np.minimum(ends, order.size - 1)]
        ends = self._before(rising, key[chosen], owner[chosen], place[chosen])
        return ends, float(key[order[order.size // 2]])

    def _before(self, rising: Array, key: Array, owner: Rows, place: Rows) -> Rows:
        """How many of these numbers are before those keys, which their owners have at these places."""
        lower, not_higher = (np.searchsorted(rising, key, side) for side in ("left", "right"))
        return np.where(owner == self.rank, place, np.where(owner < self.rank, lower, not_higher))

    def blocks(self, mine: Array, wanted: Flags) -> Iterator[tuple[int, Array]]:
        """As of `ManyRanks`."""
        wants = self.table(wanted.astype(np.float64)) > 0.0
        for owner in np.flatnonzero(wants.any(axis=0)).tolist():
            given = self.rank == owner
            block = self.exchange([mine if given and reader[owner] else NOTHING for reader in wants])[owner]
            if wanted[owner]:
                yield owner, block

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        """Send numbers to each rank, in rank order; returns what each rank has sent to this one."""
        received = self._group.exchange([plain(part).reshape(-1).view(np.uint8) for part in parts])
        return [part.view(np.float64) for part in received]


@dataclass(eq=False)
class Sorted:
    """As of `SortedPart`.

    Attributes
    ----------
    merged : the order of what came from the ranks, one after another.
    sizes : how much came from each.
    order : that of the numbers that this rank gave.
    """

    ranks: SampleSort
    keys: Array
    beside: Array
    middle: float
    merged: Rows
    sizes: Sequence[int]
    order: Rows

    def below(self, masses: Array) -> Array:
        """As of `SortedPart`."""
        return self._passed(self.keys, masses, slice(0, self.ranks.rank))

    def above(self, masses: Array) -> Array:
        """As of `SortedPart`."""
        return self._passed(self.keys[::-1], masses[::-1], slice(self.ranks.rank + 1, None))[::-1]

    def _passed(self, keys: Array, masses: Array, others: slice) -> Array:
        """The masses that come before each key, those of equal keys left out; `others` have the ranges before."""
        if keys.size:
            first = np.append(True, keys[1:] != keys[:-1])
            run = np.maximum.accumulate(np.where(first, np.arange(keys.size), 0))
            inner = np.append(0.0, np.cumsum(masses))
            found = inner[run]
            mine = np.array([1.0, keys[-1], found[-1], inner[-1]])
        else:
            mine = np.zeros(4)
        table = self.ranks.table(mine)[others]
        if not keys.size:
            return NOTHING
        equal = (table[:, 0] > 0.0) & (table[:, 1] == keys[0])
        found += np.where(run > 0, table[:, 3].sum(), np.where(equal, table[:, 2], table[:, 3]).sum())
        return found

    def back(self, found: Array) -> Array:
        """As of `SortedPart`."""
        came = np.empty_like(found)
        came[self.merged] = found
        own = np.empty(self.order.size)
        own[self.order] = np.concatenate(self.ranks.exchange(np.split(came, np.cumsum(self.sizes)[:-1])))
        return own


def warm_up(loss: SortsOverRanks, summary: Summary) -> None:
    """Evaluate it alone on a few made-up rows: then its kernels are compiled, and lie in the cache."""
    targets = Targets(np.resize(np.array(summary.labels), FEW), dtype=summary.dtype)
    with suppress(InputError):  # all ranks will say so, in step
        prepared = loss.prepare_over_ranks(targets, summary, SampleSort(Alone()))
        prepared.meet()
        prepared.value_and_slope(np.random.default_rng(0).normal(size=FEW))
