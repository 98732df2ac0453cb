"""R(w) of rows on many ranks, each of which has a slice of w: of its features, all that a solver holds of them.

Rows stay where they are. For a pass every rank gets all of w, and keeps its slice of the sum of the subgradients; what
is decided rests on sums, which are the same on all ranks, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.mpi.communicator import MpiGroup
from bmrm.mpi.leading import ending_all
from bmrm.mpi.multiplexed import MultiplexedRisk
from bmrm.mpi.share import Rank
from bmrm.problem import Facts, InputError, LinearMap, Scored, ScoreFunction, Space, Vector, ability
from bmrm.problem.abilities import Magnitudes, ProblemSize, Rounding, Traffic

T = TypeVar("T")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankSlices(Space):
    """This rank's inputs: as many, or one more, as any other rank has, one after another; the last has the tail, too.

    Attributes
    ----------
    group : the ranks.
    sizes : lengths of the slices of all ranks.
    """

    group: MpiGroup = None  # type: ignore[assignment]
    sizes: tuple[int, ...] = ()
    whole: ClassVar[bool] = False

    @classmethod
    def of(cls, space: Space, group: MpiGroup) -> RankSlices:
        """Those of the vectors of `space`; InputError where there are fewer inputs than ranks."""
        if space.inputs < group.size:
            raise InputError(
                f"mpi.slices: {group.size} ranks and {space.inputs} feature{'' if space.inputs == 1 else 's'},"
                " expected at least one for each rank"
            )
        ends = [space.inputs * rank // group.size for rank in range(group.size + 1)]
        inputs = np.diff(ends).tolist()
        tails = [0] * (group.size - 1) + [space.tail]
        sizes = tuple(count * space.scores + tail for count, tail in zip(inputs, tails, strict=True))
        return cls(inputs[group.rank], space.scores, tails[group.rank], group, sizes)

    def total(self, parts: Any) -> Any:
        """As of `Space`: summed on rank 0 and sent out."""
        return self.group.sum(np.asarray(parts, np.float64))

    def joined(self, w: Vector) -> Vector:
        """All of a vector, on every rank."""
        return self.group.join_slices(w, self.sizes)

    def summed(self, part: Vector) -> Vector:
        """The slice of the sum over ranks of vectors that each has all of."""
        return self.group.sum_in_slices(part, self.sizes)


class SlicedMap(LinearMap):
    """A of this rank's rows, of a slice of w and to one."""

    def __init__(self, map: LinearMap, space: RankSlices) -> None:
        self._map, self._space = map, space

    def matvec(self, w: Vector) -> Floats:
        whole = self._space.joined(w)
        with ending_all(self._space.group):
            return cast(Floats, self._map.matvec(whole))

    def rmatvec(self, slope: Floats) -> Vector:
        with ending_all(self._space.group):
            part = self._map.rmatvec(slope)
        return self._space.summed(part)


class SlicedPhi(ScoreFunction):
    """The sum of the score functions of all ranks; the scores of its rows are on each rank."""

    def __init__(self, phi: ScoreFunction, space: RankSlices) -> None:
        self._phi, self._space = phi, space
        self.facts = _agreed(phi, space.group, structured_max=False)

    def value_and_slope(self, f: Floats) -> tuple[float, Floats]:
        with ending_all(self._space.group):
            value, slope = self._phi.value_and_slope(f)
        return float(self._space.total(value)), slope

    def along(self, f: Floats, step: Floats) -> Callable[[Vector], tuple[Vector, Vector]]:
        with ending_all(self._space.group):
            mine = self._phi.along(f, step)

        def curve(t: Vector) -> tuple[Vector, Vector]:
            with ending_all(self._space.group):
                found = np.array(mine(t))
            values, derivatives = self._space.total(found)
            return values, derivatives

        return curve

    def breakpoints(self, f: Floats, step: Floats) -> tuple[float, Floats]:
        with ending_all(self._space.group):
            slope, points = self._phi.breakpoints(f, step)
        group = self._space.group
        return float(self._space.total(slope)), group.broadcast_array(group.gather_array(points))

    def hessian_product(self, f: Floats, step: Floats) -> Floats:
        return cast(Floats, self._phi.hessian_product(f, step))

    def hessian_diagonal(self, f: Floats) -> Floats:
        return cast(Floats, self._phi.hessian_diagonal(f))

    def hessian_shares(self, f: Floats) -> Floats:
        return cast(Floats, self._phi.hessian_shares(f))

    def hessian_total(self, f: Floats) -> Floats:
        return cast(Floats, self._space.total(self._phi.hessian_total(f)))

    def constant(self, b: Vector) -> Floats:
        return cast(Floats, self._phi.constant(np.atleast_1d(b)))

    def total(self, scores: Floats) -> Vector:
        return cast(Vector, self._space.total(self._phi.total(scores)))

    def magnitude(self, scores: Floats) -> Vector:
        return cast(Vector, self._space.total(self._phi.magnitude(scores)))

    def product(self, slope: Floats, f: Floats) -> float:
        return float(self._space.total(dot(slope, f)))


class SlicedSample(ScoreFunction):
    """A score function of all rows at once: scores go to rank 0, which sends out values, and to each rank its slopes.

    Parameters
    ----------
    whole : of all rows, on rank 0.
    rank, space : this rank's.
    """

    def __init__(self, whole: ScoreFunction | None, rank: Rank, space: RankSlices) -> None:
        self._whole, self._rank, self._space = whole, rank, space
        self.facts = _agreed(whole, space.group, piecewise_linear=False)

    def value_and_slope(self, f: Floats) -> tuple[float, Floats]:
        found = self._of_all("value_and_slope", f)
        value = float(self._space.group.broadcast(None if found is None else float(found[0])))
        return value, self._handed_out(None if found is None else found[1])

    def along(self, f: Floats, step: Floats) -> Callable[[Vector], tuple[Vector, Vector]]:
        whole, group = self._of_all("along", f, step), self._space.group

        def curve(t: Vector) -> tuple[Vector, Vector]:
            with ending_all(group):
                found = None if whole is None else np.array(whole(t))
            values, derivatives = group.broadcast_array(found)
            return values, derivatives

        return curve

    def hessian_product(self, f: Floats, step: Floats) -> Floats:
        return self._handed_out(self._of_all("hessian_product", f, step))

    def hessian_diagonal(self, f: Floats) -> Floats:
        return self._handed_out(self._of_all("hessian_diagonal", f))

    def hessian_shares(self, f: Floats) -> Floats:
        return self._handed_out(self._of_all("hessian_shares", f))

    def hessian_total(self, f: Floats) -> Floats:
        return self._space.group.broadcast_array(self._of_all("hessian_total", f))

    def constant(self, b: Vector) -> Floats:
        return self._handed_out(None if self._whole is None else self._whole.constant(np.atleast_1d(b)))

    def total(self, scores: Floats) -> Vector:
        return self._space.group.broadcast_array(self._of_all("total", scores))

    def magnitude(self, scores: Floats) -> Vector:
        return self._space.group.broadcast_array(self._of_all("magnitude", scores))

    def product(self, slope: Floats, f: Floats) -> float:
        return float(self._space.total(dot(slope, f)))

    def _of_all(self, method: str, *scores: Floats) -> Any:
        """What a method says of the scores of all rows, on rank 0; None elsewhere."""
        gathered = [self._space.group.gather_array(part) for part in scores]
        with ending_all(self._space.group):
            return None if self._whole is None else getattr(self._whole, method)(*gathered)

    def _handed_out(self, whole: Floats | None) -> Floats:
        return self._space.group.hand_out(whole, self._rank.score_rows)


def _agreed(phi: ScoreFunction | None, group: MpiGroup, **changes: Any) -> Facts:
    """Collective: those of rank 0, without what needs its rows."""
    told = None if phi is None else asdict(replace(phi.facts, prox=False, **changes))
    return Facts(**group.broadcast(told))


class SlicedRisk:
    """R(w) of a slice of w on each rank: collective to make and to use, all ranks alike.

    Parameters
    ----------
    risk : the same that rank 0 leads.
    led : has rank 0 do something with that while the others answer, see `bmrm.mpi.sliced_run.Slices`.
    """

    def __init__(self, risk: MultiplexedRisk, led: Callable[[Callable[[], Any]], Any]) -> None:
        self._whole, self._led, self._rank = risk, led, risk.ranks.rank
        share, group = self._rank.share, risk.group
        self.space = RankSlices.of(share.space or Space(risk.dim), group)
        self.dim, self.infimum = self.space.dim, risk.infimum
        self._scored = self._rounding = None
        offered = ability(risk, Scored), ability(risk, Rounding)
        scored, rounding = group.broadcast([one is not None for one in offered])
        if scored:
            phi = SlicedPhi(cast(Any, share.phi), self.space) if share.risk is not None else None
            sample = SlicedSample(risk.of_all_rows, self._rank, self.space) if phi is None else phi
            self._scored = Scored(SlicedMap(cast(Any, share.map), self.space), sample)
        if rounding:
            self._rounding = self._rounding_of(offered[1])

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of `Risk`."""
        risk = self._rank.share.risk
        if risk is None:
            assert self._scored is not None
            value, slope = self._scored.phi.value_and_slope(self._scored.map.matvec(w))
            return value, self._scored.map.rmatvec(slope)
        whole = self.space.joined(w)
        with ending_all(self.space.group):
            value, part = risk.value_and_subgradient(whole)
        return float(self.space.total(value)), self.space.summed(part)

    def ability(self, kind: type[T]) -> T | None:
        """As of `Risk`."""
        offers = {
            Space: self.space,
            Scored: self._scored,
            Rounding: self._rounding,
            ProblemSize: ability(self._whole, ProblemSize),
            Traffic: self.space.group,
        }
        return cast("T | None", offers.get(kind))

    def _rounding_of(self, whole: Rounding | None) -> Rounding:
        """As of `Rounding`, which rank 0 asks all ranks for."""
        group = self.space.group
        told = None if whole is None else [whole.subject, whole.foreign, whole.row_norm()]
        subject, foreign, row_norm = group.broadcast(told)

        def at(w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
            everything, sizes = group.gather_array(w), np.empty(0)

            def asked() -> list[float]:
                nonlocal sizes
                assert whole is not None
                found = whole.at(cast(Vector, everything), constant, reach)
                sizes = found.sizes
                return [found.terms, found.length, found.growth]

            terms, length, growth = self._led(asked)
            mine = group.hand_out(sizes if group.rank == 0 else None, self.dim)
            return Magnitudes(mine, terms, length, growth)

        return Rounding(subject, foreign, at, lambda: row_norm)
