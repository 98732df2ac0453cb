"""What every rank, rank 0 too, does with its own rows to answer a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.mpi import local_dual, local_rounding, local_rows, local_second
from bmrm.mpi.communicator import MpiGroup
from bmrm.mpi.requests import Operation, Request
from bmrm.problem import (
    Blocks,
    Check,
    DualBlocks,
    Fingerprint,
    LinearMap,
    ModifiedLoss,
    ProblemSize,
    Risk,
    Rounding,
    RowScores,
    RowSubsets,
    Scored,
    ScoreFunction,
    Vector,
    ability,
    unchecked,
)

LONG = 1 << 17
"""A gradient with more numbers than this is reduced in parts, the first while later ones are still computed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Share:
    """A rank's share of the data: its term of R(w), or for whole-sample losses only its products with the data."""

    dim: int
    infimum: float
    rows: int
    risk: Risk | None
    map: LinearMap | None
    phi: ScoreFunction | None
    identity: Fingerprint | None = None
    extent: ProblemSize | None = None

    @classmethod
    def of(cls, risk: Risk) -> Share:
        """The share that a risk is; values and subgradients are added up over ranks as they are."""
        scored = ability(risk, Scored)
        subsets = ability(risk, RowSubsets)
        rows = subsets.rows if subsets is not None else 0
        map, phi = (scored.map, scored.phi) if scored is not None else (None, None)
        return cls(risk.dim, risk.infimum, rows, risk, map, phi, ability(risk, Fingerprint), ability(risk, ProblemSize))

    @property
    def abilities(self) -> set[str]:
        """Names of the kinds that every rank must have for the whole to have them."""
        kinds: tuple[type, ...] = (
            Scored,
            RowScores,
            RowSubsets,
            Blocks,
            ModifiedLoss,
            Fingerprint,
            DualBlocks,
            Rounding,
        )
        if self.risk is None:
            return {Scored.__name__, Fingerprint.__name__, Rounding.__name__}
        return {kind.__name__ for kind in kinds if ability(self.risk, kind) is not None}


class LocalRisk:
    """A share, the scores and other objects kept for rank 0 by number, and the operations on them.

    Operations that rank 0 waits for end in a reduction and return the total there, their own part elsewhere.
    """

    def __init__(self, share: Share, group: MpiGroup) -> None:
        self.share = share
        self.group = group
        self.store: dict[int, Floats] = {}
        self.objects: dict[int, Any] = {}
        """Watches and other score functions."""
        self.check: Check = unchecked
        """On rank 0: what a sweep asks now and then whether it is to be broken off."""
        self.reason: BaseException | None = None
        """What the check has raised in the last sweep."""
        self._line: tuple[tuple[float, ...], Callable[[Vector], tuple[Vector, Vector]]] | None = None

    def answer(self, request: Request, sent: NDArray[Any] | None = None) -> Floats | None:
        """Carry out a request; `sent` is, on rank 0, the array that goes with it."""
        for number, terms in request.define.items():
            self.store[number] = self._combine(terms)
        for number in request.forget:
            self.store.pop(number, None)
            self.objects.pop(number, None)
            if self._line is not None and number in self._line[0]:
                self._line = None
        return _ACTS[request.operation](self, request.arguments, sent)

    def _combine(self, terms: tuple[tuple[int, float], ...]) -> Floats:
        (first, factor), *rest = terms
        total: Floats = factor * self.store[first]
        for number, weight in rest:
            total += weight * self.store[number]
        return total

    def weights(self, sent: NDArray[Any] | None) -> Vector:
        """The weights of rank 0, on every rank."""
        w = np.empty(self.share.dim) if sent is None else np.ascontiguousarray(sent, dtype=np.float64)
        if not w.flags.writeable:
            w = w.copy()
        self.group.send_out(w)
        return w

    # -- the operations --------------------------------------------------------------------------

    def _evaluate(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        w, share = self.weights(sent), self.share
        assert share.risk is not None
        if share.phi is not None and share.map is not None and self._streams:
            value, slope = share.phi.value_and_slope(share.map.matvec(w))
            return np.concatenate((self.group.add_up(np.array([value])), self._stream(slope)))
        value, gradient = share.risk.value_and_subgradient(w)
        return self.group.add_up(np.concatenate(([value], gradient)))

    def _scores(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> None:
        w = self.weights(sent)
        assert self.share.map is not None
        self.store[int(arguments[0])] = self.share.map.matvec(w)

    def _rmatvec(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        slope = self.store[int(arguments[0])]
        if self._streams:
            return self._stream(slope)
        assert self.share.map is not None
        return self.group.add_up(self.share.map.rmatvec(slope))

    def _value_and_slope(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        value, slope = self.phi(arguments[2]).value_and_slope(self.store[int(arguments[0])])
        self.store[int(arguments[1])] = slope
        return self.group.add_up(np.array([value]))

    def _along(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        f, step, variant = map(int, arguments[:3])
        return self.on_line((f, step, variant), self.phi(variant).along, arguments[3:])

    def on_line(
        self, key: tuple[float, ...], curve_of: Callable[..., Callable[..., Any]], ts: tuple[float, ...], *more: float
    ) -> Floats:
        """Values and derivatives at `ts` of the curve of two scores, `key[:2]`; the last curve is kept."""
        if self._line is None or self._line[0] != key:
            self._line = (key, curve_of(self.store[int(key[0])], self.store[int(key[1])], *more))
        return self.group.add_up(np.concatenate(self._line[1](np.array(ts))))

    def _curvature(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> None:
        f, step, new, variant = map(int, arguments)
        self.store[new] = self.phi(variant).hessian_product(self.store[f], self.store[step])

    def _diagonal(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        assert self.share.map is not None
        return self.group.add_up(self.share.map.diagonal(self.store[int(arguments[0])]))

    def phi(self, variant: float) -> ScoreFunction:
        """The score function of this number, 0 for that of the risk."""
        if variant:
            kept: ScoreFunction = self.objects[int(variant)]
            return kept
        assert self.share.phi is not None
        return self.share.phi

    def _constant(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> None:
        assert self.share.phi is not None
        self.store[int(arguments[0])] = self.share.phi.constant(np.array(arguments[1:]))

    def _total(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        assert self.share.phi is not None
        phi, number = self.share.phi, int(arguments[0])
        sums = phi.magnitude(self.store[number]) if arguments[1] else phi.total(self.store[number])
        return self.group.add_up(np.atleast_1d(sums))

    def _product(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        one, other = (self.store[int(number)] for number in arguments)
        return self.group.add_up(np.array([dot(one, other)]))

    def _rows(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        """The chosen rows' part of R(w) and its subgradient; `sent` is the weights, then the rows."""
        count, dim = int(arguments[0]), self.share.dim
        message = np.empty(dim + count) if sent is None else sent
        self.group.send_out(message)
        w, rows = message[:dim], message[dim:].astype(np.int64)
        mine = self.own(rows)
        assert self.share.risk is not None
        subsets = ability(self.share.risk, RowSubsets)
        assert subsets is not None
        part = np.zeros(1 + dim)
        if mine.size:
            part[0], part[1:] = subsets.value_and_subgradient_of(mine, w)
            part *= mine.size / subsets.rows
        return self.group.add_up(part)

    rows_before = 0
    """Rows of the ranks before this one."""

    def own(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """This rank's among these rows, numbered from its first."""
        return rows[(rows >= self.rows_before) & (rows < self.rows_before + self.share.rows)] - self.rows_before

    def number_rows(self) -> int:
        """Collective: learn where this rank's rows stand among all; returns the number of all rows."""
        counts = self.group.broadcast(self.group.gather(self.share.rows))
        self.rows_before = sum(counts[: self.group.rank])
        return int(sum(counts))

    def _blocks(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        w = self.weights(sent)
        values, gradients = self._offered_blocks().values_and_subgradients(w, int(arguments[0]))
        return self.group.add_up(np.concatenate((values, gradients.reshape(-1))))

    def _infima(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats:
        return self.group.add_up(np.array(self._offered_blocks().infima(int(arguments[0]))))

    def _offered_blocks(self) -> Blocks:
        assert self.share.risk is not None
        offered = ability(self.share.risk, Blocks)
        assert offered is not None
        return offered

    def _collect(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats | None:
        return self.group.gather_array(self.store[int(arguments[0])])

    def _hand_out(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> None:
        phi = self.share.phi
        rows = self.share.rows if phi is None else phi.constant(np.zeros(phi.facts.scores_per_row)).shape[0]
        self.store[int(arguments[0])] = self.group.hand_out(sent, rows)

    def _fingerprint(self, arguments: tuple[float, ...], sent: NDArray[Any] | None) -> Floats | None:
        """The characters of the ranks' fingerprints, joined."""
        assert self.share.identity is not None
        text = self.share.identity.fingerprint().encode()
        return self.group.gather_array(np.frombuffer(text, dtype=np.uint8).astype(np.float64))

    # -- overlap ---------------------------------------------------------------------------------

    @property
    def _streams(self) -> bool:
        return self.share.dim > LONG and hasattr(self.share.map, "rmatvec_parts")

    def _stream(self, slope: Floats) -> Floats:
        """A' slope, reduced part by part while later parts are computed."""
        dim, group = self.share.dim, self.group
        part = np.empty(dim)
        total = np.empty(dim) if group.rank == 0 else None
        requests: list[Any] = []
        rmatvec_parts: Any = self.share.map.rmatvec_parts  # type: ignore[union-attr]
        for piece, numbers in rmatvec_parts(slope, -(-dim // LONG)):
            part[piece] = numbers
            requests += group.start_adding(part[piece], None if total is None else total[piece])
            for request in requests:
                request.Test()
        group.wait(*requests)
        return part if total is None else total


_ACTS: dict[Operation, Callable[[LocalRisk, tuple[float, ...], NDArray[Any] | None], Floats | None]] = {
    Operation.EVALUATE: LocalRisk._evaluate,
    Operation.SCORES: LocalRisk._scores,
    Operation.RMATVEC: LocalRisk._rmatvec,
    Operation.VALUE_AND_SLOPE: LocalRisk._value_and_slope,
    Operation.ALONG: LocalRisk._along,
    Operation.CURVATURE: LocalRisk._curvature,
    Operation.CONSTANT: LocalRisk._constant,
    Operation.TOTAL: LocalRisk._total,
    Operation.PRODUCT: LocalRisk._product,
    Operation.ROWS: LocalRisk._rows,
    Operation.BLOCKS: LocalRisk._blocks,
    Operation.INFIMA: LocalRisk._infima,
    Operation.COLLECT: LocalRisk._collect,
    Operation.HAND_OUT: LocalRisk._hand_out,
    Operation.FINGERPRINT: LocalRisk._fingerprint,
    Operation.DIAGONAL: LocalRisk._diagonal,
    Operation.GRAM: local_second.gram,
    Operation.GRAM_BLOCKS: local_second.gram_blocks,
    Operation.ACTIVE: local_second.active,
    Operation.SECOND: local_second.curvature,
    Operation.ENVELOPE: local_second.envelope,
    Operation.ENVELOPE_ALONG: local_second.envelope_along,
    Operation.DUAL_BEGIN: local_dual.begin,
    Operation.DUAL_SWEEP: local_dual.sweep,
    Operation.DUAL_UNSHRINK: local_dual.unshrink,
    Operation.DUAL_TOTALS: local_dual.totals,
    Operation.DUAL_SETTLE: local_dual.settle,
    Operation.DUAL_SUMS: local_dual.sums,
    Operation.DUAL_SLOPE: local_dual.slope,
    Operation.ACTIVE_SET: local_rows.active_set,
    Operation.STEP: local_rows.step,
    Operation.REST: local_rows.rest,
    Operation.OUTCOMES: local_rows.outcomes,
    Operation.MASS: local_rows.mass,
    Operation.VARIANT: local_rows.variant,
    Operation.ROUNDING: local_rounding.rounding,
    Operation.ABSOLUTE_SCORES: local_rounding.scores,
    Operation.ABSOLUTE_RMATVEC: local_rounding.rmatvec,
}
