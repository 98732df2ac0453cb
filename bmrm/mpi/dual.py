"""Dual coordinate ascent over rows that lie on many ranks (`DualBlocks`).

All ranks move at once from the same weights, in rounds as threads do (`bmrm.risk.dual.joint`), and the moves add up.
Within a sweep the ranks add them up among themselves, and rank 0 hears of the last ones only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from bmrm.risk.dual.joint import LONGEST, LocalRows
from bmrm.risk.dual.visits import Visits

LEAST_ROUNDS = 8
"""Fewest rounds of a sweep over all rows; for a share of the rows proportionally fewer."""
FREE = 2e4, 1.0, 1024
"""Least nanoseconds of visits of a rank in a round, how many more for each weight, and most rounds of a sweep: about
what adding up takes between two processes of a machine. How many rounds a run needs to its last digits hardly depends
on how many rows each has, so that short ones save passes."""
CROWDED = 4e5, 10.0, 32
"""The same where ranks share cores: then each message waits for a rank that sleeps."""
DELAY = 1e5, 10.0
"""Nanoseconds that adding up takes over a slow network, and how many more for each weight: so that a limit of time is
looked at often enough."""
SUM = Answer.SUM
Floats = NDArray[np.float64]
Found = tuple[Vector, Vector, float, float, float, float]
"""Result of some rounds: the move; its total; gap, visits and rows left of the last sweep; the next factor."""

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

    def rounds(
        self, rows: LocalRows, turns: Floats, v: Vector, constant: Vector, penalty: float, factor: float
    ) -> Found:
        """Some rounds of a sweep: from the first to the last of `turns`, and how many the sweep has.

        All ranks end at the same weights; rank 0 alone gives an account of them.
        """
        first, stop, rounds = (int(turn) for turn in turns)
        weights, total = v.copy(), np.zeros(constant.size)
        sent = np.zeros(v.size + total.size + 4)
        parts = move, added, visits, apart = np.split(sent, np.cumsum((v.size, total.size, 3)))
        for number in range(first, stop):
            self._round(rows, number, rounds, weights, constant + penalty * total, penalty, factor, parts)
            self._group.sum_in_place(sent)
            weights += move
            total += added
            factor = next_factor(squared_norm(move, added, penalty), float(apart[0]), factor)
            factor = min(factor, float(self._group.size))
        mine = float(self._group.rank == 0)
        gap, visited, left = (mine * visits).tolist()
        return mine * (weights - v), mine * total, gap, visited, left, mine * factor

    def _round(
        self,
        rows: LocalRows,
        number: int,
        rounds: int,
        v: Vector,
        constant: Vector,
        penalty: float,
        factor: float,
        parts: Sequence[Floats],
    ) -> None:
        """Write the move of this rank's rows, its total; gap, visits and rows left of the sweep; the move's square.

        A single round is several sweeps over few open rows.
        """
        move, added, told, apart = parts
        move[:] = v
        if rounds == 1:
            visits = rows.alone(move, constant, penalty, factor=factor)
        else:
            if number == 0:
                rows.draw()
            total = rows.visit(number, rounds, move, constant, penalty, factor)
            visits = rows.close(total) if number == rounds - 1 else Visits(total, 0.0, 0.0, 0.0)
        move -= v
        move /= factor
        added[:] = visits.total
        told[:] = visits.gap, visits.visited, visits.left
        apart[0] = squared_norm(move, added, penalty)


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

        Where `check` raises between rounds, v and the slopes of all rows belong together.
        """
        group, share = self._ranks.group, self._left / max(1.0, self._rows)
        work, (least, more, most) = share * self._work / group.size, CROWDED if group.crowded else FREE
        rounds = min(int(work / (least + more * v.size)), most)
        rounds = max(rounds, math.ceil(work / LONGEST), math.ceil(LEAST_ROUNDS * share), 1)
        some = max(1, int(LONGEST / (work / rounds + DELAY[0] + DELAY[1] * v.size)))
        total, visits = np.zeros(constant.size), [0.0, 0.0, 0.0]
        for first in range(0, rounds, some):
            check()
            turns = np.array((first, min(first + some, rounds), rounds), np.float64)
            given = (turns, v, constant + penalty * total, penalty, self._factor)
            move, added, *visits, self._factor = self._ranks.ask(
                "ascents", "rounds", self._slot, *given, answer=(SUM,) * 6
            )
            v += move
            total += added
        last = Visits(total, *visits)
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
