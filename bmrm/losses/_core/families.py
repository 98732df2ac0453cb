"""Losses that differ in a few numbers only: lines and parabolas in the margin or in the residual.

A loss of a family gives `value`, `slope` (and `curvature`) as formulas, and its numbers as `pieces`; the compiled
sweeps and the proximal points follow. The `pieces` are what the functions of the family in `_core.piecewise` and
`_core.piecewise_rows` take last.
"""

from __future__ import annotations

from typing import Any

from bmrm.losses._core import piecewise as sweeps
from bmrm.losses._core import piecewise_rows as rows
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import OneScoreLoss, RegressionLoss
from bmrm.problem import Summary

ZERO_IS_BEST = "scores of 0 cost nothing, so weights of 0 are optimal with any intercept"


class LinearMargin(OneScoreLoss):
    """cost(y) max(0, reach - y f); `pieces` are the reach, and the cost of positive rows and of negative ones."""

    kernel = staticmethod(sweeps.linear_margin_kernel)
    along_kernel = staticmethod(sweeps.linear_margin_along)
    value_row = staticmethod(rows.linear_margin_value)
    prox_row = staticmethod(rows.linear_margin_prox)

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach and costs."""
        raise TypeError(f"{self.title} does not define pieces")

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The pieces."""
        return self.pieces

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z: 0 at the kink."""
        return rows.linear_margin_points(z, step, y, *self.pieces)


class QuadraticMargin(OneScoreLoss):
    """scale (1/2 u^2 up to u = width, linear beyond), u = max(0, reach - y f).

    `pieces` are reach, width and scale.
    """

    kernel = staticmethod(sweeps.quadratic_margin_kernel)
    along_kernel = staticmethod(sweeps.quadratic_margin_along)
    value_row = staticmethod(rows.quadratic_margin_value)
    prox_row = staticmethod(rows.quadratic_margin_prox)

    @property
    def pieces(self) -> tuple[float, float, float]:
        """Reach, width and scale."""
        raise TypeError(f"{self.title} does not define pieces")

    @property
    def most_curvature(self) -> float:
        """The scale."""
        return self.pieces[2]

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The pieces."""
        return self.pieces

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return rows.quadratic_margin_points(z, step, y, *self.pieces)


class QuadraticResidual(RegressionLoss):
    """side (1/2 u^2 up to u = width, linear beyond), u = max(0, |f - y| - epsilon).

    `pieces` are epsilon, the width, and the factors `side` above y and below it.
    """

    kernel = staticmethod(sweeps.quadratic_residual_kernel)
    along_kernel = staticmethod(sweeps.quadratic_residual_along)
    value_row = staticmethod(rows.quadratic_residual_value)
    prox_row = staticmethod(rows.quadratic_residual_prox)

    @property
    def pieces(self) -> tuple[float, float, float, float]:
        """Tube, width of the parabola and a factor for each side."""
        raise TypeError(f"{self.title} does not define pieces")

    @property
    def most_curvature(self) -> float:
        """The larger factor."""
        return max(self.pieces[2:])

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The pieces."""
        return self.pieces

    def prox(self, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
        """The proximal point of each row, and its derivative in z."""
        return rows.quadratic_residual_points(z, step, y, *self.pieces)
