"""Dual coordinate ascent over rows that lie on many ranks (`DualBlocks`).

All ranks move at once from the same weights, in rounds as threads do (`bmrm.risk.dual.joint`), and the moves add up.
Within a sweep the ranks add them up among themselves, and rank 0 hears of the last ones only. How often they do is what
a run to its last digits takes: see `FREE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.dual.moves import merged, merged_lists, moved
from bmrm.kernels.dual.team import next_factor
from bmrm.mpi.communicator import PIECE, MpiGroup
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
FREE = 5e3, 0.5, 1024
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
Moved = tuple[Floats, float]
"""What all ranks have told, and the square of the sum of their moves."""
ListMoves = Callable[[Vector, Vector, float, Floats], tuple[float, int]]
"""As `LocalRows.list_moves`, of the last piece that was visited."""
Found = tuple[Vector, Vector, float, float, float, float]
"""Result of some rounds: the move; its total; gap, visits and rows left of the last sweep; the next factor."""

# -- on every rank ---------------------------------------------------------------------------------


class Moves:
    """The weights that all ranks move from, and what they add up of their moves.

    Ranks send one another lists of the weights that have moved where all lists together are no longer than the vector;
    otherwise they add up vectors. They choose by the lists of the round before, so all alike.

    Parameters
    ----------
    group : of the ranks.
    dim, scores : of the weights and of the totals.
    """

    def __init__(self, group: MpiGroup, dim: int, scores: int) -> None:
        self._group = group
        self.weights, self.local, self.totals = np.empty(dim), np.empty(dim), np.zeros(scores)
        """Those of all ranks, and what this rank moves."""
        self._told = np.zeros(scores + 5)
        self._sent = np.zeros(self._told.size + dim)
        self._most = min(dim // group.size, PIECE) if group.in_pairs else 0
        """Of a list, which may be twice as long as in the round before."""
        self._messages = np.zeros((group.size, self._told.size + 2 * self._most))
        self._listed = False
        """Whether the next round begins with lists."""

    def fits(self, v: Vector, constant: Vector) -> bool:
        """Whether they are of such sizes."""
        return v.size == self.weights.size and constant.size == self.totals.size

    def begin(self, v: Vector) -> None:
        """From the weights v."""
        self.weights[:] = self.local[:] = v
        self.totals[:] = 0.0

    def add_up(self, visits: Visits, penalty: float, factor: float, list_moves: ListMoves) -> tuple[Floats, float]:
        """Add what this rank has moved, and others have: the sums of their visits, and the next factor.

        `local` has moved by `factor` times as much as it should.
        """
        found = self._add_lists(visits, penalty, factor, list_moves) if self._listed else None
        told, square = self._add_vectors(visits, penalty, factor) if found is None else found
        added, told_by_all, apart, count = told[:-5], told[-5:-2], float(told[-2]), float(told[-1])
        self.totals += added
        self._listed = self._most > 0 and 2.0 * count <= self._group.size * self._most
        factor = next_factor(square + penalty * float(added @ added), apart, factor)
        return told_by_all, min(factor, float(self._group.size))

    def _write(self, told: Floats, visits: Visits, penalty: float, moved: tuple[float, int]) -> None:
        square, count = moved
        added = visits.total
        told[:-5] = added
        told[-5:] = visits.gap, visits.visited, visits.left, square + penalty * float(added @ added), count

    def _add_vectors(self, visits: Visits, penalty: float, factor: float) -> Moved:
        """By a sum of moves of all weights, which follows what is told."""
        told, move = self._sent[: self._told.size], self._sent[self._told.size :]
        self._write(told, visits, penalty, moved(self.local, self.weights, factor, move))
        self._group.sum_in_place(self._sent)
        return told, merged(move, self.weights, self.local)

    def _add_lists(self, visits: Visits, penalty: float, factor: float, list_moves: ListMoves) -> Moved | None:
        """By lists of the weights that have moved; None where those of a rank are too many."""
        head, mine = self._told.size, self._messages[self._group.rank]
        square, count = list_moves(self.local, self.weights, factor, mine[head:])
        self._write(mine[:head], visits, penalty, (square, count))
        self._group.trade(self._messages, head + 2 * max(count, 0))
        square = merged_lists(self._messages, self._told, self.weights, self.local)
        if square >= 0.0:
            return self._told, square
        end = head + 2 * (count if count >= 0 else -1 - count)
        places, steps = mine[head:end:2].astype(np.intp), mine[head + 1 : end : 2]
        self.local[places] = self.weights[places] + factor * steps
        return None


class RankAscents:
    """The ascents of this rank's rows."""

    def __init__(self, rank: Rank) -> None:
        self._group = rank.group
        self._moves: Moves | None = None
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
        if self._moves is None or not self._moves.fits(v, constant):
            self._moves = Moves(self._group, v.size, constant.size)
        moves = self._moves
        moves.begin(v)
        for number in range(first, stop):
            visits = self._round(rows, number, rounds, moves.local, constant + penalty * moves.totals, penalty, factor)
            told, factor = moves.add_up(visits, penalty, factor, partial(rows.list_moves, number, rounds))
        mine = float(self._group.rank == 0)
        gap, visited, left = (mine * told).tolist()
        return mine * (moves.weights - v), mine * moves.totals, gap, visited, left, mine * factor

    def _round(
        self,
        rows: LocalRows,
        number: int,
        rounds: int,
        v: Vector,
        constant: Vector,
        penalty: float,
        factor: float,
    ) -> Visits:
        """Move v in place by this rank's rows; a single round is several sweeps over few open rows."""
        if rounds == 1:
            return rows.alone(v, constant, penalty, factor=factor)
        if number == 0:
            rows.draw()
        total = rows.visit(number, rounds, v, constant, penalty, factor)
        return rows.close(total) if number == rounds - 1 else Visits(total, 0.0, 0.0, 0.0)


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
