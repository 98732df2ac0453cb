"""Conjugate gradients for H x = b with a positive definite H, preconditioned (Hestenes & Stiefel 1952)."""

from __future__ import annotations

import math
from collections.abc import Callable

from bmrm.kernels.products.vectors import dot
from bmrm.problem import Vector


class ConjugateGradients:
    """The residual b - H x and the next direction; whoever asks forms products, adds up x and decides when to stop.

    Parameters
    ----------
    residual : at the start.
    inverse : the preconditioner times a residual.

    Attributes
    ----------
    residual, direction : those of now.
    size : <residual, preconditioned residual>, which is 0 where nothing is left.
    """

    def __init__(self, residual: Vector, inverse: Callable[[Vector], Vector]) -> None:
        self._inverse = inverse
        self.residual = residual
        self.direction = inverse(residual)
        self.size = dot(residual, self.direction)

    def advance(self, product: Vector) -> float | None:
        """The multiple of `direction` that x moves by, and on to the next direction; `product` is H direction.

        None, and no change, where the curvature is not positive, or beyond all numbers.
        """
        curvature = dot(self.direction, product)
        if not 0.0 < curvature < math.inf:
            return None
        t = self.size / curvature
        self.residual = self.residual - t * product
        z = self._inverse(self.residual)
        before, self.size = self.size, dot(self.residual, z)
        self.direction = z + (self.size / before if before > 0.0 else 0.0) * self.direction
        return t
