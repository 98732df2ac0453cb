"""The scores of rows that lie on many ranks, and functions of them, as rank 0 has them (`Scored`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.client import Client
from bmrm.mpi.remote_scores import RemoteScores, Slot
from bmrm.mpi.requests import Operation
from bmrm.problem import Check, MoreauEnvelope, ScoreFunction, Vector

PRODUCTS = 4e9
"""Products of two entries of a row in one request."""


@dataclass(frozen=True)
class RemoteMap:
    """As of `LinearMap`: the ranks multiply their rows."""

    risk: Client
    check: Check | None = None

    def interruptible(self, check: Check) -> RemoteMap:
        """The same, which forms large Gram matrices in several requests."""
        return replace(self, check=check)

    def matvec(self, w: Vector) -> RemoteScores:
        scores, number = self.risk.new()
        self.risk.ask(Operation.SCORES, number, sent=w)
        return scores

    def rmatvec(self, slope: RemoteScores) -> Vector:
        return self.risk.ask(Operation.RMATVEC, self.risk.number(slope))

    def diagonal(self, weights: RemoteScores) -> Vector:
        return self.risk.ask(Operation.DIAGONAL, self.risk.number(weights))

    def gram(self, weights: RemoteScores, columns: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        count, sent = (-1, None) if columns is None else (len(columns), np.asarray(columns, np.float64))
        parts, total = self._parts(), self.risk.slot()
        for part in range(parts):
            if self.check is not None:
                self.check()
            numbers = (self.risk.number(weights), count, part, parts, total.number)
            flat: Vector = self.risk.ask(Operation.GRAM, *numbers, sent=sent)
        size = self.risk.dim if columns is None else len(columns)
        return flat.reshape(size, size)

    def _parts(self, matrices: int = 1) -> int:
        """Into how many Gram matrices are to be cut, each of which takes rank 0 less than a second."""
        extent = self.risk.local.share.extent
        if self.check is None or extent is None or not extent.rows:
            return 1
        return max(1, math.ceil(matrices * extent.entries * (extent.entries / extent.rows) / PRODUCTS))

    def gram_blocks(self, weights: RemoteScores, least: float = 0.0) -> NDArray[np.float64]:
        K = self.risk.local.phi(0).facts.scores_per_row
        parts, total = self._parts(K), self.risk.slot()
        for part in range(parts):
            if self.check is not None:
                self.check()
            numbers = (self.risk.number(weights), least, part, parts, total.number)
            flat: Vector = self.risk.ask(Operation.GRAM_BLOCKS, *numbers)
        return flat.reshape(K, self.risk.dim // K, -1)

    def active(self, weights: RemoteScores) -> int:
        return int(self.risk.ask(Operation.ACTIVE, self.risk.number(weights))[0])


class RemotePhi(ScoreFunction):
    """The sum of the ranks' score functions, their own or those kept under `slot`."""

    def __init__(self, risk: Client, slot: Slot | None = None) -> None:
        self.risk, self.slot = risk, slot
        self._variant = 0 if slot is None else slot.number
        own = risk.local.phi(self._variant).facts
        self.facts = replace(own, prox=own.prox and slot is None, structured_max=False)

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

    def hessian_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        product, number = self.risk.new()
        self.risk.ask(Operation.CURVATURE, self.risk.number(f), self.risk.number(step), number, self._variant)
        return product

    def hessian_diagonal(self, f: RemoteScores) -> RemoteScores:
        curvature, number = self.risk.new()
        self.risk.ask(Operation.SECOND, self.risk.number(f), number, self._variant)
        return curvature

    def moreau(self, z: RemoteScores, sigma: float) -> MoreauEnvelope:
        (slope, first), (curvature, second) = self.risk.new(), self.risk.new()
        value, conjugate = self.risk.ask(Operation.ENVELOPE, self.risk.number(z), sigma, first, second)
        return MoreauEnvelope(float(value), slope, curvature, float(conjugate))

    def moreau_along(
        self, z: RemoteScores, step: RemoteScores, sigma: float
    ) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self._curve(Operation.ENVELOPE_ALONG, z, step, sigma)

    def constant(self, b: Vector) -> RemoteScores:
        scores, number = self.risk.new()
        self.risk.ask(Operation.CONSTANT, number, *np.atleast_1d(b))
        return scores

    def total(self, scores: RemoteScores) -> Vector:
        return self.risk.ask(Operation.TOTAL, self.risk.number(scores), 0.0)

    def magnitude(self, scores: RemoteScores) -> Vector:
        return self.risk.ask(Operation.TOTAL, self.risk.number(scores), 1.0)

    def product(self, slope: RemoteScores, f: RemoteScores) -> float:
        return _product(self.risk, slope, f)


@dataclass(frozen=True)
class RemoteRowScores:
    """As of `RowScores`, for rank 0."""

    risk: Client

    def collect(self, scores: RemoteScores) -> NDArray[np.float64]:
        """The scores of all rows."""
        return self.risk.ask(Operation.COLLECT, self.risk.number(scores))

    def hand_out(self, whole: NDArray[np.float64]) -> RemoteScores:
        """To each rank what is of its rows."""
        scores, number = self.risk.new()
        self.risk.ask(Operation.HAND_OUT, number, sent=whole)
        return scores


class GatheredPhi(ScoreFunction):
    """A score function of all rows at once, on rank 0: scores come in, slopes go out, the data stays."""

    def __init__(self, risk: Client, whole: ScoreFunction) -> None:
        self.risk, self.whole = risk, whole
        self.facts = replace(whole.facts, prox=False)  # whole-sample losses are no sums over rows
        rows = RemoteRowScores(risk)
        self.collect, self.hand_out = rows.collect, rows.hand_out

    def value_and_slope(self, f: RemoteScores) -> tuple[float, RemoteScores]:
        value, slope = self.whole.value_and_slope(self.collect(f))
        return value, self.hand_out(slope)

    def along(self, f: RemoteScores, step: RemoteScores) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self.whole.along(self.collect(f), self.collect(step))

    def hessian_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        return self.hand_out(self.whole.hessian_product(self.collect(f), self.collect(step)))

    def hessian_diagonal(self, f: RemoteScores) -> RemoteScores:
        return self.hand_out(self.whole.hessian_diagonal(self.collect(f)))

    def constant(self, b: Vector) -> RemoteScores:
        return self.hand_out(self.whole.constant(b))

    def total(self, scores: RemoteScores) -> Vector:
        return self.whole.total(self.collect(scores))

    def product(self, slope: RemoteScores, f: RemoteScores) -> float:
        return _product(self.risk, slope, f)  # by the ranks: nothing need be gathered

    def magnitude(self, scores: RemoteScores) -> Vector:
        return self.whole.magnitude(self.collect(scores))

    def learned(self, scores: Callable[[], RemoteScores]) -> dict[str, NDArray[np.float64]]:
        return self.whole.learned(lambda: self.collect(scores()))


def _product(risk: Client, slope: RemoteScores, f: RemoteScores) -> float:
    return float(risk.ask(Operation.PRODUCT, risk.number(slope), risk.number(f))[0])
