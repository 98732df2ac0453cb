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
from bmrm.mpi.dual import remote_ascents
from bmrm.mpi.gathered import MOST, RiskOf, brought
from bmrm.mpi.guard import Guarding
from bmrm.mpi.guarded import GuardedObjects
from bmrm.mpi.kinds import KINDS
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.rounding import gathered_rounding, remote_rounding
from bmrm.mpi.row_subsets import RemoteModified, RemoteRows
from bmrm.mpi.samples import row_sample
from bmrm.mpi.scored import GatheredPhi, RemoteMap, RemotePhi, pieces_of
from bmrm.mpi.share import Rank, Share
from bmrm.problem import Regularizer, Risk, Scored, ScoreFunction, Space, Vector, bound
from bmrm.problem.abilities import (
    Blocks,
    DualBlocks,
    Fingerprint,
    Gathered,
    ModifiedLoss,
    ProblemSize,
    Rounding,
    RowSample,
    RowSubsets,
    Traffic,
)
from bmrm.risk.score_function import LossPhi

T = TypeVar("T")
SUM, STREAM, GATHER = Answer.SUM, Answer.STREAM, Answer.GATHER


class MultiplexedRisk:
    """R(w) = sum over ranks of each rank's term.

    Collective to construct. On rank 0 it is a `Risk` that offers what the risks of all ranks offer: `Scored`,
    `RowSubsets` (rows in rank order), `Blocks` (block k is the union of the ranks' blocks k), and `Traffic`. The
    other ranks call `ranks.serve`, which returns when rank 0 calls `ranks.end`; see `bmrm.mpi.leading.lead`.

    Parameters
    ----------
    share : this rank's term of the risk, a `Risk` already divided by the total mass of all ranks; or a `Share`
        without a risk, for whole-sample losses.
    group : the ranks.
    whole : for whole-sample losses, on rank 0: the score function of all rows in rank order.
    risk_of : the same risk of given rows, for shares whose rows may go to rank 0 (`Share.data`).
    guarding : what ranks hold back of their rows, which are then a `LinearRisk`; None for nothing.
    """

    def __init__(
        self,
        share: Risk | Share,
        group: MpiGroup,
        *,
        whole: ScoreFunction | None = None,
        risk_of: RiskOf | None = None,
        guarding: Guarding | None = None,
    ) -> None:
        share = share if isinstance(share, Share) else Share.of(share)
        self.group = group
        self.dim = share.dim
        self.infimum = float(group.sum(np.array([share.infimum]))[0])
        self.ranks = Ranks(Rank.of(share, group), KINDS, guarding)
        self.rows = self.ranks.rank.rows
        self._problem_size = _measured(share.problem_size, group)
        self._whole, self._risk_of = whole, risk_of
        offers = group.gather(sorted(share.abilities(OF_ALL)))
        self._abilities = set.intersection(*map(set, offers)) if offers is not None else set()
        if guarding is not None:
            self._abilities &= ANSWERED
            self._begin(bound(guarding.regularizer, self), share.infimum)

    def _begin(self, omega: Regularizer, mine: float) -> None:
        """Collective: have the guards know J at weights of 0."""
        watch = cast(GuardedObjects, self.ranks.local).watch
        zero = float(self.group.sum(np.array([watch.zero()]))[0]) + omega.value(np.zeros(self.dim))
        watch.begin(omega, zero - (self.infimum - mine))

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of `Risk`."""
        if self._whole is not None:
            scored = self._scored()
            value, slope = scored.phi.value_and_slope(scored.map.matvec(w))
            return value, scored.map.rmatvec(slope)
        pieces = pieces_of(self.ranks)
        if pieces:
            value, gradient = self.ranks.ask("parts", "value_and_subgradient", w, pieces, answer=(SUM, STREAM))
        else:
            value, gradient = self.ranks.ask("risk", "value_and_subgradient", w, answer=(SUM, SUM))
        return value, gradient

    @property
    def of_all_rows(self) -> ScoreFunction | None:
        """For whole-sample losses, on rank 0: phi of all rows in rank order."""
        return self._whole

    def ability(self, kind: type[T]) -> T | None:
        """As of `Risk`."""
        offer = OF_ALL.get(kind) if kind.__name__ in self._abilities else HERE.get(kind)
        return None if offer is None else cast("T | None", offer(self))

    @property
    def _all_rows(self) -> int:
        """Also those of a risk without subsets of rows."""
        return self.rows if self._problem_size is None else self._problem_size.rows

    def row_sample(self) -> RowSample | None:
        """Of rows that stay where they are."""
        if self.ranks.share.sampled is None or RowSubsets.__name__ not in self._abilities:
            return None
        return row_sample(self.ranks)

    def gathered(self) -> Gathered | None:
        """Where memory has room for all rows besides."""
        size, risk_of = self._problem_size, self._risk_of
        if risk_of is None or size is None or size.entries > MOST:
            return None
        return Gathered(lambda: brought(self.ranks, risk_of))

    def _scored(self) -> Scored:
        phi: ScoreFunction = RemotePhi(self.ranks) if self._whole is None else GatheredPhi(self.ranks, self._whole)
        return Scored(RemoteMap(self.ranks), phi)

    def _fingerprint(self) -> str:
        joined = "".join(self.ranks.ask("identity", "fingerprint", answer=GATHER))
        codes = np.frombuffer(joined.encode(), np.uint8).astype(np.float64)  # as planes kept by older versions have it
        return hashlib.sha256(codes.tobytes()).hexdigest()

    def _rounding(self) -> Rounding:
        whole = self._whole
        return remote_rounding(self.ranks) if whole is None else gathered_rounding(self.ranks, cast(LossPhi, whole))


def _measured(size: ProblemSize | None, group: MpiGroup) -> ProblemSize | None:
    """Of all ranks; None where one does not know."""
    mine = ProblemSize(0, 0, lambda: (0.0, 0.0)) if size is None else size
    known = float(size is not None)
    streamed = float(not mine.resident)
    numbers = [known, mine.rows, mine.entries, mine.rows * mine.square, mine.rows * mine.overlap, streamed]
    known, rows, entries, squares, overlaps, streamed = group.sum(np.array(numbers))
    if known < group.size:
        return None
    each = max(rows, 1.0)
    means = squares / each, overlaps / each
    return ProblemSize(int(rows), int(entries), lambda: means, group.size, mine.threads, not streamed)


@dataclass(frozen=True)
class _Blocks:
    ranks: Ranks

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        values, subgradients = self.ranks.ask("blocks", "values_and_subgradients", w, blocks, answer=(SUM, SUM))
        return values, subgradients

    def infima(self, blocks: int) -> Vector:
        return self.ranks.array("blocks", "infima", blocks)


OF_ALL: dict[type, Callable[[MultiplexedRisk], Any]] = {
    Scored: lambda risk: risk._scored(),
    RowSubsets: lambda risk: RemoteRows(risk.ranks),
    Blocks: lambda risk: _Blocks(risk.ranks),
    DualBlocks: lambda risk: remote_ascents(risk.ranks, risk._all_rows, risk.infimum),
    ModifiedLoss: lambda risk: RemoteModified(risk.ranks),
    Fingerprint: lambda risk: Fingerprint(risk._fingerprint),
    Rounding: lambda risk: risk._rounding(),
}
"""The abilities that a risk on many ranks has if the risks of all ranks have them."""
ANSWERED = {kind.__name__ for kind in (Scored, Fingerprint, Rounding)}
"""Those of them that guarded ranks answer for."""
HERE: dict[type, Callable[[MultiplexedRisk], Any]] = {
    Traffic: lambda risk: risk.group,
    Space: lambda risk: risk.ranks.rank.share.space,
    ProblemSize: lambda risk: risk._problem_size,
    RowSample: MultiplexedRisk.row_sample,
    Gathered: MultiplexedRisk.gathered,
}
"""Those that rank 0 has by itself."""
