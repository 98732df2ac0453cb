"""Ranks that are threads of this process: the messages of `Group`, without MPI."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bmrm.mpi.group import Group

PATIENCE = 60.0
"""Seconds after which a rank that waits for the others fails."""


class Threads(Group):
    """One of them. `received` is the largest number of bytes that it has got in one exchange."""

    def __init__(self, rank, size, board, barrier):
        self.rank, self.size = rank, size
        self._board, self._barrier = board, barrier
        self.received = 0

    def _everyone(self, mine):
        """What all ranks show."""
        self._board[self.rank] = mine
        self._barrier.wait(PATIENCE)
        found = list(self._board)
        self._barrier.wait(PATIENCE)
        return found

    def sum(self, array):
        return np.sum([np.array(each) for each in self._everyone(np.array(array, np.float64))], axis=0)

    def exchange(self, pieces):
        found = [np.array(each[self.rank]) for each in self._everyone(list(pieces))]
        self.received = max(self.received, sum(each.nbytes for each in found))
        return found


def on_ranks(size, function):
    """What `function(group)` returns on each rank, and the groups."""
    board, barrier = [None] * size, threading.Barrier(size)
    groups = [Threads(rank, size, board, barrier) for rank in range(size)]

    def one(group):
        try:
            return function(group)
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        found = list(pool.map(one, groups))
    return found, groups
