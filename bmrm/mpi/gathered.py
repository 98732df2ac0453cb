"""Rows that ranks give away, on rank 0: a sample of them, or all; where their owner allows it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.share import Rank
from bmrm.problem import Risk
from bmrm.problem.abilities import RowSample
from bmrm.risk.row_abilities import drawn

MOST = 5e7
"""Most entries of X that may be gathered on rank 0, some 600 MB."""
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


def row_sample(ranks: Ranks, risk_of: RiskOf) -> RowSample:
    """On rank 0: the same rows for any number of ranks that have them in this order."""
    total = ranks.rank.rows
    return RowSample(total, lambda rows, seed: brought(ranks, risk_of, drawn(total, rows, seed)))


def brought(ranks: Ranks, risk_of: RiskOf, rows: NDArray[np.int64] | None = None) -> Risk:
    """The risk of these rows, or all, which come to rank 0."""
    ranks.ask(NAME, "gather", rows)
    mine: RankRows = ranks.local.named(NAME)
    data, mine.gathered = mine.gathered, None
    assert data is not None
    return risk_of(data)
