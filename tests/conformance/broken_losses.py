"""For each property a loss that breaks it: were one to pass, the property would test nothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.losses._core.prepared import PreparedRows
from bmrm.losses.base import MarginLoss
from bmrm.problem import Targets
from bmrm.registry import parameter


@dataclass(frozen=True)
class Plain(MarginLoss):
    """A hinge without kernels, from which the others are spoilt."""

    def value(self, f, y):
        return np.maximum(0.0, 1.0 - y * f)

    def slope(self, f, y):
        return np.where(y * f < 1.0, -y, 0.0)


class SteepAtTheKink(Plain):
    def slope(self, f, y):
        return np.where(y * f <= 1.0, np.where(y * f == 1.0, -2.0 * y, -y), 0.0)


class Ramp(Plain):
    def value(self, f, y):
        return np.minimum(2.0, np.maximum(0.0, 1.0 - y * f))


class SlopeOff(Plain):
    def slope(self, f, y):
        return 1.001 * super().slope(f, y)


class CurvatureOff(Plain):
    smooth = True

    def value(self, f, y):
        return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2

    def slope(self, f, y):
        return -y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, f, y):
        return np.full_like(f, 2.0)


class FormulaOff(Plain):
    name = "hinge"

    def value(self, f, y):
        return 1.0001 * super().value(f, y)


def _kernel_off(f, y, weights, slope):
    slope[:] = np.where(y * f < 1.0, -y, 0.0)
    return float(np.sum(np.maximum(0.0, 1.0 - y * f)))


class KernelForgetsWeights(Plain):
    kernel = staticmethod(_kernel_off)


class Unweighted(Plain):
    def prepare(self, targets, summary):
        return super().prepare(Targets(targets.y), summary)


class ZeroIsLittle(Plain):
    def prepare(self, targets, summary):
        weights = None if targets.weights is None else np.maximum(targets.weights, 1e-6)
        return super().prepare(Targets(targets.y, weights), summary)


class LaterRowsCostMore(Plain):
    def value(self, f, y):
        return super().value(f, y) * np.arange(f.size)


class Impure(Plain):
    calls: ClassVar[list[int]] = []

    def value(self, f, y):
        self.calls.append(1)
        return super().value(f, y) + len(self.calls)


class Restless(Plain):
    def value(self, f, y):
        return 1.0 + np.sin(1e9 * f)


class Overwriting(Plain):
    def value(self, f, y):
        f *= 0.5
        return super().value(f, y)


class BelowItsInfimum(Plain):
    def value(self, f, y):
        return super().value(f, y) - 1.0


class TakesAnything(Plain):
    def summarise(self, targets):
        return super().summarise(Targets(np.arange(targets.rows) % 2.0))

    def prepare(self, targets, summary):
        return PreparedRows(self, np.where(np.arange(targets.rows) % 2 == 0, -1.0, 1.0), None, 1, ())


class MeanOfItsRows(Plain):
    def value(self, f, y):
        return super().value(f, y) / max(1, f.size)


@dataclass(frozen=True)
class Forgetful(Plain):
    tau: float = parameter(0.5, above=0.0, doc="spoilt when the loss is made", example=0.25)

    def __post_init__(self):
        object.__setattr__(self, "tau", self.tau + 1.0)


class PredictsSigns(Plain):
    def predict(self, f, labels):
        return np.sign(f) * 5.0


class Measureless(Plain):
    metrics = ()


class ValueOfAll(Plain):
    def value(self, f, y):
        return np.sum(super().value(f, y))


class SlopeOfAll(Plain):
    def slope(self, f, y):
        return np.sum(super().slope(f, y))


class SaysSmooth(Plain):
    smooth = True


def _along_off(f, step, y, weights, ts, values, derivatives):
    for k, t in enumerate(ts):
        values[k] = 1.001 * np.sum(np.maximum(0.0, 1.0 - y * (f + t * step)))
        derivatives[k] = np.sum(np.where(y * (f + t * step) < 1.0, -y, 0.0) * step)


class AlongOff(Plain):
    along_kernel = staticmethod(_along_off)


class SlopeDownwards(Plain):
    def slope(self, f, y):
        return -super().slope(f, y)


class Halved(Plain):
    def slope(self, f, y):
        return 0.5 * super().slope(f, y)


class NotANumber(Plain):
    def value(self, f, y):
        return np.log(super().value(f, y) - 0.5)


class Misspelt(Plain):
    def value(self, f, y):
        return self.scael * super().value(f, y)


class OneSlopeForAll(Plain):
    buffer: ClassVar[dict[int, np.ndarray]] = {}

    def prepare(self, targets, summary):
        prepared = super().prepare(targets, summary)
        own = prepared.value_and_slope

        def value_and_slope(f):
            value, slope = own(f)
            kept = self.buffer.setdefault(slope.size, np.empty(slope.size))
            kept[:] = slope
            return value, kept

        prepared.value_and_slope = value_and_slope
        return prepared


LAWLESS = [
    ("dataclass", Forgetful()),
    ("shapes", ValueOfAll()),
    ("shapes", SlopeOfAll()),
    ("finite", NotANumber()),
    ("runs", Misspelt()),
    ("inputs kept", Overwriting()),
    ("inputs kept", OneSlopeForAll()),
    ("determinism", Impure()),
    ("infimum", BelowItsInfimum()),
    ("slope", SlopeOff()),
    ("slope", SlopeDownwards()),
    ("slope", Halved()),
    ("convexity", Ramp()),
    ("convexity", Restless()),
    ("subgradient", SteepAtTheKink()),
    ("smoothness", SaysSmooth()),
    ("second derivative", CurvatureOff()),
    ("along", AlongOff()),
    ("sum over rows", MeanOfItsRows()),
    ("order of rows", LaterRowsCostMore()),
    ("weights", Unweighted()),
    ("weights", KernelForgetsWeights()),
    ("weight 0", ZeroIsLittle()),
    ("predictions", PredictsSigns()),
]
"""A law of `bmrm.checks`, and a loss that breaks it."""


class SaysQuadratic(Plain):
    quadratic = True


BROKEN = {
    "value_follows_the_formula": FormulaOff(),
    "kernels_follow_the_formulas": KernelForgetsWeights(),
    "storage_is_nothing": Impure(),
    "float32_is_near": Restless(),
    "inputs_stay_as_they_are": Overwriting(),
    "domain_is_checked": TakesAnything(),
    "chunks_and_threads_are_nothing": MeanOfItsRows(),
    "parts_add_up": MeanOfItsRows(),
    "description_rebuilds_it": Forgetful(),
    "measures_are_named": Measureless(),
    "slopes_are_linear_where_it_is_quadratic": SaysQuadratic(),
}
