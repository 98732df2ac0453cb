"""R(w) = phi(A w) of rows that lie on many ranks (`Scored`): as rank 0 has it, and what the ranks do in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer, Request, Scattered
from bmrm.mpi.scores import RemoteScores, Slot
from bmrm.mpi.share import Rank
from bmrm.problem import Facts, MoreauEnvelope, ScoreFunction, Vector, provides
from bmrm.problem.meter import UNMETERED, Meter, half_pass, timed

LONG = 1 << 17
"""Numbers of a gradient above which it is reduced in parts, the first while later ones are still computed."""
PRODUCTS = 4e9
"""Products of two entries of a row in one request."""
SUM, STREAM, KEEP, GATHER = Answer.SUM, Answer.STREAM, Answer.KEEP, Answer.GATHER

Floats = NDArray[np.float64]
Pieces = Iterator[tuple[slice, Vector]]


@runtime_checkable
class InPieces(Protocol):
    """A map that can form A' slope piece by piece."""

    def rmatvec_parts(self, slope: Floats, parts: int) -> Pieces:
        """At most so many consecutive pieces, and where they belong."""
        ...


@runtime_checkable
class CountsProducts(Protocol):
    """A map that knows what its Gram matrices take."""

    def gram_work(self, weights: Floats, columns: NDArray[np.int64] | None, least: float | None) -> tuple[float, float]:
        """Products that Gram matrices take, and a pass."""
        ...


@runtime_checkable
class CountsShares(Protocol):
    """A map that copies rows whose weights are not 0."""

    def product_share(self, weights: Floats) -> float:
        """Share of the rows in a product with their Gram matrix."""
        ...


# -- on every rank ---------------------------------------------------------------------------------


class Parts:
    """What this rank computes in parts, of its rows or of its columns."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank
        self._map: Any = rank.share.map
        self._phi: Any = rank.share.phi

    def value_and_subgradient(self, w: Vector, parts: int) -> tuple[float, Pieces]:
        """The subgradient in parts."""
        value, slope = self._phi.value_and_slope(self._map.matvec(w))
        return value, self._map.rmatvec_parts(slope, parts)

    def plane_at(self, phi: Any, f: Floats, parts: int) -> tuple[float, float, Floats, Floats | Pieces]:
        """Value, <slope, f>, slope, and A' slope, which is cut into parts unless these are 0; of `phi` or our own."""
        value, slope = (self._phi if phi is None else phi).value_and_slope(f)
        return value, dot(slope, f), slope, self._pulled(slope, parts)

    def pulled(self, slope: Floats, f: Floats, parts: int) -> tuple[float, Floats | Pieces]:
        """<slope, f>, and A' slope as of `plane_at`."""
        return dot(slope, f), self._pulled(slope, parts)

    def _pulled(self, slope: Floats, parts: int) -> Floats | Pieces:
        return cast("Floats | Pieces", self._map.rmatvec_parts(slope, parts) if parts else self._map.rmatvec(slope))

    def gram_product(self, weights: Floats, w: Vector) -> tuple[Vector, float]:
        """As of `LinearMap`, and what share of a pass over all rows it takes."""
        map = self._map
        product = map.gram_product(weights, w)
        share = map.product_share(weights) if provides(map, CountsShares) else 1.0
        return product, share * self._rank.share.rows / max(1, self._rank.rows)

    def gram(
        self, weights: Floats, columns: NDArray[np.int64] | None, part: int, parts: int, before: Floats | None
    ) -> Floats:
        """The Gram matrix of a part of the rows, added to that of the parts before."""
        return _added(self._map.gram(_part(weights, part, parts), columns), before)

    def gram_work(self, weights: Floats, columns: NDArray[np.int64] | None, least: float | None) -> tuple[float, float]:
        """Products that all parts take, and a pass; 0 where the map does not know."""
        return self._map.gram_work(weights, columns, least) if provides(self._map, CountsProducts) else (0.0, 0.0)

    def gram_blocks(self, weights: Floats, least: float, part: int, parts: int, before: Floats | None) -> Floats:
        """Gram matrices, one for each score of a row; see `gram`."""
        if parts > 1 and least > 0.0 and len(weights):
            weights, least = np.where(weights >= least * weights.mean(axis=0), weights, 0.0), 0.0
        return _added(self._map.gram_blocks(_part(weights, part, parts), least), before)


def _part(weights: Floats, part: int, parts: int) -> Floats:
    """The weights of some of the rows, zeros for the others."""
    if parts == 1:
        return weights
    first, last = (len(weights) * k // parts for k in (part, part + 1))
    return np.concatenate((np.zeros_like(weights[:first]), weights[first:last], np.zeros_like(weights[last:])))


def _added(matrix: Floats, before: Floats | None) -> Floats:
    if before is not None:
        matrix += before
    return matrix


class KeptScores:
    """What is asked of scores alone."""

    def itself(self, scores: Floats) -> Floats:
        """To be gathered, or kept where they come from rank 0."""
        return scores

    def product(self, one: Floats, other: Floats) -> float:
        """The inner product over rows and their scores."""
        return dot(one, other)


# -- on rank 0 -------------------------------------------------------------------------------------


def pieces_of(ranks: Ranks) -> int:
    """In how many pieces gradients are added up; 0 where they are not cut."""
    dim = ranks.share.dim
    return -(-dim // LONG) if dim > LONG and provides(ranks.share.map, InPieces) else 0


@dataclass(frozen=True)
class RemoteMap:
    """As of `LinearMap`: the ranks multiply their rows."""

    ranks: Ranks
    meter: Meter = UNMETERED
    share = 1.0

    def metered(self, meter: Meter) -> RemoteMap:
        """The same, charged to `meter`, which forms large Gram matrices in several requests."""
        return replace(self, meter=meter)

    @half_pass
    def matvec(self, w: Vector) -> RemoteScores:
        return self.ranks.scores("map", "matvec", w)

    @half_pass
    def rmatvec(self, slope: RemoteScores) -> Vector:
        pieces = pieces_of(self.ranks)
        if pieces:
            return self.ranks.array("map", "rmatvec_parts", slope, pieces, answer=STREAM)
        return self.ranks.array("map", "rmatvec", slope)

    def plane_at(self, phi: ScoreFunction, f: RemoteScores) -> tuple[float, RemoteScores, Vector, float]:
        """As of `PlanesAtOnce`."""
        target = getattr(phi, "target", None)  # of a RemotePhi, or of one that is counted
        if target is None:
            value, slope = phi.value_and_slope(f)
            return value, slope, *self.pulled(slope, f)
        own = None if isinstance(target, str) else target
        pieces = pieces_of(self.ranks)
        ask = partial(self.ranks.ask, answer=(SUM, SUM, KEEP, STREAM if pieces else SUM))
        value, product, slope, a = self.meter.timed(0.5, ask, "parts", "plane_at", own, f, pieces)
        return value, slope, a, product

    @half_pass
    def pulled(self, slope: RemoteScores, f: RemoteScores) -> tuple[Vector, float]:
        """As of `PlanesAtOnce`."""
        pieces = pieces_of(self.ranks)
        answer = SUM, STREAM if pieces else SUM
        product, a = self.ranks.ask("parts", "pulled", slope, f, pieces, answer=answer)
        return a, product

    @half_pass
    def diagonal(self, weights: RemoteScores) -> Vector:
        return self.ranks.array("map", "diagonal", weights)

    def gram_product(self, weights: RemoteScores, w: Vector) -> Vector:
        begin, share = self.meter.begin(), 1.0
        try:
            found, share = self.ranks.ask("parts", "gram_product", weights, w, answer=(SUM, SUM))
            return cast(Vector, found)
        finally:
            self.meter.end(begin, share)

    @half_pass
    def gram(self, weights: RemoteScores, columns: NDArray[np.int64] | None = None) -> Floats:
        found = self._in_parts(self._parts(), "gram", weights, columns)
        self._charge(weights, columns)
        return found

    @half_pass
    def gram_blocks(self, weights: RemoteScores, least: float = 0.0) -> Floats:
        assert self.ranks.share.phi is not None
        parts = self._parts(self.ranks.share.phi.facts.scores_per_row)
        found = self._in_parts(parts, "gram_blocks", weights, least)
        self._charge(weights, None, least)
        return found

    def _charge(self, weights: RemoteScores, columns: NDArray[np.int64] | None, least: float | None = None) -> None:
        """Products of Gram matrices, as the ranks count them."""
        if self.meter is not UNMETERED:
            work, a_pass = self.ranks.ask("parts", "gram_work", weights, columns, least, answer=(SUM, SUM))
            self.meter.charge(0.0, work / max(a_pass, 1.0))

    @timed
    def active(self, weights: RemoteScores) -> int:
        return int(self.ranks.number("map", "active", weights))

    def _parts(self, matrices: int = 1) -> int:
        """Into how many Gram matrices are to be cut, each of which takes rank 0 less than a second."""
        size = self.ranks.share.problem_size
        if self.meter is UNMETERED or size is None or not size.rows:
            return 1
        return max(1, math.ceil(matrices * size.entries * (size.entries / size.rows) / PRODUCTS))

    def _in_parts(self, parts: int, method: str, weights: RemoteScores, option: Any) -> Floats:
        """The ranks keep what they have of the parts, until the last; then it is added up."""
        found: Any = None
        for part in range(parts):
            self.meter.check()
            answer = SUM if part == parts - 1 else KEEP
            found = self.ranks.ask("parts", method, weights, option, part, parts, found, answer=answer)
        return cast(Floats, found)


class OfRanks(ScoreFunction):
    """A score function of rows on many ranks."""

    ranks: Ranks

    def product(self, slope: RemoteScores, f: RemoteScores) -> float:
        return self.ranks.number("scores", "product", slope, f)

    def collect(self, scores: RemoteScores) -> Floats:
        return self.ranks.array("scores", "itself", scores, answer=GATHER)

    def hand_out(self, whole: Floats) -> RemoteScores:
        return self.ranks.scores("scores", "itself", Scattered(whole))


class RemotePhi(OfRanks):
    """The sum of the ranks' score functions, their own or those kept under `slot`."""

    def __init__(self, ranks: Ranks, slot: Slot | None = None) -> None:
        self.ranks = ranks
        self.target: str | Slot = "phi" if slot is None else slot
        facts: Facts = ranks.local.named("phi").facts if slot is None else ranks.local.kept(slot.number).facts
        self.facts = replace(facts, prox=facts.prox and slot is None)

    def value_and_slope(self, f: RemoteScores) -> tuple[float, RemoteScores]:
        value, slope = self.ranks.ask(self.target, "value_and_slope", f, answer=(SUM, KEEP))
        return value, slope

    def along(self, f: RemoteScores, step: RemoteScores) -> RemoteCurve:
        return RemoteCurve(self, "along", f, step)

    def breakpoints(self, f: RemoteScores, step: RemoteScores) -> tuple[float, Floats]:
        slope, points = self.ranks.ask(self.target, "breakpoints", f, step, answer=(SUM, GATHER))
        return slope, points

    def hessian_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        return self.ranks.scores(self.target, "hessian_product", f, step)

    def hessian_diagonal(self, f: RemoteScores) -> RemoteScores:
        return self.ranks.scores(self.target, "hessian_diagonal", f)

    def hessian_shares(self, f: RemoteScores) -> RemoteScores:
        return self.ranks.scores(self.target, "hessian_shares", f)

    def hessian_total(self, f: RemoteScores) -> Floats:
        return self.ranks.array(self.target, "hessian_total", f)

    def moreau(self, z: RemoteScores, sigma: float) -> MoreauEnvelope:
        return MoreauEnvelope(*self.ranks.ask(self.target, "moreau", z, sigma, answer=(SUM, KEEP, KEEP, SUM)))

    def moreau_along(self, z: RemoteScores, step: RemoteScores, sigma: float) -> RemoteCurve:
        return RemoteCurve(self, "moreau_along", z, step, sigma)

    def constant(self, b: Vector) -> RemoteScores:
        return self.ranks.scores(self.target, "constant", np.atleast_1d(b))

    def total(self, scores: RemoteScores) -> Vector:
        return self.ranks.array(self.target, "total", scores)

    def magnitude(self, scores: RemoteScores) -> Vector:
        return self.ranks.array(self.target, "magnitude", scores)


class RemoteCurve:
    """t -> the sums of the ranks' values and derivatives along a step; they make their curves at the first call."""

    def __init__(self, phi: RemotePhi, method: str, f: RemoteScores, step: RemoteScores, *more: float) -> None:
        self._phi, self._method, self._slot = phi, method, phi.ranks.slot()
        for scores in (f, step):
            phi.ranks.form(scores)
        # copies: what these are made of stays known to the ranks
        self._arguments: tuple[Any, ...] | None = (RemoteScores(dict(f.terms)), RemoteScores(dict(step.terms)), *more)

    def __call__(self, t: Vector) -> tuple[Vector, Vector]:
        ranks = self._phi.ranks
        target: Slot | Request = self._slot
        if self._arguments is not None:
            target = ranks.making(self._slot, self._phi.target, self._method, *self._arguments)
        values, derivatives = ranks.ask(target, "__call__", np.asarray(t, np.float64), answer=(SUM, SUM))
        self._arguments = None
        return values, derivatives


class GatheredPhi(OfRanks):
    """A score function of all rows at once, on rank 0: scores come in, slopes go out, the data stays."""

    def __init__(self, ranks: Ranks, whole: ScoreFunction) -> None:
        self.ranks, self.whole = ranks, whole
        # whole-sample losses are no sums over rows
        self.facts = replace(whole.facts, prox=False, piecewise_linear=False)

    def value_and_slope(self, f: RemoteScores) -> tuple[float, RemoteScores]:
        value, slope = self.whole.value_and_slope(self.collect(f))
        return value, self.hand_out(slope)

    def along(self, f: RemoteScores, step: RemoteScores) -> Callable[[Vector], tuple[Vector, Vector]]:
        return self.whole.along(self.collect(f), self.collect(step))

    def hessian_product(self, f: RemoteScores, step: RemoteScores) -> RemoteScores:
        return self.hand_out(self.whole.hessian_product(self.collect(f), self.collect(step)))

    def hessian_diagonal(self, f: RemoteScores) -> RemoteScores:
        return self.hand_out(self.whole.hessian_diagonal(self.collect(f)))

    def hessian_shares(self, f: RemoteScores) -> RemoteScores:
        return self.hand_out(self.whole.hessian_shares(self.collect(f)))

    def hessian_total(self, f: RemoteScores) -> Floats:
        return self.whole.hessian_total(self.collect(f))

    def constant(self, b: Vector) -> RemoteScores:
        return self.hand_out(self.whole.constant(b))

    def total(self, scores: RemoteScores) -> Vector:
        return self.whole.total(self.collect(scores))

    def magnitude(self, scores: RemoteScores) -> Vector:
        return self.whole.magnitude(self.collect(scores))

    def learned(self, scores: Callable[[], RemoteScores]) -> dict[str, Floats]:
        return self.whole.learned(lambda: self.collect(scores()))
