"""For each property a loss that breaks it: were one to pass, the property would test nothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.losses.base import MarginLoss
from bmrm.losses.prepared import PreparedRows
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


BROKEN = {
    "subgradient_inequality": SteepAtTheKink(),
    "convex_along_segments": Ramp(),
    "slope_is_the_derivative": SlopeOff(),
    "curvature_is_the_second_derivative": CurvatureOff(),
    "value_follows_the_formula": FormulaOff(),
    "kernels_follow_the_formulas": KernelForgetsWeights(),
    "weights_are_repetitions": Unweighted(),
    "weight_zero_is_absence": ZeroIsLittle(),
    "order_of_rows_is_nothing": LaterRowsCostMore(),
    "storage_is_nothing": Impure(),
    "float32_is_near": Restless(),
    "inputs_stay_as_they_are": Overwriting(),
    "infimum_is_never_crossed": BelowItsInfimum(),
    "domain_is_checked": TakesAnything(),
    "chunks_and_threads_are_nothing": MeanOfItsRows(),
    "parts_add_up": MeanOfItsRows(),
    "description_rebuilds_it": Forgetful(),
    "predictions_are_labels": PredictsSigns(),
}
