"""The multiplexer of the KDD 2007 paper (section 4): one risk whose rows lie on many ranks.

Rank 0 runs the solver, and so takes every decision; the other ranks answer its requests. A request is one short
message (combinations of scores to form, what to forget, what to do), then the weights if they are needed, then a
reduction. Scores never travel: rank 0 holds names for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.communicator import MpiGroup
from bmrm.mpi.local import LocalRisk, Share
from bmrm.mpi.remote_dual import remote_steps
from bmrm.mpi.remote_phi import GatheredPhi, RemoteMap, RemotePhi, RemoteRowScores
from bmrm.mpi.remote_rounding import GatheredRounding, RemoteRounding
from bmrm.mpi.remote_rows import RemoteRows, RemoteVariants
from bmrm.mpi.remote_scores import RemoteScores, Slot
from bmrm.mpi.requests import Operation, Request, Terms, receive, send
from bmrm.problem import (
    Blocks,
    DualBlocks,
    Fingerprint,
    ModifiedLoss,
    ProblemSize,
    Risk,
    Rounding,
    RowScores,
    RowSubsets,
    Scored,
    ScoreFunction,
    Traffic,
    Vector,
)
from bmrm.risk.score_function import LossPhi

T = TypeVar("T")


class MultiplexedRisk:
    """R(w) = sum over ranks of each rank's term.

    Collective to construct. On rank 0 it is a `Risk` that offers what the risks of all ranks offer: `Scored`,
    `RowSubsets` (rows in rank order), `Blocks` (block k is the union of the ranks' blocks k), and `Traffic`. The
    other ranks call `serve`, which returns when rank 0 calls `end`; see `bmrm.mpi.lead`.

    Parameters
    ----------
    share : this rank's term of the risk, a `Risk` already divided by the total mass of all ranks; or a `Share`
        without a risk, for whole-sample losses.
    group : the ranks.
    whole : for whole-sample losses, on rank 0: the score function of all rows in rank order.
    """

    def __init__(self, share: Risk | Share, group: MpiGroup, *, whole: ScoreFunction | None = None) -> None:
        share = share if isinstance(share, Share) else Share.of(share)
        self.group = group
        self.dim = share.dim
        self.infimum = float(group.sum(np.array([share.infimum]))[0])
        self.local = LocalRisk(share, group)
        self.rows = self.local.number_rows()
        self._extent = self._measured(share.extent)
        self._whole = whole
        offers = group.gather(sorted(share.abilities))
        self._abilities = set.intersection(*map(set, offers)) if offers is not None else set()
        self._slots = 0
        self._forget: list[int] = []
        self._define: dict[int, Terms] = {}
        self._kept: list[dict[Slot, float]] = []
        self.broken = False
        """Rank 0 failed in the middle of a request: the others cannot be spoken to any more."""

    def _measured(self, extent: ProblemSize | None) -> ProblemSize | None:
        """Of all ranks; None where one does not know."""
        mine = ProblemSize(0, 0, 0.0) if extent is None else extent
        numbers = [
            float(extent is not None),
            mine.rows,
            mine.entries,
            mine.rows * mine.square,
            mine.rows * mine.overlap,
        ]
        known, rows, entries, squares, overlaps = self.group.sum(np.array(numbers))
        if known < self.group.size:
            return None
        each = max(rows, 1.0)
        return ProblemSize(int(rows), int(entries), squares / each, overlaps / each, self.group.size, mine.threads)

    # -- rank 0 ----------------------------------------------------------------------------------

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of `Risk`."""
        if self._whole is not None:
            scored = self._scored()
            value, slope = scored.phi.value_and_slope(scored.map.matvec(w))
            return value, scored.map.rmatvec(slope)
        packed = self.ask(Operation.EVALUATE, sent=w)
        return float(packed[0]), packed[1:]

    def ability(self, kind: type[T]) -> T | None:
        """As of `Risk`."""
        if kind is Traffic:
            return cast(T, _NetworkClock(self.group))
        if kind is ProblemSize:
            return cast("T | None", self._extent)
        if kind.__name__ not in self._abilities:
            return None
        offers: dict[type, Callable[[], Any]] = {
            Scored: self._scored,
            RowSubsets: lambda: RemoteRows(self),
            RowScores: lambda: RemoteRowScores(self),
            Blocks: lambda: _Blocks(self),
            DualBlocks: lambda: remote_steps(self),
            ModifiedLoss: lambda: RemoteVariants(self, lambda slot: RemotePhi(self, slot)),
            Fingerprint: lambda: _Fingerprints(self),
            Rounding: self._rounding,
        }
        return cast(T, offers[kind]())

    def _scored(self) -> Scored:
        phi: ScoreFunction = RemotePhi(self) if self._whole is None else GatheredPhi(self, self._whole)
        return Scored(RemoteMap(self), phi)

    def _rounding(self) -> Rounding:
        return RemoteRounding(self) if self._whole is None else GatheredRounding(self, cast(LossPhi, self._whole))

    def slot(self) -> Slot:
        """A fresh number."""
        self._slots += 1
        return Slot(self._slots, self._forget.append)

    def new(self) -> tuple[RemoteScores, int]:
        """Scores that the ranks are about to compute, and their number."""
        slot = self.slot()
        return RemoteScores({slot: 1.0}), slot.number

    def number(self, scores: RemoteScores) -> int:
        """The number of `scores`; a combination is formed by the ranks at the start of the next request."""
        slot = scores.single()
        if slot is None:
            fresh, number = self.new()
            self._define[number] = tuple((term.number, factor) for term, factor in scores.terms.items())
            # what is combined must not be forgotten before
            self._kept.append(scores.terms)
            scores.terms = fresh.terms
            return number
        return slot.number

    def ask(self, operation: Operation, *arguments: float, sent: NDArray[Any] | None = None) -> Any:
        """Ask all ranks, this one too; returns the sum of the answers."""
        define, self._define = self._define, {}
        forget = tuple(self._forget)
        del self._forget[: len(forget)]
        request = Request(operation, arguments, define, forget)
        send(self.group, request)
        self.broken = True
        answer = self.local.answer(request, sent)
        self.broken = False
        self._kept.clear()
        return answer

    def end(self, well: bool) -> None:
        """Let the other ranks leave `serve`."""
        send(self.group, Request(Operation.END, (float(well),)))

    # -- the other ranks -------------------------------------------------------------------------

    def serve(self) -> bool:
        """Answer requests until rank 0 ends; True if it ended well."""
        while True:
            request = receive(self.group)
            if request.operation is Operation.END:
                return bool(request.arguments[0])
            self.local.answer(request)


@dataclass(frozen=True)
class _NetworkClock:
    group: MpiGroup

    def seconds(self) -> float:
        return self.group.waited


@dataclass(frozen=True)
class _Blocks:
    risk: MultiplexedRisk

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        packed = self.risk.ask(Operation.BLOCKS, blocks, sent=w)
        return packed[:blocks], packed[blocks:].reshape(blocks, -1)

    def infima(self, blocks: int) -> Vector:
        return cast(Vector, self.risk.ask(Operation.INFIMA, blocks))


@dataclass(frozen=True)
class _Fingerprints:
    risk: MultiplexedRisk

    def fingerprint(self) -> str:
        codes = self.risk.ask(Operation.FINGERPRINT)
        return hashlib.sha256(codes.tobytes()).hexdigest()
