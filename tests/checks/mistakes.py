"""What people get wrong when they write a loss, a risk, a regularizer or a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import bmrm
from bmrm.registry import parameter

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
Y = X @ rng.normal(size=6) + rng.normal(size=60)


@dataclass(frozen=True)
class PseudoHuber(bmrm.RegressionLoss):
    """Nothing is wrong with this one."""

    delta: float = parameter(1.0, above=0.0, doc="half the width of the parabola", example=2.0)
    smooth = True

    def value(self, f, y):
        return self.delta**2 * (np.sqrt(1 + ((f - y) / self.delta) ** 2) - 1)

    def slope(self, f, y):
        return (f - y) / np.sqrt(1 + ((f - y) / self.delta) ** 2)


class Cauchy(PseudoHuber):
    def value(self, f, y):
        return np.log1p((f - y) ** 2)

    def slope(self, f, y):
        return 2 * (f - y) / (1 + (f - y) ** 2)


class Welsch(PseudoHuber):
    def value(self, f, y):
        return 1 - np.exp(-((f - y) ** 2))

    def slope(self, f, y):
        return 2 * (f - y) * np.exp(-((f - y) ** 2))


class WrongSign(PseudoHuber):
    def slope(self, f, y):
        return -super().slope(f, y)


class Halved(PseudoHuber):
    def slope(self, f, y):
        return 0.5 * super().slope(f, y)


class Doubled(PseudoHuber):
    def slope(self, f, y):
        return 2 * super().slope(f, y)


class NegativeValue(PseudoHuber):
    def value(self, f, y):
        return -super().value(f, y)


class FalseInfimum(PseudoHuber):
    def value(self, f, y):
        return super().value(f, y) - 5


class SumOfValues(PseudoHuber):
    def value(self, f, y):
        return np.sum(super().value(f, y))


class SumOfSlopes(PseudoHuber):
    def slope(self, f, y):
        return np.sum(super().slope(f, y))


class Nan(PseudoHuber):
    def value(self, f, y):
        return np.log(f - y)


class InPlace(PseudoHuber):
    def value(self, f, y):
        f -= y
        return f**2


class NoReturn(PseudoHuber):
    def value(self, f, y):
        np.abs(f - y)


class Misspelt(PseudoHuber):
    def value(self, f, y):
        return self.detla * np.abs(f - y)


class NoDataclass(bmrm.RegressionLoss):
    delta: float = parameter(1.0, above=0.0, doc="width")

    def value(self, f, y):
        return self.delta * np.abs(f - y)

    def slope(self, f, y):
        return self.delta * np.sign(f - y)


class OptionOutside(PseudoHuber):
    epsilon: float = parameter(1.0, above=0.0, doc="an option that the decorator has not seen")


@dataclass(frozen=True)
class NoSlope(bmrm.RegressionLoss):
    def value(self, f, y):
        return np.abs(f - y)


class Empty:
    pass


LOSSES = [
    (Cauchy(), "convexity: at f = .*above the chord"),
    (Welsch(), "convexity: at f = .*above the chord"),
    (WrongSign(), "slope: at f = .*differences of values say"),
    (Halved(), "slope: at f = .*differences of values say"),
    (Doubled(), "slope: at f = .*differences of values say"),
    (NegativeValue(), "infimum: at f = .*below the infimum, 0"),
    (FalseInfimum(), "infimum: at f = .*below the infimum, 0, by 4.9"),
    (SumOfValues(), r"shapes: value\(f, y\) gave one number for 3 rows, expected one entry per row: shape \(3,\)"),
    (SumOfSlopes(), r"shapes: slope\(f, y\) gave one number for 3 rows"),
    (Nan(), "finite: at f = .*the value is nan"),
    (InPlace(), "inputs kept: at f = .*the call changed f in place"),
    (NoReturn(), r"shapes: value\(f, y\) gave None"),
    (Misspelt(), r"runs: value\(f, y\) raised AttributeError: .*detla.*mistakes.py, line"),
    (NoDataclass(), "NoDataclass is not a dataclass.*write @dataclass"),
    (OptionOutside(), "options that are no fields of a dataclass .epsilon.*write @dataclass"),
    (NoSlope(), r"runs: slope\(f, y\) raised TypeError: NoSlope does not define slope"),
    (Empty(), "Empty has no `task`"),
    (PseudoHuber, r"loss is the class PseudoHuber, expected an instance: PseudoHuber\(\)"),
]
"""A loss, and what a user must read."""


class LeastSquaresRisk:
    """Nothing is wrong with this one."""

    dim = 6
    infimum = 0.0

    def value_and_subgradient(self, w):
        r = X @ w - Y
        return 0.5 * float(r @ r) / len(Y), X.T @ r / len(Y)


class InFloat32(LeastSquaresRisk):
    """Nor with this one."""

    def value_and_subgradient(self, w):
        A = X.astype(np.float32)
        r = A @ w.astype(np.float32) - Y.astype(np.float32)
        return 0.5 * (r @ r) / np.float32(len(Y)), A.T @ r / np.float32(len(Y))


class Changed(LeastSquaresRisk):
    """The right results, changed by `change`."""

    def value_and_subgradient(self, w):
        return self.change(w, *super().value_and_subgradient(w))


class FiveEntries(Changed):
    def change(self, w, value, a):
        return value, a[:5]


class Column(Changed):
    def change(self, w, value, a):
        return value, a[:, None]


class ValueInArray(Changed):
    def change(self, w, value, a):
        return np.array([value]), a


class ValueOnly(Changed):
    def change(self, w, value, a):
        return value


class NanSlope(Changed):
    def change(self, w, value, a):
        return value, np.nan * a


class NanValue(Changed):
    def change(self, w, value, a):
        return np.nan, a


class MovesW(Changed):
    def change(self, w, value, a):
        w += 1.0
        return value, a


class OneBuffer(Changed):
    buffer: ClassVar[np.ndarray] = np.zeros(6)

    def change(self, w, value, a):
        self.buffer[:] = a
        return value, self.buffer


class NegatedSlope(Changed):
    def change(self, w, value, a):
        return value, -a


class Noisy(Changed):
    def change(self, w, value, a):
        return value + 1e-3 * rng.random(), a


class HighInfimum(LeastSquaresRisk):
    infimum = 100.0


class FloatDim(LeastSquaresRisk):
    dim = 6.0


class NoInfimum:
    dim = 6

    def value_and_subgradient(self, w):
        return LeastSquaresRisk().value_and_subgradient(w)


class NotConvex(LeastSquaresRisk):
    def value_and_subgradient(self, w):
        r = X @ w - Y
        return float(np.log1p(r * r).mean()), X.T @ (2 * r / (1 + r * r)) / len(Y)


RISKS = [
    (FiveEntries(), r"shapes: .*the subgradient has shape \(5,\), expected numbers of shape \(6,\), as w"),
    (Column(), r"shapes: .*the subgradient has shape \(6, 1\)"),
    (ValueInArray(), r"shapes: .*the value has shape \(1,\), expected one number"),
    (ValueOnly(), r"shapes: .*returned float, expected \(value, subgradient\)"),
    (NanSlope(), "finite: .*the subgradient has entries that are not finite"),
    (NanValue(), "finite: .*the value is nan"),
    (MovesW(), "inputs kept: .*changed w in place"),
    (OneBuffer(), "inputs kept: .*changed with the next call: expected a new array"),
    (NegatedSlope(), "slope: at w = .*differences of values say"),
    (Noisy(), "determinism: .*the same point gave the values"),
    (HighInfimum(), "infimum: .*below the infimum, 100, by 9"),
    (FloatDim(), "dim is 6.0, expected a whole number"),
    (NoInfimum(), "NoInfimum has no `infimum`"),
    (NotConvex(), "convexity: at w = .*above the chord"),
]


@dataclass(frozen=True)
class Ridge:
    """Nothing is wrong with this one."""

    lam: float = 1.0
    smooth: ClassVar[bool] = True

    def value(self, w):
        return 0.5 * self.lam * float(w @ w)

    def subgradient(self, w):
        return self.lam * w

    def along(self, w, step):
        def curve(t):
            t = np.asarray(t)
            return 0.5 * self.lam * (w @ w + 2 * t * (w @ step) + t * t * (step @ step)), self.lam * (
                w @ step + t * (step @ step)
            )

        return curve

    def conjugate(self, v):
        return 0.5 * float(v @ v) / self.lam

    def feasible(self, v):
        return 1.0


class HalfConjugate(Ridge):
    def conjugate(self, v):
        return 0.25 * float(v @ v) / self.lam


class SquareRoots(Ridge):
    def value(self, w):
        return self.lam * float(np.sqrt(np.abs(w)).sum())


class WItself(Ridge):
    def subgradient(self, w):
        return w


class NoAlong:
    smooth = True

    def value(self, w):
        return 0.5 * float(w @ w)

    def subgradient(self, w):
        return w.copy()


REGULARIZERS = [
    (HalfConjugate(), r"conjugate: at w = .*Omega\*\(v\) is"),
    (SquareRoots(), "regularizer SquareRoots breaks a law"),
    (WItself(), "inputs kept: .*the subgradient is w itself"),
    (NoAlong(), "NoAlong has no `along`"),
]


@dataclass(frozen=True)
class ReturnsW:
    def minimize(self, risk, regularizer, *, start=None, callback=None):
        return np.zeros(risk.dim)


@dataclass(frozen=True)
class ReturnsNothing:
    def minimize(self, risk, regularizer, *, start=None, callback=None):
        risk.value_and_subgradient(np.zeros(risk.dim))


@dataclass(frozen=True)
class ShortSolution:
    def minimize(self, risk, regularizer, *, start=None, callback=None):
        return bmrm.Solution(np.zeros(3), 1.0, 0.0, bmrm.Status.STALLED, 1, 1.0, 0.0)


SOLVERS = [
    (ReturnsW(), "solver ReturnsW: minimize returned a ndarray, expected a bmrm.Solution"),
    (ReturnsNothing(), "solver ReturnsNothing: minimize returned nothing, expected a bmrm.Solution"),
    (ShortSolution(), r"solver ShortSolution: w of the solution has shape \(3,\), expected \(6,\)"),
    (Empty(), "solver Empty has no `minimize`"),
]
