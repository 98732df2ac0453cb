"""Working sets of blocks, and penalties of a part of the blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks import separable
from bmrm.numerics.line_search import Along
from bmrm.problem import Vector
from bmrm.problem.regularizer import BlockPenalty

Columns = NDArray[np.int64]
Blocks = NDArray[np.int64]
Marks = NDArray[np.bool_]


def chosen_blocks(away: Vector, used: Marks, sizes: Columns, room: int, zeros: Marks | None = None) -> Blocks:
    """Blocks of at most `room` columns with the largest violations, with all that are in use; increasing.

    All blocks where their columns are no more than `room`, but for those of `zeros` that are not in use. There is
    always one of those that violate optimality.

    Parameters
    ----------
    away, used, sizes : of each block its distance from optimality, whether it is not 0, and its columns.
    """
    possible = used | ~zeros if zeros is not None else np.ones(used.size, np.bool_)
    if sizes.sum() <= room:
        return np.flatnonzero(possible)
    others = np.flatnonzero(possible & ~used & (away > 0.0))
    others = others[np.argsort(-away[others], kind="stable")]
    taken = np.cumsum(sizes[others]) <= room - int(sizes[used].sum())
    taken[:1] = True
    inside = used.copy()
    inside[others[taken]] = True
    return np.flatnonzero(inside)


def part_of(penalty: BlockPenalty, blocks: Blocks) -> tuple[Columns, BlockPenalty]:
    """The coordinates of some blocks, increasing, and the penalty as a function of these alone."""
    sizes = np.diff(penalty.starts)[blocks]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(starts[-1]) + np.repeat(penalty.starts[blocks] - starts[:-1], sizes)
    coordinates = penalty.coordinates[places]
    W = np.sort(coordinates)
    numbers = (one[W] for one in (penalty.l1, penalty.l2, penalty.center, penalty.lower, penalty.upper))
    return W, BlockPenalty(starts, np.searchsorted(W, coordinates), penalty.strengths[blocks], *numbers)


@dataclass(frozen=True)
class Omega:
    """The sum that a penalty stands for, as steps are judged by it.

    Parameters
    ----------
    penalty : of all coordinates.
    """

    penalty: BlockPenalty

    def value(self, w: Vector) -> float:
        """Omega(w)."""
        return float(separable.value(w, tuple(self.penalty)))

    def along(self, w: Vector, step: Vector) -> Along:
        """The function t -> (value at w + t step, its derivative in t)."""
        arrays = tuple(self.penalty)

        def evaluate(ts: Vector) -> tuple[Vector, Vector]:
            values, slopes = np.empty(len(ts)), np.empty(len(ts))
            separable.line(w, step, np.asarray(ts, np.float64), arrays, values, slopes)
            return values, slopes

        return evaluate
