"""The squared Euclidean norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.problem import Master, Planes, Vector
from bmrm.registry import check_parameters, parameter
from bmrm.regularizers import register


def _active_set(planes: Planes, lam: float, blocks: int) -> Master:
    from bmrm.masters.simplex_qp import SimplexQP

    return SimplexQP(planes, lam, blocks)


def _cvxopt(planes: Planes, lam: float, blocks: int) -> Master:
    from bmrm.masters.cvxopt_engines import CvxoptQP

    return CvxoptQP(planes, lam, blocks)


ENGINES: dict[str, Callable[[Planes, float, int], Master]] = {"active_set": _active_set, "cvxopt": _cvxopt}


@register("l2")
@dataclass(frozen=True)
class L2:
    """lambda/2 ||w||^2: the regularizer of support vector machines and ridge regression.

    Its conjugate is ||v||^2 / (2 lambda), so that every plane of the risk gives a lower bound (eq. 15 of Teo et al.,
    KDD 2007). The master of the bundle method is a quadratic program over simplices.

    Parameters
    ----------
    lam : lambda > 0.
    engine : who solves the master: `active_set` (ours, hot-started) or `cvxopt` (interior point, each time anew).

    Raises
    ------
    InputError : lambda is not positive and finite, or the engine is unknown.
    """

    smooth: ClassVar[bool] = True
    lam: float = parameter(doc="strength, > 0", above=0.0, below=math.inf, example=0.01)
    engine: str = parameter("active_set", doc="who solves the master problem", choices=tuple(ENGINES), example="cvxopt")
    smooth = True

    def __post_init__(self) -> None:
        check_parameters(self)

    def value(self, w: Vector) -> float:
        """lambda/2 ||w||^2."""
        return 0.5 * self.lam * float(w @ w)

    def subgradient(self, w: Vector) -> Vector:
        """Lambda w."""
        return self.lam * w

    @property
    def modulus(self) -> float:
        """Lambda: Omega is that strongly convex."""
        return self.lam

    def curvature_product(self, f: Vector, step: Vector) -> Vector:
        """Lambda step, the second derivative (the same at every `f`) times `step`."""
        return self.lam * step

    def along(self, w: Vector, step: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t: a quadratic, set up once."""
        ww, ws, ss = float(w @ w), float(w @ step), float(step @ step)
        lam = self.lam

        def evaluate(t: Vector) -> tuple[Vector, Vector]:
            t = np.asarray(t, dtype=np.float64)
            return 0.5 * lam * np.maximum(ww + t * (2.0 * ws + t * ss), 0.0), lam * (ws + t * ss)

        return evaluate

    def conjugate(self, v: Vector) -> float:
        """||v||^2 / (2 lambda), the maximum over w of <v, w> - Omega(w)."""
        return 0.5 * float(v @ v) / self.lam

    def feasible(self, v: Vector) -> float:
        """1.0: the conjugate is finite everywhere."""
        return 1.0

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2."""
        return v / (1.0 + step * self.lam)

    def master(self, planes: Planes, blocks: int = 1) -> Master:
        """The master problem over `planes`, which this process must hold or be able to multiply."""
        return ENGINES[self.engine](planes, self.lam, blocks)
