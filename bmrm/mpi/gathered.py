"""Rows that ranks give away, on rank 0: a sample of them, or all; where their owner allows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.share import Rank
from bmrm.problem import InputError, Risk

MOST = 5e7
"""Entries of X that may come to rank 0, some 600 MB."""
RiskOf = Callable[[Dataset], Risk]
"""The mean loss of rows that are all on this rank."""
NAME = "rows"


class RankRows:
    """This rank's rows."""

    gathered: Dataset | None = None
    """On rank 0 those of all ranks, until they are taken."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def gather(self, rows: NDArray[np.int64] | None) -> None:
        """These rows, numbered over all ranks, or all."""
        data = self._rank.share.data
        assert data is not None, "the rows of this rank stay where they are"
        mine = data if rows is None else data.select(self._rank.own(rows))
        self.gathered = gather_rows(mine, self._rank.group)


@dataclass(frozen=True)
class RemoteRowSample:
    """As of `RowSample` and `Gathered`, for rank 0."""

    ranks: Ranks
    risk_of: RiskOf

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self.ranks.rank.rows

    def sample(self, rows: int, seed: int) -> Risk:
        """As of `RowSample`; the same rows for any number of ranks that have them in this order."""
        if not 0 < rows <= self.rows:
            raise InputError(f"a sample of {rows} rows, expected 1 to {self.rows}")
        chosen = np.random.default_rng(seed).choice(self.rows, rows, replace=False, shuffle=False)
        return self._risk(np.sort(chosen))

    def gathered(self) -> Risk:
        """As of `Gathered`."""
        return self._risk(None)

    def _risk(self, rows: NDArray[np.int64] | None) -> Risk:
        self.ranks.ask(NAME, "gather", rows)
        mine: RankRows = self.ranks.local.named(NAME)
        data, mine.gathered = mine.gathered, None
        assert data is not None
        return self.risk_of(data)
