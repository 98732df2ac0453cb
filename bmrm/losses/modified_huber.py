"""The squared hinge, linear far on the wrong side: robust and smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.losses import register
from bmrm.losses._core.pieces import quadratic_margin, quadratic_margin_prox
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import MarginLoss, Pair, Scalar, row


@register("modified_huber", task="binary")
@dataclass(frozen=True)
class ModifiedHuber(MarginLoss):
    """max(0, 1 - y f)^2 for y f >= -1, -4 y f below: a squared hinge that outliers cannot dominate.

    Domain: two classes, y in {-1, 1}. Scale: as in scikit-learn's `SGDClassifier` and Zhang's paper, curvature 2
    between -1 and 1, twice that of `squared_hinge`. The probability of the positive class is (1 + min(max(f, -1), 1))
    / 2. The second derivative at the joints is the generalised one, that of the outer pieces.
    """

    formula = "max(0, 1 - y f)^2 for y f >= -1, else -4 y f"
    source = "Zhang 2004"
    smooth = True
    hessian_bound = 2.0

    @row
    def value_slope(f: Scalar, y: Scalar) -> Pair:
        return quadratic_margin(f, y, 1.0, 2.0, 2.0)

    @row
    def curvature(f: Scalar, y: Scalar) -> Scalar:
        return 2.0 if abs(f) < 1.0 else 0.0

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar) -> Pair:
        return quadratic_margin_prox(z, step, y, 1.0, 2.0, 2.0)

    def probabilities(self, f: Array) -> Array:
        """Of the two labels, (rows, 2): (1 - c) / 2 and (1 + c) / 2, c = min(max(f, -1), 1)."""
        near = np.minimum(np.maximum(f, -1.0), 1.0)
        return np.stack((0.5 * (1.0 - near), 0.5 * (1.0 + near)), axis=1)
