"""Some of the rows, which lie on many ranks: the abilities `RowSubsets` and `ModifiedLoss`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.scored import RemotePhi
from bmrm.mpi.scores import Slot
from bmrm.mpi.share import Rank
from bmrm.problem import ScoreFunction, Vector
from bmrm.problem.abilities import ActiveSet, ModifiedLoss, RowSubsets

Rows = NDArray[np.int64]
SUM = Answer.SUM

# -- on every rank: rows are numbered over all ranks -------------------------------------------------


class RankSubsets:
    """This rank's part of `RowSubsets`."""

    def __init__(self, rank: Rank) -> None:
        self._rank, self._subsets = rank, rank.share.offered(RowSubsets)

    def value_and_subgradient_of(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        """The chosen rows' part of R(w) and its subgradient."""
        mine = self._rank.own(rows)
        if not mine.size:
            return 0.0, np.zeros(w.size)
        value, subgradient = self._subsets.value_and_subgradient_of(mine, w)
        share = mine.size / self._subsets.rows
        return share * value, share * subgradient

    def active_set(self, quiet: int, least: int, most: int, seed: int) -> RankActiveSet:
        """Of this rank's rows."""
        first = self._rank.rows_before
        return RankActiveSet(self._rank.share.rows, self._subsets.active_set(quiet, least, most, seed, first))


@dataclass(frozen=True)
class RankActiveSet:
    """This rank's part of `ActiveSet`."""

    rows: int
    mine: ActiveSet

    def step(self, w: Vector) -> tuple[float, float, Vector]:
        """Value, number of rows evaluated, subgradient."""
        value, subgradient, share = self.mine.step(w)
        return value, share * self.rows, subgradient

    def rest(self, w: Vector) -> tuple[float, Vector]:
        """Value and subgradient of the rows left out."""
        return self.mine.rest(w)


class RankModified:
    """This rank's part of `ModifiedLoss`."""

    def __init__(self, rank: Rank) -> None:
        self._rank, self._modified = rank, rank.share.offered(ModifiedLoss)

    def target_sums(self) -> tuple[float, float]:
        """As of `ModifiedLoss`."""
        return self._modified.target_sums()

    def mass(self, rows: Rows | None, changes: Mapping[str, float]) -> float:
        """As of `ModifiedLoss`."""
        return self._modified.mass(self._own(rows), changes)

    def variant(self, rows: Rows | None, changes: Mapping[str, float], mass: float) -> ScoreFunction:
        """As of `ModifiedLoss`."""
        return self._modified.variant(self._own(rows), changes, mass)

    def _own(self, rows: Rows | None) -> Rows | None:
        return None if rows is None else self._rank.own(rows)


# -- on rank 0 -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RemoteRows:
    """As of `RowSubsets`; rows in rank order."""

    ranks: Ranks

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self.ranks.rank.rows

    def value_and_subgradient_of(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        """As of `RowSubsets`."""
        rows = np.asarray(rows, np.int64)
        value, subgradient = self.ranks.ask("subsets", "value_and_subgradient_of", rows, w, answer=(SUM, SUM))
        factor = self.rows / len(rows)
        subgradient *= factor
        return factor * value, subgradient

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> RemoteActiveSet:
        """As of `RowSubsets`; every rank knows itself which rows come before its own."""
        return RemoteActiveSet(self.ranks, self.ranks.object("subsets", "active_set", quiet, least, most, seed))


@dataclass(frozen=True)
class RemoteActiveSet:
    """As of `ActiveSet`: every rank has one of its own rows."""

    ranks: Ranks
    slot: Slot

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """As of `ActiveSet`."""
        value, rows, subgradient = self.ranks.ask(self.slot, "step", w, answer=(SUM, SUM, SUM))
        return value, subgradient, rows / max(1, self.ranks.rank.rows)

    def rest(self, w: Vector) -> tuple[float, Vector]:
        """As of `ActiveSet`."""
        value, subgradient = self.ranks.ask(self.slot, "rest", w, answer=(SUM, SUM))
        return value, subgradient


@dataclass(frozen=True)
class RemoteModified:
    """As of `ModifiedLoss`."""

    ranks: Ranks

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self.ranks.rank.rows

    @property
    def offset(self) -> int | None:
        """The same on all ranks."""
        return self._mine.offset

    @property
    def _mine(self) -> ModifiedLoss:
        return self.ranks.share.offered(ModifiedLoss)

    def target_sums(self) -> tuple[float, float]:
        """As of `ModifiedLoss`."""
        self._mine.target_sums()  # what cannot be done is refused before the others are asked
        total, weight = self.ranks.ask("modified", "target_sums", answer=(SUM, SUM))
        return total, weight

    def mass(self, rows: Rows | None, changes: Mapping[str, float]) -> float:
        """As of `ModifiedLoss`."""
        self._mine.mass(np.empty(0, np.int64), changes)
        return self.ranks.number("modified", "mass", rows, dict(changes))

    def variant(self, rows: Rows | None, changes: Mapping[str, float], mass: float | None = None) -> RemotePhi:
        """As of `ModifiedLoss`."""
        total = self.mass(rows, changes) if mass is None else mass
        return RemotePhi(self.ranks, self.ranks.object("modified", "variant", rows, dict(changes), total))
