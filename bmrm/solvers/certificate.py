"""What planes of the risk prove about the minimum: eq. 15 of the KDD 2007 paper, and the best mixture of two."""

from __future__ import annotations

import math

from bmrm.problem import HasConjugate, Regularizer, Vector, provides


def plane_bound(regularizer: Regularizer, a: Vector, b: float, infimum: float) -> float:
    """The lower bound of min J that one plane R(w) >= <a, w> + b proves; -inf where it proves nothing.

    min over w of Omega(w) + s (<a, w> + b) + (1 - s) infimum, with s the largest for which it is finite.
    """
    if not provides(regularizer, HasConjugate):
        return -math.inf
    scale = regularizer.feasible(-a)
    if scale < 1.0 and not math.isfinite(infimum):
        return -math.inf
    floor = (1.0 - scale) * infimum if scale < 1.0 else 0.0
    bound = scale * b + floor - regularizer.conjugate(-scale * a)
    return bound if not math.isnan(bound) else -math.inf


class Certificate:
    """One plane of the risk, mixed anew with every plane that arrives so that its bound rises the most.

    A mixture of planes is a plane, so its bound is true. The mixing weight comes from the parabola through three
    bounds, exact for quadratic conjugates: a Frank-Wolfe step in the dual, which converges where single planes,
    taken at points that oscillate, prove little. Memory is one vector.
    """

    def __init__(self, regularizer: Regularizer, infimum: float) -> None:
        self._regularizer = regularizer
        self._infimum = infimum
        self._a: Vector | None = None
        self._b = 0.0
        self.bound = -math.inf

    def add(self, a: Vector, b: float) -> float:
        """Take the plane R(w) >= <a, w> + b into account; the best bound so far."""
        if not (math.isfinite(b) and provides(self._regularizer, HasConjugate)):
            return self.bound
        alone = self._bound(a, b)
        if self._a is None or not math.isfinite(self.bound):
            self._keep(a.copy(), b, alone)
            return self.bound
        known, middle = self.bound, self._bound(*self._mixed(a, b, 0.5))
        bend = 2.0 * (2.0 * middle - known - alone)
        share = 0.5 + 0.5 * (alone - known) / bend if bend > 0.0 else 0.5
        share = min(max(share, 0.0), 1.0)
        best = max((known, 0.0), (middle, 0.5), (alone, 1.0), (self._bound(*self._mixed(a, b, share)), share))
        if best[0] > known:
            self._keep(*self._mixed(a, b, best[1]), best[0])
        return self.bound

    def point(self) -> tuple[Vector, float] | None:
        """A' s of the dual point that proves `bound`, for which the conjugate is finite, and `bound`; None without."""
        if self._a is None or not math.isfinite(self.bound):
            return None
        regularizer = self._regularizer
        assert provides(regularizer, HasConjugate)
        return regularizer.feasible(-self._a) * self._a, self.bound

    def _mixed(self, a: Vector, b: float, share: float) -> tuple[Vector, float]:
        assert self._a is not None
        return (1.0 - share) * self._a + share * a, (1.0 - share) * self._b + share * b

    def _bound(self, a: Vector, b: float) -> float:
        return plane_bound(self._regularizer, a, b, self._infimum)

    def _keep(self, a: Vector, b: float, bound: float) -> None:
        self._a, self._b, self.bound = a, b, bound
