"""The hinge loss with a smoothed kink."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_margin, quadratic_margin_prox
from bmrm.losses.base import MarginLoss, Pair, Scalar, row
from bmrm.registry import parameter


@register("huber_hinge", task="binary")
@dataclass(frozen=True)
class HuberHinge(MarginLoss):
    """0 for y f > 1 + h, (1 + h - y f)^2 / (4 h) for |1 - y f| <= h, 1 - y f below: a hinge with a round kink.

    Domain: two classes, y in {-1, 1}. At most h / 4 above `hinge`, which is its limit for h -> 0. Curvature 1 / (2 h)
    within h of the kink; the second derivative at the joints is the generalised one, that of the outer pieces.
    """

    h: float = parameter(0.5, above=0.0, doc="half width of the quadratic piece around y f = 1", example=0.25)

    formula = "0, (1 + h - y f)^2 / (4 h) or 1 - y f for y f above, within or below 1 +- h"
    source = "Chapelle 2007"
    smooth = True

    @row
    def value_slope(f: Scalar, y: Scalar, h: Scalar) -> Pair:
        return quadratic_margin(f, y, 1.0 + h, 2.0 * h, 0.5 / h)

    @row
    def curvature(f: Scalar, y: Scalar, h: Scalar) -> Scalar:
        return 0.5 / h if abs(1.0 - y * f) < h else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, h: Scalar) -> Pair:
        return quadratic_margin_prox(z, step, y, 1.0 + h, 2.0 * h, 0.5 / h)

    @property
    def hessian_bound(self) -> float:
        """The scale of the parabola."""
        return 0.5 / self.h
