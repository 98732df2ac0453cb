"""The rounding of a risk whose rows lie on many ranks (`Rounding`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.scored import GatheredPhi, RemoteMap
from bmrm.mpi.share import Rank
from bmrm.problem import Vector
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.risk.rounding import AbsoluteMap, measured, rounding_of, row_norm
from bmrm.risk.score_function import LossPhi
from bmrm.risk.score_layout import ScoreLayout

SUM, KEEP = Answer.SUM, Answer.KEEP


class RankRounding:
    """What is added on this rank."""

    def __init__(self, rank: Rank) -> None:
        self._share = rank.share

    def at(self, w: Vector, constant: Vector | None, reach: float) -> tuple[float, float, float, Vector]:
        """The terms, the length of sums, the growth times all sizes, and the sizes."""
        found = self._share.offered(Rounding).at(w, constant, reach)
        return found.terms, found.length, found.growth * float(found.sizes.sum()), found.sizes

    def absolute_scores(self, w: Vector) -> tuple[NDArray[np.float64], float]:
        """|A| times weights >= 0, and the length of the longest row."""
        return self._absolute.matvec(w), float(self._absolute.longest)

    def absolute_rmatvec(self, slope: NDArray[np.float64]) -> Vector:
        """|A|' times slopes >= 0."""
        return self._absolute.rmatvec(slope)

    @property
    def _absolute(self) -> AbsoluteMap:
        return AbsoluteMap(cast(Any, self._share.map))


def remote_rounding(ranks: Ranks) -> Rounding:
    """What the ranks add, each for its rows, and all of them together."""

    def at(w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
        terms, length, grown, sizes = ranks.ask("rounding", "at", w, constant, reach, answer=(SUM,) * 4)
        return Magnitudes(sizes, terms, length, grown / float(sizes.sum()) if grown > 0.0 else 0.0)

    return replace(ranks.share.offered(Rounding), at=at)


def gathered_rounding(ranks: Ranks, whole: LossPhi) -> Rounding:
    """The same for a loss of all rows at once: their scores come in, its slopes go out."""
    mine: Any = ranks.share.map

    def at(w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
        gathered = GatheredPhi(ranks, whole)
        f = gathered.collect(RemoteMap(ranks).matvec(w))
        kept, longest = ranks.ask("rounding", "absolute_scores", np.abs(w), answer=(KEEP, SUM))
        free = gathered.collect(kept)
        if reach > 0.0 and not whole.facts.smooth:
            free = free + reach * row_norm(mine)
        b = np.zeros(whole.facts.scores_per_row) if constant is None else np.abs(constant)
        if constant is not None:
            f, free = f + whole.constant(constant), free + whole.constant(b)
        layout = ScoreLayout(whole.facts.scores_per_row)
        far, offset = reach > 0.0, whole.bound.offset
        sizes, terms, length, growth = measured(whole, layout, f, free, int(longest), b, True, far, offset)
        absolute_product = ranks.array("rounding", "absolute_rmatvec", gathered.hand_out(sizes))
        return Magnitudes(absolute_product, terms, length, growth * row_norm(mine))

    return rounding_of(whole.bound.loss, mine, at)
