"""A random sample of rows that lie on many ranks, which stay where they are (`RowSample`).

Every rank makes a risk of those of its rows that are drawn, and answers requests for it as for all rows. So a sample
has the same rows on any number of ranks that have them in this order, and no row is seen by another rank.
"""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.group import OtherRankError
from bmrm.mpi.local import LocalObjects
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.share import Rank
from bmrm.problem import IncompatibleError, InputError, Risk
from bmrm.problem.abilities import RowSample
from bmrm.risk.row_abilities import drawn


class OverRanks(Risk, Protocol):
    """A risk that asks ranks."""

    ranks: Ranks


class RankSamples:
    """Samples of this rank's rows."""

    last: OverRanks | str = ""
    """On rank 0 the risk of the last sample, until it is taken; or why there is none."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def draw(self, rows: NDArray[np.int64]) -> LocalObjects | None:
        """Those among these rows, numbered over all ranks; None where the loss refuses them."""
        sampled = self._rank.share.sampled
        assert sampled is not None, "the rows of this rank cannot be chosen from"
        try:
            found = cast(OverRanks, sampled(self._rank.own(rows)))
        except (InputError, IncompatibleError, OtherRankError) as error:  # on all ranks
            self.last = str(error)
            return None
        if self._rank.group.rank == 0:
            self.last = found
        return found.ranks.local


def row_sample(ranks: Ranks) -> RowSample:
    """On rank 0."""
    total = ranks.rank.rows

    def sample(rows: int, seed: int) -> Risk:
        slot = ranks.object("samples", "draw", drawn(total, rows, seed))
        mine: RankSamples = ranks.local.named("samples")
        found, mine.last = mine.last, ""
        if isinstance(found, str):
            raise InputError(found)
        found.ranks.asked_within(ranks, slot)
        return found

    return RowSample(total, sample)
