"""A rank's share of the data, and where it stands among the ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.mpi.communicator import MpiGroup
from bmrm.problem import LinearMap, Risk, Scored, ScoreFunction, Space, ability
from bmrm.problem.abilities import (
    Fingerprint,
    ProblemSize,
    Rounding,
    RowSubsets,
)

T = TypeVar("T")


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
    problem_size: ProblemSize | None = None
    space: Space | None = None
    data: Dataset | None = None
    """The rows, where they may go to other ranks."""
    sampled: Callable[[NDArray[np.int64]], Risk] | None = None
    """Collective: the risk over all ranks of some rows of each, numbered from its first; for sums over rows."""

    @classmethod
    def of(cls, risk: Risk) -> Share:
        """The share that a risk is; values and subgradients are added up over ranks as they are."""
        scored = ability(risk, Scored)
        subsets = ability(risk, RowSubsets)
        rows = subsets.rows if subsets is not None else 0
        map, phi = (scored.map, scored.phi) if scored is not None else (None, None)
        size, space = ability(risk, ProblemSize), ability(risk, Space)
        return cls(risk.dim, risk.infimum, rows, risk, map, phi, ability(risk, Fingerprint), size, space)

    def offered(self, kind: type[T]) -> T:
        """The ability of the risk, which has it."""
        found = ability(self.risk, kind)
        assert found is not None, f"this rank has no {kind.__name__}"
        return found

    def abilities(self, kinds: Iterable[type]) -> set[str]:
        """Names of those of `kinds` that this one has."""
        if self.risk is None:
            return {Scored.__name__, Fingerprint.__name__, Rounding.__name__}
        return {kind.__name__ for kind in kinds if ability(self.risk, kind) is not None}


@dataclass(frozen=True)
class Rank:
    """A share, the ranks that it is one of, and the rows of those before.

    Attributes
    ----------
    rows : number of rows of all ranks.
    rows_before : how many of them are on the ranks before this one.
    """

    share: Share
    group: MpiGroup
    rows: int
    rows_before: int

    @classmethod
    def of(cls, share: Share, group: MpiGroup) -> Rank:
        """Collective."""
        counts = group.broadcast(group.gather(share.rows))
        return cls(share, group, sum(counts), sum(counts[: group.rank]))

    def own(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """This rank's among these rows, numbered from its first."""
        return rows[(rows >= self.rows_before) & (rows < self.rows_before + self.share.rows)] - self.rows_before

    @property
    def score_rows(self) -> int:
        """Length of the scores of this rank."""
        phi = self.share.phi
        return self.share.rows if phi is None else len(phi.constant(np.zeros(phi.facts.scores_per_row)))
