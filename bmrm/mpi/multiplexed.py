"""The multiplexer of the KDD 2007 paper (section 4): one risk whose rows lie on many ranks.

Rank 0 runs the solver, and so takes every decision; the other ranks answer its questions. A question is one short
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
from bmrm.mpi.questions import Operation, Question, Terms, receive, send
from bmrm.mpi.remote_dual import remote_steps
from bmrm.mpi.remote_rows import RemoteRows, RemoteVariants
from bmrm.mpi.remote_scores import RemoteScores, Slot
from bmrm.problem import (
    Blocks,
    DualSteps,
    Envelope,
    Extent,
    Identity,
    Risk,
    RowSubsets,
    Scored,
    ScoreFunction,
    Traffic,
    Variants,
    Vector,
)

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
        """Rank 0 failed in the middle of a question: the others cannot be spoken to any more."""

    def _measured(self, extent: Extent | None) -> Extent | None:
        """Of all ranks; None where one does not know."""
        mine = Extent(0, 0, 0.0) if extent is None else extent
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
        return Extent(int(rows), int(entries), squares / each, overlaps / each, self.group.size, mine.threads)

    # -- rank 0 ----------------------------------------------------------------------------------

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of `Risk`."""
        if self._whole is not None:
            scored = self._scored()
            value, slope = scored.phi.value_and_slope(scored.map.scores(w))
            return value, scored.map.pull_back(slope)
        packed = self.ask(Operation.EVALUATE, sent=w)
        return float(packed[0]), packed[1:]

    def ability(self, kind: type[T]) -> T | None:
        """As of `Risk`."""
        if kind is Traffic:
            return cast(T, _NetworkClock(self.group))
        if kind is Extent:
            return cast("T | None", self._extent)
        if kind.__name__ not in self._abilities:
            return None
        offers: dict[type, Callable[[], Any]] = {
            Scored: self._scored,
            RowSubsets: lambda: RemoteRows(self),
            Blocks: lambda: _Blocks(self),
            DualSteps: lambda: remote_steps(self),
            Variants: lambda: RemoteVariants(self, lambda slot: _Phi(self, slot)),
            Identity: lambda: _Fingerprints(self),
        }
        return cast(T, offers[kind]())

    def _scored(self) -> Scored:
        phi: ScoreFunction = _Phi(self) if self._whole is None else _GatheredPhi(self, self._whole)
        return Scored(_Map(self), phi)

    def slot(self) -> Slot:
        """A fresh number."""
        self._slots += 1
        return Slot(self._slots, self._forget.append)

    def new(self) -> tuple[RemoteScores, int]:
        """Scores that the ranks are about to compute, and their number."""
        slot = self.slot()
        return RemoteScores({slot: 1.0}), slot.number

    def number(self, scores: RemoteScores) -> int:
        """The number of `scores`; a combination is formed by the ranks at the start of the next question."""
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
        question = Question(operation, arguments, define, forget)
        send(self.group, question)
        self.broken = True
        answer = self.local.answer(question, sent)
        self.broken = False
        self._kept.clear()
        return answer

    def end(self, well: bool) -> None:
        """Let the other ranks leave `serve`."""
        send(self.group, Question(Operation.END, (float(well),)))

    # -- the other ranks -------------------------------------------------------------------------

    def serve(self) -> bool:
        """Answer questions until rank 0 ends; True if it ended well."""
        while True:
            question = receive(self.group)
            if question.operation is Operation.END:
                return bool(question.arguments[0])
            self.local.answer(question)


@dataclass(frozen=True)
class _NetworkClock:
    group: MpiGroup

    def seconds(self) -> float:
        return self.group.waited


@dataclass(frozen=True)
class _Map:
    risk: MultiplexedRisk

    def scores(self, w: Vector) -> RemoteScores:
        scores, number = self.risk.new()
        self.risk.ask(Operation.SCORES, number, sent=w)
        return scores

    def pull_back(self, slope: RemoteScores) -> Vector:
        return cast(Vector, self.risk.ask(Operation.PULL_BACK, self.risk.number(slope)))

    def diagonal(self, weights: RemoteScores) -> Vector:
        return cast(Vector, self.risk.ask(Operation.DIAGONAL, self.risk.number(weights)))

    def gram(self, weights: RemoteScores, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        count, sent = (-1, None) if columns is None else (len(columns), np.asarray(columns, np.float64))
        flat: Vector = self.risk.ask(Operation.GRAM, self.risk.number(weights), count, sent=sent)
        size = self.risk.dim if columns is None else len(columns)
        return flat.reshape(size, size)

    def gram_blocks(self, weights: RemoteScores, least: float = 0.0) -> NDArray[np.float64]:
        K = self.risk.local.phi(0).scores_per_row
        flat: Vector = self.risk.ask(Operation.GRAM_BLOCKS, self.risk.number(weights), least)
        return flat.reshape(K, self.risk.dim // K, -1)

    def active(self, weights: RemoteScores) -> int:
        return int(self.risk.ask(Operation.ACTIVE, self.risk.number(weights))[0])


@dataclass(frozen=True)
class _Phi:
    """The sum of the ranks' score functions, their own or those kept under `slot`."""

    risk: MultiplexedRisk
    slot: Slot | None = None

    @property
    def _variant(self) -> int:
        return 0 if self.slot is None else self.slot.number

    @property
    def _local(self) -> ScoreFunction:
        return self.risk.local.phi(self._variant)

    @property
    def smooth(self) -> bool:
        return self._local.smooth

    @property
    def one_maximum(self) -> bool:
        return False  # but a sum

    @property
    def curved(self) -> bool:
        return self._local.curved

    @property
    def diagonal(self) -> bool:
        return self._local.diagonal

    @property
    def separable(self) -> bool:
        return self._local.separable

    @property
    def shift_free(self) -> bool:
        return self._local.shift_free

    @property
    def proximal(self) -> bool:
        return self.slot is None and self._local.proximal

    @property
    def mass(self) -> float:
        return self._local.mass

    @property
    def scores_per_row(self) -> int:
        return self._local.scores_per_row

    def value_and_slope(self, f: RemoteScores) -> tuple[float, RemoteScores]:
        slope, number = self.risk.new()
        value = self.risk.ask(Operation.VALUE_AND_SLOPE, self.risk.number(f), number, self._variant)
        return float(value[0]), slope

    def along(self, f: RemoteScores, step: RemoteScores) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self._curve(Operation.ALONG, f, step, self._variant)

    def _curve(
        self, operation: Operation, f: RemoteScores, step: RemoteScores, argument: float
    ) -> Callable[[Vector], tuple[Vector, Vector]]:
        # copies, so that both stay known to the ranks as long as the function lives
        f, step = RemoteScores(dict(f.terms)), RemoteScores(dict(step.terms))

        def evaluate(t: Vector) -> tuple[Vector, Vector]:
            packed = self.risk.ask(operation, self.risk.number(f), self.risk.number(step), argument, *t)
            return packed[: len(t)], packed[len(t) :]

        return evaluate

    def curvature_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        product, number = self.risk.new()
        self.risk.ask(Operation.CURVATURE, self.risk.number(f), self.risk.number(step), number, self._variant)
        return product

    def curvature(self, f: RemoteScores) -> RemoteScores:
        curvature, number = self.risk.new()
        self.risk.ask(Operation.SECOND, self.risk.number(f), number, self._variant)
        return curvature

    def envelope(self, z: RemoteScores, sigma: float) -> Envelope:
        (slope, first), (curvature, second) = self.risk.new(), self.risk.new()
        value, conjugate = self.risk.ask(Operation.ENVELOPE, self.risk.number(z), sigma, first, second)
        return Envelope(float(value), slope, curvature, float(conjugate))

    def envelope_along(
        self, z: RemoteScores, step: RemoteScores, sigma: float
    ) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self._curve(Operation.ENVELOPE_ALONG, z, step, sigma)

    def constant(self, b: Vector) -> RemoteScores:
        scores, number = self.risk.new()
        self.risk.ask(Operation.CONSTANT, number, *np.atleast_1d(b))
        return scores

    def total(self, scores: RemoteScores) -> Vector:
        return cast(Vector, self.risk.ask(Operation.TOTAL, self.risk.number(scores)))


@dataclass(frozen=True)
class _GatheredPhi:
    """A score function of all rows at once, on rank 0: scores come in, slopes go out, the data stays."""

    risk: MultiplexedRisk
    whole: ScoreFunction

    @property
    def smooth(self) -> bool:
        return self.whole.smooth

    @property
    def one_maximum(self) -> bool:
        return self.whole.one_maximum

    @property
    def curved(self) -> bool:
        return self.whole.curved

    @property
    def diagonal(self) -> bool:
        return self.whole.diagonal

    @property
    def separable(self) -> bool:
        return self.whole.separable

    @property
    def shift_free(self) -> bool:
        return self.whole.shift_free

    @property
    def proximal(self) -> bool:
        return False  # whole-sample losses are no sums over rows

    @property
    def mass(self) -> float:
        return self.whole.mass

    @property
    def scores_per_row(self) -> int:
        return self.whole.scores_per_row

    def _collect(self, scores: RemoteScores) -> NDArray[np.float64]:
        return cast("NDArray[np.float64]", self.risk.ask(Operation.COLLECT, self.risk.number(scores)))

    def _hand_out(self, whole: NDArray[np.float64]) -> RemoteScores:
        scores, number = self.risk.new()
        self.risk.ask(Operation.HAND_OUT, number, sent=whole)
        return scores

    def value_and_slope(self, f: RemoteScores) -> tuple[float, RemoteScores]:
        value, slope = self.whole.value_and_slope(self._collect(f))
        return value, self._hand_out(slope)

    def along(self, f: RemoteScores, step: RemoteScores) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self.whole.along(self._collect(f), self._collect(step))

    def curvature_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        return self._hand_out(self.whole.curvature_product(self._collect(f), self._collect(step)))

    def curvature(self, f: RemoteScores) -> RemoteScores:
        return self._hand_out(self.whole.curvature(self._collect(f)))

    def envelope(self, z: RemoteScores, sigma: float) -> Envelope:
        return self.whole.envelope(self._collect(z), sigma)  # raises: see `proximal`

    def envelope_along(
        self, z: RemoteScores, step: RemoteScores, sigma: float
    ) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self.whole.envelope_along(self._collect(z), self._collect(step), sigma)  # raises, too

    def constant(self, b: Vector) -> RemoteScores:
        return self._hand_out(self.whole.constant(b))

    def total(self, scores: RemoteScores) -> Vector:
        return self.whole.total(self._collect(scores))

    def learned(self, scores: Callable[[], RemoteScores]) -> dict[str, NDArray[np.float64]]:
        whole: Any = self.whole
        found: dict[str, NDArray[np.float64]] = whole.learned(lambda: self._collect(scores()))
        return found


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
