"""The rounding of a risk whose rows lie on many ranks (`Rounding`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.ranks import Ranks
from bmrm.mpi.requests import Answer
from bmrm.mpi.scored import GatheredPhi, RemoteMap
from bmrm.mpi.share import Rank
from bmrm.problem import Vector
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.problem.results import is_own
from bmrm.risk.rounding import AbsoluteMap, measured, row_norm, subject_of
from bmrm.risk.score_function import LossPhi
from bmrm.risk.score_layout import ScoreLayout

SUM, KEEP = Answer.SUM, Answer.KEEP


class RankRounding:
    """What is added on this rank."""

    def __init__(self, rank: Rank) -> None:
        self._share = rank.share

    def at(self, w: Vector, constant: Vector | None) -> tuple[float, float, float, Vector]:
        """The terms, the length of sums, the growth times all sizes, and the sizes."""
        found = self._share.offered(Rounding).at(w, constant)
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


@dataclass(frozen=True)
class RemoteRounding:
    """What the ranks add, each for its rows, and all of them together."""

    ranks: Ranks

    @property
    def subject(self) -> str:
        return self._mine.subject

    @property
    def foreign(self) -> bool:
        return self._mine.foreign

    @property
    def row_norm(self) -> float:
        return self._mine.row_norm

    @property
    def constant(self) -> float:
        return 0.0

    @property
    def _mine(self) -> Rounding:
        return self.ranks.share.offered(Rounding)

    def at(self, w: Vector, constant: Vector | None = None) -> Magnitudes:
        terms, length, grown, sizes = self.ranks.ask("rounding", "at", w, constant, answer=(SUM,) * 4)
        return Magnitudes(sizes, terms, length, grown / float(sizes.sum()) if grown > 0.0 else 0.0)


@dataclass(frozen=True)
class GatheredRounding:
    """The same for a loss of all rows at once: their scores come in, its slopes go out."""

    ranks: Ranks
    whole: LossPhi

    @property
    def subject(self) -> str:
        return subject_of(self.whole.bound.loss)

    @property
    def foreign(self) -> bool:
        return not is_own(self.whole.bound.loss)

    @property
    def row_norm(self) -> float:
        return row_norm(cast(Any, self.ranks.share.map))

    @property
    def constant(self) -> float:
        return 0.0

    def at(self, w: Vector, constant: Vector | None = None) -> Magnitudes:
        gathered = GatheredPhi(self.ranks, self.whole)
        f = gathered.collect(RemoteMap(self.ranks).matvec(w))
        kept, longest = self.ranks.ask("rounding", "absolute_scores", np.abs(w), answer=(KEEP, SUM))
        free = gathered.collect(kept)
        b = np.zeros(self.whole.facts.scores_per_row) if constant is None else np.abs(constant)
        if constant is not None:
            f, free = f + self.whole.constant(constant), free + self.whole.constant(b)
        layout = ScoreLayout(self.whole.facts.scores_per_row)
        sizes, terms, length, growth = measured(self.whole, layout, f, free, int(longest), b, coupled=True)
        slope = gathered.hand_out(sizes)
        absolute_product = self.ranks.array("rounding", "absolute_rmatvec", slope)
        return Magnitudes(absolute_product, terms, length, growth * self.row_norm)
