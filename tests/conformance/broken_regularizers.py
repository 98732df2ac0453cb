"""For each law of regularizers one that breaks it: were one to pass, the law would test nothing."""

from dataclasses import dataclass

import numpy as np

from bmrm.masters.l2_active_set import SimplexQP
from bmrm.problem import MasterSolution
from bmrm.registry import parameter
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2


@dataclass(frozen=True)
class Forgetful(L2):
    share: float = parameter(0.5, above=0.0, doc="spoilt when it is made", example=0.25)

    def __post_init__(self):
        object.__setattr__(self, "share", self.share + 1.0)


class ValuePerWeight(L2):
    def value(self, w):
        return 0.5 * self.lam * w * w


class Short(L2):
    def subgradient(self, w):
        return self.lam * w[:-1]


class Itself(L2):
    def subgradient(self, w):
        return w


class Overwriting(L2):
    def subgradient(self, w):
        w *= self.lam
        return w.copy()


class Drawn(L2):
    def value(self, w):
        return super().value(w) * (1.0 + 0.01 * np.random.default_rng().random())


class Below(L2):
    def value(self, w):
        return super().value(w) - 1.0


class SlopeOff(L2):
    def subgradient(self, w):
        return 1.001 * self.lam * w


class Roots(L1):
    def value(self, w):
        return self.lam * float(np.sqrt(np.abs(w)).sum())

    def subgradient(self, w):
        return 0.5 * self.lam * np.sign(w) / np.sqrt(np.where(w == 0.0, 1.0, np.abs(w)))


class SteepAtZero(L1):
    def subgradient(self, w):
        return np.where(w == 0.0, 2.0 * self.lam, self.lam * np.sign(w))


class SaysSmooth(L1):
    smooth = True


class AlongOff(L2):
    def along(self, w, step):
        own = super().along(w, step)
        return lambda t: (1.001 * own(t)[0], own(t)[1])


class CurvatureOff(L2):
    def hessian_product(self, f, step):
        return 2.0 * self.lam * step


class ConjugateHalf(L2):
    def conjugate(self, v):
        return 0.25 * float(v @ v) / self.lam


class ConjugateDouble(L2):
    def conjugate(self, v):
        return float(v @ v) / self.lam


class Infeasible(L1):
    def feasible(self, v):
        return 1.0


class Timid(L1):
    def feasible(self, v):
        return 0.5 * super().feasible(v)


class ProxOff(L2):
    def prox(self, v, step):
        return v / (1.0 + 1.001 * step * self.lam)


class Stiffer(L2):
    @property
    def modulus(self):
        return 1.01 * self.lam


class MoreThanBoth(L2):
    @property
    def l2(self):
        return 1.01 * self.lam


class Boastful(SimplexQP):
    def solve(self, accuracy):
        found = super().solve(accuracy)
        return MasterSolution(found.w, found.multipliers, found.lower_bound + 0.01)


class BoundAbove(L2):
    def master(self, planes):
        return Boastful(planes, self.lam)


class Hasty(SimplexQP):
    def solve(self, accuracy):
        found = super().solve(accuracy)
        return MasterSolution(0.9 * found.w, found.multipliers, found.lower_bound)


class FarFromTheMinimum(L2):
    def master(self, planes):
        return Hasty(planes, self.lam)


LAWLESS = [
    ("dataclass", Forgetful(0.1)),
    ("shapes", ValuePerWeight(0.1)),
    ("shapes", Short(0.1)),
    ("inputs kept", Itself(1.0)),
    ("inputs kept", Overwriting(0.1)),
    ("determinism", Drawn(0.1)),
    ("infimum", Below(0.1)),
    ("slope", SlopeOff(0.1)),
    ("convexity", Roots(0.1)),
    ("subgradient", SteepAtZero(0.1)),
    ("smoothness", SaysSmooth(0.1)),
    ("along", AlongOff(0.1)),
    ("second derivative", CurvatureOff(0.1)),
    ("conjugate", ConjugateHalf(0.1)),
    ("conjugate", ConjugateDouble(0.1)),
    ("feasible", Infeasible(0.1)),
    ("feasible", Timid(0.1)),
    ("prox", ProxOff(0.1)),
    ("strong convexity", Stiffer(0.1)),
    ("elastic", MoreThanBoth(0.1)),
    ("master", BoundAbove(0.1)),
    ("master", FarFromTheMinimum(0.1)),
]
"""A law of `bmrm.checks`, and a regularizer that breaks it."""
