"""Dual steps of several blocks of rows at once: those of the threads of a process, and of the ranks of a job.

All blocks begin a round at the same weights, move a copy of them by a part of their rows each, and the moves add up. A
block takes the curvature of its rows times a factor sigma' for what the others do meanwhile: with sigma' = ||sum d||^2
/ sum ||d||^2, d being the moves of the blocks, the sum raises the dual as much as the blocks together have counted on;
the number of blocks is always enough (Ma et al., ICML 2015, eq. 5 and 11). How much it takes is seen after each round
(as Dunner et al., "A distributed second-order algorithm you can trust", ICML 2018, adapt theirs to what a step has
brought), and the next one begins with that. Many rounds a sweep keep blocks from going far without hearing of each
other, where a rare agreement needs a large factor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.atomic import LINE
from bmrm.kernels.dual.moves import listed
from bmrm.kernels.dual.team import FACTOR, Meeting, TeamState
from bmrm.problem import Check, Vector, unchecked
from bmrm.risk.dual.visits import AscentRows, Visits

LEAST_ROUNDS, MOST_ROUNDS = 16, 32
"""Rounds of a sweep that threads share, at least and at most; with fewer they do not share it."""
DEAR, PER_WEIGHT = 2e6, 10.0
"""Least nanoseconds of visits of a thread in a round, and how many more for each weight. A meeting takes a thousandth
of that and merging an eighth; but where another program has a core, all wait for the thread without one."""
LONGEST = 2e8
"""Most nanoseconds of visits of a block in a round, between two checks of the clock."""


def rounds_for(work: float, dim: int, blocks: int) -> int:
    """Into how many rounds a sweep of so many nanoseconds is worth being cut, if any; more where they would be long."""
    worth = int(work / (blocks * (DEAR + PER_WEIGHT * dim)))
    return max(min(worth, MOST_ROUNDS), math.ceil(work / (blocks * LONGEST)))


def threads_for(work: float, dim: int, most: int) -> int:
    """The most threads, up to `most`, to which LEAST_ROUNDS are worth it; at least 1."""
    return max(1, min(most, int(work / (LEAST_ROUNDS * (DEAR + PER_WEIGHT * dim)))))


class Gathering:
    """What the threads of a process have in common, kept from sweep to sweep of the same weights.

    Parameters
    ----------
    v : the weights.
    threads : how many.
    scores : of a row.
    random : (1,), the state of the random numbers.
    """

    def __init__(self, v: Vector, threads: int, scores: int, random: NDArray[np.uint64]) -> None:
        flags = np.zeros(LINE * (threads + 1), np.int64)
        numbers, copies_of_numbers = np.zeros(3 * scores), np.zeros((threads, 3 * scores))
        self.meeting = Meeting(flags, v, np.tile(v, (threads, 1)), numbers, copies_of_numbers, np.zeros((threads, 2)))
        counts, sums, progress = np.zeros((threads, 2), np.int64), np.zeros((threads, 2)), np.zeros(3)
        progress[FACTOR] = threads
        self.state = TeamState(counts, sums, progress)
        self.random = random + np.arange(threads, dtype=np.uint64)

    def fits(self, v: Vector, threads: int) -> bool:
        """Whether it is of these weights and threads."""
        return self.meeting.v is v and len(self.meeting.copies) == threads


class LocalRows(AscentRows, ABC):
    """The rows of one process, which may be swept piece by piece, too."""

    @abstractmethod
    def work(self) -> float:
        """About how many nanoseconds a sweep over the open rows takes."""

    @abstractmethod
    def alone(
        self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked, factor: float = 1.0
    ) -> Visits:
        """As `sweep`, by one thread; v moves in place, by `factor` times as much as it should."""

    @abstractmethod
    def draw(self) -> None:
        """Begin a sweep over the open rows in a new order, piece by piece."""

    @abstractmethod
    def visit(self, piece: int, pieces: int, v: Vector, constant: Vector, penalty: float, factor: float) -> Vector:
        """Visit one of so many pieces; v moves in place, by `factor` times as much as it should. Returns the total."""

    @abstractmethod
    def close(self, total: Vector) -> Visits:
        """End the sweep when all pieces have been visited; `total` is that of all."""

    def list_moves(
        self, piece: int, pieces: int, v: Vector, weights: Vector, factor: float, pairs: NDArray[np.float64]
    ) -> tuple[float, int]:
        """What a visit of this piece has moved v by, over `factor`: places and moves in turn, in `pairs`.

        v becomes `weights` again where it is listed. Returns the square of the moves and how many they are; where there
        may be no room for all, -1 less the number of those that are listed.
        """
        found: tuple[float, int] = listed(0, v, weights, factor, pairs, 0.0, 0)
        return found
