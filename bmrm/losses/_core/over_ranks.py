"""Losses of a whole sample whose rows are on many ranks, none of which has room for all scores.

Every rank calls a method at the same time, with the scores of its own rows, and gets the slopes of these. The value is
that of all rows on rank 0 and 0.0 elsewhere, so that values and slopes add up over ranks as those of other losses do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.whole_sample import KinkedSample
from bmrm.problem import Summary, Targets

Flags = NDArray[np.bool_]


class SortedPart(Protocol):
    """A range of the numbers of all ranks in rising order; the ranges follow each other in the order of the ranks.

    Attributes
    ----------
    keys : the numbers of this range, rising. Equal ones may be in the ranges of several ranks.
    beside : what was given with each of them.
    middle : a number from the middle of all, the same on all ranks; 0.0 where there are none.
    """

    keys: Array
    beside: Array
    middle: float

    def below(self, masses: Array) -> Array:
        """For each key the masses of all lower keys of all ranks, added up; `masses` has one for each key."""
        ...

    def above(self, masses: Array) -> Array:
        """For each key the masses of all higher keys of all ranks, added up."""
        ...

    def back(self, found: Array) -> Array:
        """One number for each key goes to the rank that gave the key; in the order in which that one gave its keys."""
        ...


class ManyRanks(Protocol):
    """What ranks do together: all of them call a method at the same time."""

    rank: int

    def sum(self, numbers: Array) -> Array:
        """Added up over the ranks, the same on all."""
        ...

    def table(self, numbers: Array) -> Array:
        """(ranks, numbers): those of all ranks."""
        ...

    def sort(self, keys: Array, beside: Array | None = None) -> SortedPart:
        """Sort the keys of all ranks; `beside` is a number for each."""
        ...

    def blocks(self, mine: Array, wanted: Flags) -> Iterator[tuple[int, Array]]:
        """The arrays of the ranks `wanted`, one after another; to be used up by all ranks, also for no array at all."""
        ...


@runtime_checkable
class SortsOverRanks(Protocol):
    """A loss of the whole sample that can do without all scores in one place."""

    def prepare_over_ranks(self, targets: Targets, summary: Summary, ranks: ManyRanks) -> OverRanks:
        """Bind to the rows of this rank, without a word to others: InputError as of `prepare`, perhaps here alone."""
        ...


class OverRanks(KinkedSample):
    """A loss of the rows of all ranks, bound to those of this one."""

    ranks: ManyRanks

    def meet(self) -> None:
        """Learn what must be known of the rows of all ranks; to be called once, before anything else."""
        raise TypeError(f"{type(self).__name__} does not define meet()")

    def on_one(self, value: float) -> float:
        """The value as rank 0 returns it, never below 0; 0.0 on the other ranks."""
        return max(value, 0.0) if self.ranks.rank == 0 else 0.0


class PairsOverRanks(OverRanks):
    """The sum over pairs of a positive row p and a negative one n of w_p w_n max(0, 1 - (f_p - f_n))."""

    def __init__(self, ranks: ManyRanks, positive: Flags, weights: Array | None, nothing: str) -> None:
        self.ranks, self.positive, self.nothing = ranks, positive, nothing
        self.weights = np.ones(positive.size) if weights is None else weights

    def meet(self) -> None:
        """As of `OverRanks`."""
        each = self.weights[self.positive], self.weights[~self.positive]
        masses = self.ranks.sum(np.array([part.sum() for part in each]))
        self.highs, self.lows = float(masses[0]), float(masses[1])
        self.mass = self.highs * self.lows

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum at scores `f` of this rank's rows, see the module, and its slope, a new array like `f`."""
        return self.short_pairs(f, self.weights)

    def short_pairs(self, f: Array, weights: Array) -> tuple[float, Array]:
        """The same for other weights.

        A pair counts where f_p < f_n + 1, so the numbers f_p and f_n + 1 are sorted: a negative row counts the weights
        of the positive ones below it, and a positive row those of the negative ones above it.
        """
        order = self.ranks.sort(np.where(self.positive, f, f + 1.0), np.where(self.positive, weights, -weights))
        high, low = np.maximum(order.beside, 0.0), np.maximum(-order.beside, 0.0)
        slope = order.back(low * order.below(high) - high * order.above(low))
        parts = np.array([slope[~self.positive].sum(), dot(slope, f - order.middle)])
        count, product = self.ranks.sum(parts)
        return self.on_one(float(count + product)), slope
