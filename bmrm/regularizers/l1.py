"""The sum of absolute values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.problem import Master, Planes, Vector
from bmrm.registry import check_parameters, parameter
from bmrm.regularizers import register


def _highs(planes: Planes, lam: float, blocks: int) -> Master:
    from bmrm.masters.highs_lp import HighsLP

    return HighsLP(planes, lam, blocks)


def _cvxopt(planes: Planes, lam: float, blocks: int) -> Master:
    from bmrm.masters.cvxopt_engines import CvxoptLP

    return CvxoptLP(planes, lam, blocks)


ENGINES: dict[str, Callable[[Planes, float, int], Master]] = {"highs": _highs, "cvxopt": _cvxopt}


@register("l1")
@dataclass(frozen=True)
class L1:
    """lambda ||w||_1: the lasso's regularizer, whose minimisers have few non-zero weights.

    Its conjugate is 0 where max |v_i| <= lambda and +inf elsewhere; a plane of the risk gives a lower bound once it
    is mixed with the floor plane until it is that flat. The master of the bundle method is a linear program. The
    subgradient is lambda sign(w), 0 where w is 0 (eq. 14 of Teo et al., KDD 2007).

    Parameters
    ----------
    lam : lambda > 0.
    engine : who solves the master: `highs` (one linear program that grows, dual simplex from the last basis) or
        `cvxopt` (interior point, each time anew).

    Raises
    ------
    InputError : lambda is not positive and finite, or the engine is unknown.
    """

    smooth: ClassVar[bool] = False
    lam: float = parameter(doc="strength, > 0", above=0.0, below=math.inf, example=0.01)
    engine: str = parameter("highs", doc="who solves the master problem", choices=tuple(ENGINES), example="cvxopt")
    smooth = False

    def __post_init__(self) -> None:
        check_parameters(self)

    def value(self, w: Vector) -> float:
        """Lambda ||w||_1."""
        return self.lam * float(np.abs(w).sum())

    def subgradient(self, w: Vector) -> Vector:
        """Lambda sign(w), 0 where w is 0."""
        return self.lam * np.sign(w)

    def along(self, w: Vector, step: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t; memory of one w."""

        def evaluate(t: Vector) -> tuple[Vector, Vector]:
            t = np.asarray(t, dtype=np.float64)
            values, slopes = np.empty(t.shape), np.empty(t.shape)
            for k in np.ndindex(t.shape):
                point = w + t[k] * step
                values[k] = self.value(point)
                slopes[k] = self.lam * float(np.sign(point) @ step)
            return values, slopes

        return evaluate

    def conjugate(self, v: Vector) -> float:
        """0 where max |v_i| <= lambda, else +inf."""
        return 0.0 if float(np.abs(v).max()) <= self.lam else math.inf

    def feasible(self, v: Vector) -> float:
        """min(1, lambda / max |v_i|): the largest scale s in [0, 1] with a finite conjugate at s v."""
        largest = float(np.abs(v).max())
        if largest <= self.lam:
            return 1.0
        scale = self.lam / largest
        return scale if scale * largest <= self.lam else math.nextafter(scale, 0.0)

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2: soft thresholding."""
        return np.sign(v) * np.maximum(np.abs(v) - step * self.lam, 0.0)

    def master(self, planes: Planes, blocks: int = 1) -> Master:
        """The master problem over `planes`, whose rows this process must be able to read."""
        return ENGINES[self.engine](planes, self.lam, blocks)
