"""The elastic net: the sum of absolute values and the squared norm, mixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.problem import Master, Vector
from bmrm.problem.regularizer import Planes
from bmrm.registry import parameter
from bmrm.regularizers import register
from bmrm.regularizers._core.weighted import FeatureWeights, Weighted, feature_weights_parameter
from bmrm.regularizers.base import Line, engine_parameter, l1_line, l2_line, load, soft_threshold

ENGINES = {
    "active_set": "bmrm.masters.elastic_newton:ElasticQP",
    "cvxopt": "bmrm.masters.cvxopt:CvxoptElastic",
}


@register("elastic_net")
@dataclass(frozen=True)
class ElasticNet(Weighted):
    """lambda (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2): few non-zero weights, correlated features together.

    Zou & Hastie (2005), with the parameters of scikit-learn and glmnet. Its conjugate is
    ||soft(v, l1)||^2 / (2 l2), with l1 = lambda l1_ratio, l2 = lambda (1 - l1_ratio) and soft(v, l1) the vector of
    sign(v_i) max(|v_i| - l1, 0): finite everywhere, so that every plane of the risk gives a lower bound. The master
    of the bundle method maximises a piecewise quadratic function over simplices.

    Parameters
    ----------
    lam : lambda > 0.
    l1_ratio : share of the sum of absolute values, between 0 (that would be `l2`) and 1 (`l1`), both excluded.
    engine : solver of the master problem: `active_set` (ours, warm-started) or `cvxopt` (interior point, from scratch).
    feature_weights : a factor of both parts for each feature, a list of numbers >= 0, or {feature: number} by number
        from 0, name, or `town=*`, all whose names begin alike, the others having 1; 0 for a feature that is not
        penalised. None for 1.

    Raises
    ------
    InputError : lambda is not positive and finite, l1_ratio not between 0 and 1, or the engine unknown; weights that
        are negative, no numbers or all 0; later, where the features are known, lists of another length and features
        that are not there.
    """

    l1_ratio: float = parameter(0.5, doc="share of the l1 norm, 0 < l1_ratio < 1", above=0.0, below=1.0, example=0.9)
    engine: str = engine_parameter(ENGINES)
    feature_weights: FeatureWeights = feature_weights_parameter()  # noqa: RUF009
    smooth = False
    power = 0.0

    @property
    def l1(self) -> float:
        """lambda l1_ratio: Omega(w) = l1 ||w||_1 + l2/2 ||w||^2."""
        return self.lam * self.l1_ratio

    @property
    def l2(self) -> float:
        """lambda (1 - l1_ratio): Omega(w) = l1 ||w||_1 + l2/2 ||w||^2."""
        return self.lam * (1.0 - self.l1_ratio)

    @property
    def modulus(self) -> float:
        """lambda (1 - l1_ratio): Omega is that strongly convex."""
        return self.l2

    def value(self, w: Vector) -> float:
        """lambda (l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2).

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def subgradient(self, w: Vector) -> Vector:
        """l1 sign(w) + l2 w, with sign(0) = 0.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return self.l1 * np.sign(w) + self.l2 * w

    def along(self, w: Vector, step: Vector) -> Line:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t; no copies of w.

        Parameters
        ----------
        w, step : (dim,), a point and a direction.
        """
        kinked, smooth = l1_line(self.l1, w, step), l2_line(self.l2, w, step)

        def evaluate(t: Vector) -> tuple[Vector, Vector]:
            value, slope = kinked(t)
            more, rise = smooth(t)
            return value + more, slope + rise

        return evaluate

    def conjugate(self, v: Vector) -> float:
        """||soft(v, l1)||^2 / (2 l2), the maximum over w of <v, w> - Omega(w), reached at soft(v, l1) / l2.

        It is +inf where that overflows.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        excess = soft_threshold(v, self.l1)
        return 0.5 * float(np.vdot(excess, excess)) / self.l2

    def feasible(self, v: Vector) -> float:
        """1.0: the conjugate is finite everywhere.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return 1.0

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2: soft thresholding, then shrinking.

        Parameters
        ----------
        v : (dim,), the point to stay near.
        step : greater than 0, the factor of Omega.
        """
        return soft_threshold(v, step * self.l1) / (1.0 + step * self.l2)

    def master(self, planes: Planes) -> Master:
        """As of `HasMaster`.

        Parameters
        ----------
        planes : an empty store, which the master fills.
        """
        return load(ENGINES[self.engine])(planes, self.l1, self.l2)
