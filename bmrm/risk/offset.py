"""Scores that have an offset: a number of its own for each row, added to what the weights give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import IncompatibleError, InputError, LossFacts, PreparedLoss, Vector

Array = NDArray[np.float64]


def fitting(offset: Any, scores_per_row: int, facts: LossFacts | None = None) -> Array:
    """An offset in the shape of the scores, (rows,) or (rows, scores).

    Parameters
    ----------
    offset : (rows,) or (rows, scores).
    scores_per_row : how many a row has.
    facts : of the loss; None where it is not known.

    Raises
    ------
    InputError
        Another number of columns; one number for all scores of a row where that changes nothing.
    """
    found: Array = np.asarray(offset, np.float64)
    if scores_per_row == 1 and found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    several = f"(rows, {scores_per_row})" if scores_per_row > 1 else "(rows,)"
    invariant = facts is not None and facts.shift_invariant
    if found.ndim == 1 and scores_per_row > 1 and not invariant:
        found = np.repeat(found[:, None], scores_per_row, axis=1)
    if found.shape[1:] != (() if scores_per_row == 1 else (scores_per_row,)):
        why = "" if found.ndim == 2 else ": what is added to all scores of a row alike changes nothing"
        title = f"{facts.title}: " if facts is not None else ""
        raise InputError(f"{title}the offset has shape {found.shape}, expected {several}{why}")
    return np.ascontiguousarray(found)


def refuse_offset(facts: LossFacts, parameters: int) -> None:
    """Raise IncompatibleError for a loss with so many parameters of its own beside the scores, if there are any."""
    if parameters:
        raise IncompatibleError(
            f"{facts.title}: an offset is for losses of scores alone, and this one learns {parameters} parameters of "
            "its own beside them; leave data.offset out"
        )


class OffsetLoss(PreparedLoss):
    """phi(f) = loss(f + offset), with all that the loss can do.

    Parameters
    ----------
    loss : of some rows.
    offset : of these rows, in the shape of their scores.
    """

    def __init__(self, loss: PreparedLoss, offset: Array) -> None:
        self.loss, self.offset = loss, offset
        self.scores_per_row, self.mass, self.infimum = loss.scores_per_row, loss.mass, loss.infimum
        self.smooth, self.hessian, self.totals, self.prox = loss.smooth, loss.hessian, loss.totals, loss.prox
        self.structured_max, self.piecewise_linear = loss.structured_max, loss.piecewise_linear
        self.nothing = loss.nothing

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """As of `PreparedLoss`."""
        return self.loss.value_and_slope(f + self.offset)

    def along(self, f: Array, step: Array) -> Callable[[Vector], tuple[Vector, Vector]]:
        """As of `PreparedLoss`."""
        return self.loss.along(f + self.offset, step)

    def breakpoints(self, f: Array, step: Array) -> tuple[float, Array]:
        """As of `PreparedLoss`."""
        return self.loss.breakpoints(f + self.offset, step)

    def hessian_product(self, f: Array, step: Array) -> Array:
        """As of `PreparedLoss`."""
        return self.loss.hessian_product(f + self.offset, step)

    def hessian_diagonal(self, f: Array) -> Array:
        """As of `PreparedLoss`."""
        return self.loss.hessian_diagonal(f + self.offset)

    def hessian_shares(self, f: Array) -> Array:
        """As of `PreparedLoss`."""
        return self.loss.hessian_shares(f + self.offset)

    def hessian_total(self, f: Array) -> Array:
        """As of `PreparedLoss`."""
        return self.loss.hessian_total(f + self.offset)

    def moreau(self, z: Array, sigma: float) -> tuple[tuple[float, float, float], Array, Array]:
        """As of `PreparedLoss`: proximal points move with the offset, slopes do not."""
        (loss, product, square), slope, curvature = self.loss.moreau(z + self.offset, sigma)
        return (loss, product - float(np.vdot(slope, self.offset)), square), slope, curvature

    def moreau_along(self, z: Array, step: Array, sigma: float) -> Callable[[Vector], tuple[Vector, Vector]]:
        """As of `PreparedLoss`."""
        return self.loss.moreau_along(z + self.offset, step, sigma)

    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """As of `bmrm.losses._core.prepared.ProximalRows`."""
        loss: Any = self.loss
        found: Array = loss.curved_rows(z + self.offset, sigma, reach)
        return found

    def learned(self, f: Array) -> dict[str, Array]:
        """As of `PreparedLoss`."""
        return self.loss.learned(f + self.offset)
