"""The sum of absolute values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.problem import Master, Vector
from bmrm.problem.regularizer import Planes
from bmrm.regularizers import register
from bmrm.regularizers._core.weighted import FeatureWeights, Weighted, feature_weights_parameter
from bmrm.regularizers.base import Line, engine_parameter, l1_line, load, soft_threshold

ENGINES = {
    "simplex": "bmrm.masters.l1_simplex:SimplexLP",
    "cvxopt": "bmrm.masters.cvxopt:CvxoptLP",
}


@register("l1")
@dataclass(frozen=True)
class L1(Weighted):
    """lambda ||w||_1, or lambda sum_j c_j |w_j|: the lasso's regularizer, whose minimisers have few non-zero weights.

    Its conjugate is 0 where max |v_i| <= lambda and +inf elsewhere; a plane of the risk gives a lower bound after it
    was combined with the lower-bound plane so that this holds. The master of the bundle method is a linear program. The
    subgradient is lambda sign(w), 0 where w is 0 (eq. 14 of Teo et al., KDD 2007).

    Parameters
    ----------
    lam : lambda > 0.
    engine : solver of the master problem: `simplex` (ours, dense, warm-started) or `cvxopt` (interior point, from
        scratch).
    feature_weights : c, a list with a number >= 0 for each feature, or {feature: number} by number from 0, name, or
        `town=*`, all whose names begin alike, the others having 1; 0 for a feature that is not penalised. None for 1.

    Raises
    ------
    InputError : lambda is not positive and finite, or the engine is unknown; weights that are negative, no numbers or
        all 0; later, where the features are known, lists of another length and features that are not there.
    """

    engine: str = engine_parameter(ENGINES)
    feature_weights: FeatureWeights = feature_weights_parameter()  # noqa: RUF009
    smooth = False
    power = 1.0
    l2: ClassVar[float] = 0.0

    @property
    def l1(self) -> float:
        """Lambda: Omega(w) = l1 ||w||_1 + l2/2 ||w||^2, with l2 = 0."""
        return self.lam

    def value(self, w: Vector) -> float:
        """Lambda ||w||_1.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return self.lam * float(np.abs(w).sum())

    def subgradient(self, w: Vector) -> Vector:
        """Lambda sign(w), 0 where w is 0.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return self.lam * np.sign(w)

    def along(self, w: Vector, step: Vector) -> Line:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t; no copies of w.

        Parameters
        ----------
        w, step : (dim,), a point and a direction.
        """
        return l1_line(self.lam, w, step)

    def conjugate(self, v: Vector) -> float:
        """0 where max |v_i| <= lambda, else +inf.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return 0.0 if float(np.abs(v).max()) <= self.lam else math.inf

    def feasible(self, v: Vector) -> float:
        """min(1, lambda / max |v_i|): the largest scale s in [0, 1] with a finite conjugate at s v.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        largest = float(np.abs(v).max())
        if largest <= self.lam:
            return 1.0
        scale = self.lam / largest
        return scale if scale * largest <= self.lam else math.nextafter(scale, 0.0)

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2: soft thresholding.

        Parameters
        ----------
        v : (dim,), the point to stay near.
        step : greater than 0, the factor of Omega.
        """
        return soft_threshold(v, step * self.lam)

    def master(self, planes: Planes) -> Master:
        """As of `HasMaster`.

        Parameters
        ----------
        planes : an empty store, which the master fills.
        """
        return load(ENGINES[self.engine])(planes, self.lam)
