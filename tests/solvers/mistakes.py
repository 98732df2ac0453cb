"""Deliberate mistakes, as losses and as wholly custom risks: what must never be proved."""

from dataclasses import dataclass

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses.base import RegressionLoss
from bmrm.risk.linear import LinearRisk

ROWS = 60
_random = np.random.default_rng(0)
X = _random.normal(size=(ROWS, 3))
Y = X @ np.array([3.0, -2.0, 1.0]) + _random.normal(size=ROWS)


@dataclass(frozen=True)
class Mistake:
    """Value and slope of a row's residual, and what the loss is said never to go below."""

    value: object
    slope: object
    least: float = 0.0
    smooth: bool = True

    def loss(self):
        mistake = self

        class Wrong(RegressionLoss):
            least = mistake.least
            smooth = mistake.smooth

            def value(self, f, y):
                return mistake.value(f - y)

            def slope(self, f, y):
                return mistake.slope(f - y)

        class Curved(Wrong):
            def curvature(self, f, y):
                r = f - y
                return np.maximum(mistake.slope(r + 5e-6) - mistake.slope(r - 5e-6), 0.0) / 1e-5

        Curved.__name__ = "Wrong"
        return dataclass(frozen=True)(Curved if self.smooth else Wrong)()

    def risk(self, kind):
        return LinearRisk(Dataset.from_arrays(X, Y), self.loss()) if kind == "loss" else Custom(self)


class Custom:
    """The same as a risk of one's own, without scores."""

    dim = 3

    def __init__(self, mistake):
        self.mistake, self.infimum = mistake, mistake.least

    def value_and_subgradient(self, w):
        r = X @ w - Y
        return float(np.mean(self.mistake.value(r))), X.T @ self.mistake.slope(r) / ROWS


def half_square(r):
    return 0.5 * r * r


MISTAKES = {
    "log1p(r^2)": Mistake(lambda r: np.log1p(r * r), lambda r: 2 * r / (1 + r * r)),
    "1 - exp(-r^2)": Mistake(lambda r: 1 - np.exp(-r * r), lambda r: 2 * r * np.exp(-r * r)),
    "slope of the wrong sign": Mistake(half_square, lambda r: -r),
    "slope halved": Mistake(half_square, lambda r: 0.5 * r),
    "slope doubled": Mistake(half_square, lambda r: 2 * r),
    "value of the wrong sign": Mistake(lambda r: -half_square(r), lambda r: r),
    "value of the wrong sign, infimum unknown": Mistake(lambda r: -half_square(r), lambda r: r, -np.inf),
    "infimum that is false": Mistake(half_square, lambda r: r, 2.0),
    "value a sum, slope of the mean": Mistake(lambda r: ROWS * half_square(r), lambda r: r),
    "value a mean twice": Mistake(lambda r: half_square(r) / ROWS, lambda r: r),
    "|r|, slope of the wrong sign": Mistake(np.abs, lambda r: -np.sign(r), smooth=False),
    "|r|, slope halved": Mistake(np.abs, lambda r: 0.5 * np.sign(r), smooth=False),
    "|r|, slope doubled": Mistake(np.abs, lambda r: 2 * np.sign(r), smooth=False),
}
CORRECT = Mistake(half_square, lambda r: r)
