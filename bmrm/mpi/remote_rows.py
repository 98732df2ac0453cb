"""The abilities `RowSubsets` and `ModifiedLoss` of a risk whose rows lie on many ranks, as rank 0 has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.client import Client
from bmrm.mpi.local_rows import packed
from bmrm.mpi.remote_scores import Slot
from bmrm.mpi.requests import Operation
from bmrm.problem import ModifiedLoss, ScoreFunction, Vector, ability

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RemoteRows:
    """Rows in rank order."""

    risk: Client

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self.risk.rows

    def value_and_subgradient_of(self, rows: Rows, w: Vector) -> tuple[float, Vector]:
        """As of `RowSubsets`."""
        message = np.concatenate((w, np.asarray(rows, dtype=np.float64)))
        answer = self.risk.ask(Operation.ROWS, len(rows), sent=message)
        answer *= self.rows / len(rows)
        return float(answer[0]), answer[1:]

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> RemoteActiveSet:
        """As of `RowSubsets`; every rank knows itself which rows come before its own."""
        slot = self.risk.slot()
        self.risk.ask(Operation.ACTIVE_SET, slot.number, quiet, least, most, seed)
        return RemoteActiveSet(self.risk, slot)


@dataclass(frozen=True)
class RemoteActiveSet:
    """As of `ActiveSet`: every rank watches its own rows."""

    risk: Client
    slot: Slot

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """As of `ActiveSet`."""
        answer = self.risk.ask(Operation.STEP, self.slot.number, sent=w)
        return float(answer[0]), answer[2:], float(answer[1]) / max(1, self.risk.rows)

    def rest(self, w: Vector) -> tuple[float, Vector]:
        """As of `ActiveSet`."""
        answer = self.risk.ask(Operation.REST, self.slot.number, sent=w)
        return float(answer[0]), answer[1:]


@dataclass(frozen=True)
class RemoteVariants:
    """As of `ModifiedLoss`; `phi_of` makes a score function of a slot."""

    risk: Client
    phi_of: Callable[[Slot], ScoreFunction]

    @property
    def rows(self) -> int:
        """Of all ranks."""
        return self.risk.rows

    @property
    def offset(self) -> int | None:
        """The same on all ranks."""
        return self._mine.offset

    @property
    def _mine(self) -> ModifiedLoss:
        assert self.risk.local.share.risk is not None
        mine = ability(self.risk.local.share.risk, ModifiedLoss)
        assert mine is not None
        return mine

    def target_sums(self) -> tuple[float, float]:
        """As of `ModifiedLoss`."""
        self._mine.target_sums()  # what cannot be done is refused before the others are asked
        total, weight = self.risk.ask(Operation.OUTCOMES)
        return float(total), float(weight)

    def mass(self, rows: Rows | None, changes: Mapping[str, float]) -> float:
        """As of `ModifiedLoss`."""
        self._mine.mass(np.empty(0, np.int64), changes)
        counts, message = packed(rows, changes)
        return float(self.risk.ask(Operation.MASS, *counts, sent=message)[0])

    def variant(self, rows: Rows | None, changes: Mapping[str, float], mass: float | None = None) -> ScoreFunction:
        """As of `ModifiedLoss`."""
        total = self.mass(rows, changes) if mass is None else mass
        counts, message = packed(rows, changes)
        slot = self.risk.slot()
        self.risk.ask(Operation.VARIANT, slot.number, total, *counts, sent=message)
        return self.phi_of(slot)
