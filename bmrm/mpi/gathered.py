"""The rows of all ranks on rank 0, where their owners allow it."""

from __future__ import annotations

from collections.abc import Callable

from bmrm.data.dataset import Dataset
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.share import Rank
from bmrm.problem import Risk

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

    def gather(self) -> None:
        """All of them."""
        data = self._rank.share.data
        assert data is not None, "the rows of this rank stay where they are"
        self.gathered = gather_rows(data, self._rank.group)


def brought(ranks: Ranks, risk_of: RiskOf) -> Risk:
    """The risk of all rows, which come to rank 0."""
    ranks.ask(NAME, "gather")
    mine: RankRows = ranks.local.named(NAME)
    data, mine.gathered = mine.gathered, None
    assert data is not None
    return risk_of(data)
