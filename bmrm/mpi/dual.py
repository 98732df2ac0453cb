"""Dual coordinate ascent over rows that lie on many ranks (`DualBlocks`).

All ranks move at once from the same weights, in rounds as threads do (`bmrm.risk.dual.joint`), and the moves add up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.team import next_factor
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.scores import RemoteScores, Slot
from bmrm.mpi.share import Rank
from bmrm.problem import Check, Vector, unchecked
from bmrm.problem.abilities import DualBlocks
from bmrm.risk.dual.ascent import RowAscents
from bmrm.risk.dual.joint import LocalRows, rounds_for
from bmrm.risk.dual.visits import Visits

LEAST_ROUNDS = 8
"""Fewest rounds of a sweep over all rows; for a share of the rows proportionally fewer."""
MESSAGE = 4e5
"""Least nanoseconds of visits of a rank in a round."""
SUM = Answer.SUM
Floats = NDArray[np.float64]
Found = tuple[Vector, Vector, float, float, float, float]
"""Result of a round: the move; its total; gap, visits and rows left of the last sweep; the squared norm of the move."""

# -- on every rank ---------------------------------------------------------------------------------


class RankAscents:
    """The ascents of this rank's rows."""

    def __init__(self, rank: Rank) -> None:
        self._group = rank.group
        self._blocks: Any = rank.share.offered(DualBlocks)

    def begin(
        self, l1: float, l2: float, seed: int, start: Floats | None, near: Floats | None, intercept: bool
    ) -> LocalRows:
        """Set up this rank's rows, each rank with an order of its own."""
        rows: LocalRows = self._blocks.make(l1, l2, seed * self._group.size + self._group.rank)
        rows.begin(start, near, intercept)
        return rows

    def size(self, rows: LocalRows) -> tuple[float, float]:
        """Nanoseconds that a sweep takes, and rows of a weight above 0."""
        return rows.work(), rows.sizes()[1]

    def round(
        self, rows: LocalRows, number: int, rounds: int, v: Vector, constant: Vector, penalty: float, factor: float
    ) -> Found:
        """That round of a sweep in so many; with a single one sweeps over few open rows, several times."""
        after = v.copy()
        if rounds == 1:
            visits = rows.alone(after, constant, penalty, factor=factor)
        else:
            if number == 0:
                rows.draw()
            total = rows.visit(number, rounds, after, constant, penalty, factor)
            visits = rows.close(total) if number == rounds - 1 else Visits(total, 0.0, 0.0, 0.0)
        after -= v
        after /= factor
        return after, visits.total, visits.gap, visits.visited, visits.left, squared_norm(after, visits.total, penalty)


def squared_norm(move: Vector, total: Vector, penalty: float) -> float:
    """Of a move of v and of the constant, a feature of the root of the penalty."""
    return float(move @ move) + penalty * float(total @ total)


# -- on rank 0 -------------------------------------------------------------------------------------


def remote_ascents(ranks: Ranks, rows: int, infimum: float) -> RowAscents:
    """The ability `DualBlocks` of all ranks together; rows and infimum are those of their risk."""
    mine: Any = ranks.share.offered(DualBlocks)

    def make(l1: float, l2: float, seed: int, check: Check = unchecked) -> RemoteAscentRows:
        return RemoteAscentRows(ranks, l1, l2, seed)

    return RowAscents(rows, ranks.share.dim, mine.mass, infimum, mine.scores_per_row, make, mine.grouped)


class RemoteAscentRows:
    """As of `AscentRows`; the ranks set up their rows in `begin`."""

    _slot: Slot
    _work: float
    """Of a sweep over all rows, in nanoseconds of one rank after the other."""
    _rows: float
    _left: float
    """Rows that are open."""

    def __init__(self, ranks: Ranks, l1: float, l2: float, seed: int) -> None:
        self._ranks, self._options = ranks, (l1, l2, seed)
        self._factor = float(ranks.group.size)
        """Of the curvatures, in the next round."""

    def begin(self, start: RemoteScores | None, near: RemoteScores | None, intercept: bool = False) -> None:
        """As of `AscentRows`."""
        self._slot = self._ranks.object("ascents", "begin", *self._options, start, near, intercept)
        self._work, self._rows = self._ranks.ask("ascents", "size", self._slot, answer=(SUM, SUM))
        self._left = self._rows

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; v changes in place.

        Where `check` raises between two rounds, v and the slopes of all rows belong together.
        """
        share, ranks = self._left / max(1.0, self._rows), self._ranks.group.size
        rounds = max(rounds_for(share * self._work, v.size, ranks, MESSAGE), math.ceil(LEAST_ROUNDS * share), 1)
        total, last = np.zeros(constant.size), Visits(constant, 0.0, 0.0, 0.0)
        for number in range(rounds):
            check()
            given = (number, rounds, v, constant + penalty * total, penalty, self._factor)
            move, added, *visits, apart = self._ranks.ask("ascents", "round", self._slot, *given, answer=(SUM,) * 6)
            v += move
            total += added
            last = Visits(total, *visits)
            self._factor = min(next_factor(squared_norm(move, added, penalty), apart, self._factor), float(ranks))
        self._left = last.left
        return v, last

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._ranks.ask(self._slot, "unshrink")
        self._left = self._rows

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return self._ranks.array(self._slot, "totals", shift, share)

    def evened(self) -> Floats | None:
        """As of `AscentRows`: not over ranks."""
        return None

    def derivative(self, shift: Vector, share: float = 1.0) -> Floats:
        """As of `AscentRows`."""
        return self._ranks.array(self._slot, "derivative", shift, share)

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return self._ranks.array(self._slot, "settle", shift, share)

    def offset(self) -> float:
        """As of `AscentRows`."""
        return self._ranks.number(self._slot, "offset")

    def sizes(self) -> tuple[float, float, float, float]:
        """As of `AscentRows`."""
        squares, rows, scores, slopes = self._ranks.ask(self._slot, "sizes", answer=(SUM,) * 4)
        return squares, rows, scores, slopes

    def slope(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._ranks.scores(self._slot, "slope")

    def scores(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._ranks.scores(self._slot, "scores")
