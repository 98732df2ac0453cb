"""Dual coordinate ascent over rows that lie on many ranks (`DualBlocks`).

All ranks move at once from the same weights. Each takes the curvature of its rows times the
number of ranks, so that the sum of all moves is safe (Ma et al., ICML 2015: gamma = 1, sigma' = the number of ranks).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.communicator import MpiGroup
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.scores import RemoteScores, Slot
from bmrm.mpi.share import Rank
from bmrm.problem import Check, DualBlocks, Vector, unchecked
from bmrm.risk.dual.ascent import RowAscents
from bmrm.risk.dual.rows import AscentRows, Visits

LONG = 0.05
"""Seconds of a sweep from which it may be broken off: to hear whether it is takes some microseconds."""
SUM = Answer.SUM
Floats = NDArray[np.float64]

# -- on every rank ---------------------------------------------------------------------------------


class RankAscents:
    """The ascents of this rank's rows."""

    def __init__(self, rank: Rank) -> None:
        self._group = rank.group
        self._blocks: Any = rank.share.offered(DualBlocks)
        self.check: Check = unchecked
        """On rank 0: what a sweep asks now and then whether it is to be broken off."""
        self.reason: BaseException | None = None
        """What the check has raised in the last sweep."""

    def begin(
        self, l1: float, l2: float, seed: int, start: Floats | None, near: Floats | None, intercept: bool
    ) -> AscentRows:
        """Set up this rank's rows, each rank with an order of its own."""
        rows: AscentRows = self._blocks.make(l1, l2, seed * self._group.size + self._group.rank, self._group.size)
        rows.begin(start, near, intercept)
        return rows

    def sweep(
        self, rows: AscentRows, v: Vector, constant: Vector, penalty: float, watched: bool
    ) -> tuple[Vector, Vector, float, float, float]:
        """The move of v, then the total, the gap, the visits and the rows left; the last three nan if broken off."""
        after, lookout = v.copy(), Lookout(self._group, self.check) if watched else None
        visits = Visits(np.zeros(constant.size), np.nan, np.nan, np.nan)
        try:
            after, visits = rows.sweep(after, constant, penalty, lookout or unchecked)
        except Halt:
            assert lookout is not None
            self.reason = lookout.reason
        if lookout is not None:
            lookout.end()
        after -= v
        after /= self._group.size
        return after, visits.total, visits.gap, visits.visited, visits.left


class Halt(BaseException):
    """Unwinds a sweep that is broken off on all ranks."""


class Lookout:
    """Whether a sweep is to be broken off: rank 0 asks a check, the others whether it has told them to.

    Rank 0 tells each of them once, when its own part is done or broken off; `end` hears that, if nothing did before.

    Attributes
    ----------
    reason : what the check has raised, on rank 0.
    """

    def __init__(self, group: MpiGroup, check: Check) -> None:
        self._group, self._check = group, check
        self._heard = group.start_hearing() if group.rank else None
        self.reason: BaseException | None = None

    def __call__(self) -> None:
        """Raises Halt where it is."""
        if self._heard is not None:
            number, request = self._heard
            if request.Test() and number[0]:
                raise Halt
            return
        try:
            self._check()
        except BaseException as reason:  # whatever it is, the others are to know of it before
            self.reason = reason
            raise Halt from reason

    def end(self) -> None:
        """This rank's part is over."""
        if self._heard is None:
            self._group.tell(float(self.reason is not None))
        else:
            self._group.wait(self._heard[1])


# -- on rank 0 -------------------------------------------------------------------------------------


def remote_ascents(ranks: Ranks, infimum: float) -> RowAscents:
    """The ability `DualBlocks` of all ranks together; `infimum` is that of their risk."""
    mine: Any = ranks.share.offered(DualBlocks)

    def make(l1: float, l2: float, seed: int, shares: int, check: Check = unchecked) -> RemoteAscentRows:
        return RemoteAscentRows(ranks, l1, l2, seed)

    return RowAscents(ranks.rank.rows, ranks.share.dim, mine.mass, infimum, mine.scores_per_row, make, mine.grouped)


class RemoteAscentRows:
    """As of `AscentRows`; the ranks set up their rows in `begin`."""

    _slot: Slot

    def __init__(self, ranks: Ranks, l1: float, l2: float, seed: int) -> None:
        self._ranks, self._options = ranks, (l1, l2, seed)
        self._seconds = math.inf
        """Of the last sweep."""

    def begin(self, start: RemoteScores | None, near: RemoteScores | None, intercept: bool = False) -> None:
        """As of `AscentRows`."""
        self._slot = self._ranks.object("ascents", "begin", *self._options, start, near, intercept)

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; the moves of all ranks from `v`, added up. Where it is broken off, it is on all of them.

        Ranks that have rows for a moment only finish what they have begun.
        """
        check()
        local: RankAscents = self._ranks.local.named("ascents")
        begin, watched = time.perf_counter(), self._seconds > LONG
        local.check, local.reason = check, None
        move, *found = self._ranks.ask("ascents", "sweep", self._slot, v, constant, penalty, watched, answer=(SUM,) * 5)
        self._seconds = time.perf_counter() - begin
        v += move
        reason, local.reason = local.reason, None
        if reason is not None:
            raise reason
        return v, Visits(*found)

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._ranks.ask(self._slot, "unshrink")

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return self._ranks.array(self._slot, "totals", shift, share)

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return self._ranks.array(self._slot, "settle", shift, share)

    def offset(self) -> float:
        """As of `AscentRows`."""
        return self._ranks.number(self._slot, "offset")

    def squares(self) -> tuple[float, float]:
        """As of `AscentRows`."""
        squares, rows = self._ranks.ask(self._slot, "squares", answer=(SUM, SUM))
        return squares, rows

    def slope(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._ranks.scores(self._slot, "slope")

    def scores(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._ranks.scores(self._slot, "scores")
