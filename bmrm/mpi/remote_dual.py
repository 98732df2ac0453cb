"""Dual coordinate ascent over rows that lie on many ranks, as rank 0 has it."""

from __future__ import annotations

import math
import time
from typing import Any, cast

from bmrm.mpi.client import Client
from bmrm.mpi.remote_scores import RemoteScores
from bmrm.mpi.requests import Operation
from bmrm.problem import Check, DualBlocks, Vector, ability, unchecked
from bmrm.risk.dual.ascent import RowAscents
from bmrm.risk.dual.rows import Visits

LONG = 0.05
"""Seconds of a sweep from which it may be broken off: to hear whether it is takes some microseconds."""


def remote_steps(risk: Client) -> RowAscents:
    """The ability `DualBlocks` of all ranks together."""
    mine: Any = ability(risk.local.share.risk, DualBlocks)

    def make(l1: float, l2: float, seed: int, shares: int, check: Check = unchecked) -> RemoteAscentRows:
        return RemoteAscentRows(risk, l1, l2, seed)

    return RowAscents(risk.rows, risk.dim, mine.mass, risk.infimum, mine.scores_per_row, make, mine.grouped)


class RemoteAscentRows:
    """As of `AscentRows`; the ranks set up their rows in `begin`."""

    def __init__(self, risk: Client, l1: float, l2: float, seed: int) -> None:
        self._risk, self._slot, self._options = risk, risk.slot(), (l1, l2, seed)
        self._seconds = math.inf
        """Of the last sweep."""

    def begin(self, start: RemoteScores | None, near: RemoteScores | None, intercept: bool = False) -> None:
        """As of `AscentRows`."""
        numbers = [0 if scores is None else self._risk.number(scores) for scores in (start, near)]
        self._ask(Operation.DUAL_BEGIN, *self._options, *numbers, float(intercept))

    def sweep(self, v: Vector, constant: Vector, penalty: float, check: Check = unchecked) -> tuple[Vector, Visits]:
        """As of `AscentRows`; the moves of all ranks from `v`, added up. Where it is broken off, it is on all of them.

        Ranks that have rows for a moment only finish what they have begun.
        """
        check()
        local, begin = self._risk.local, time.perf_counter()
        local.check, local.reason = check, None
        answer = self._ask(Operation.DUAL_SWEEP, penalty, float(self._seconds > LONG), *constant, sent=v)
        self._seconds = time.perf_counter() - begin
        move, total, (gap, visited, left) = answer[: v.size], answer[v.size : -3], answer[-3:]
        v += move
        reason, local.reason = local.reason, None
        if reason is not None:
            raise reason
        return v, Visits(total, float(gap), float(visited), float(left))

    def unshrink(self) -> None:
        """As of `AscentRows`."""
        self._ask(Operation.DUAL_UNSHRINK)

    def totals(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return cast("Vector", self._ask(Operation.DUAL_TOTALS, share, *shift))

    def settle(self, shift: Vector, share: float = 1.0) -> Vector:
        """As of `AscentRows`."""
        return cast("Vector", self._ask(Operation.DUAL_SETTLE, share, *shift))

    def offset(self) -> float:
        """As of `AscentRows`."""
        return float(self._ask(Operation.DUAL_SUMS)[0])

    def squares(self) -> tuple[float, float]:
        """As of `AscentRows`."""
        _, squares, rows = self._ask(Operation.DUAL_SUMS)
        return float(squares), float(rows)

    def slope(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._kept(scores=False)

    def scores(self) -> RemoteScores:
        """As of `AscentRows`."""
        return self._kept(scores=True)

    def _kept(self, *, scores: bool) -> RemoteScores:
        kept, number = self._risk.new()
        self._ask(Operation.DUAL_SLOPE, number, float(scores))
        return kept

    def _ask(self, operation: Operation, *arguments: float, sent: Vector | None = None) -> Any:
        return self._risk.ask(operation, self._slot.number, *arguments, sent=sent)
