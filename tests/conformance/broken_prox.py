"""For each property of proximal maps a loss that breaks it: were one to pass, the property would test nothing."""

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.losses.hinge import Hinge
from bmrm.losses.squared_hinge import SquaredHinge


class TooFar(Hinge):
    def prox(self, z, step, y):
        return super().prox(z, 1.001 * step, y)


class SquareTooFar(SquaredHinge):
    def prox(self, z, step, y):
        f, at = super().prox(z, step, y)
        return f + 1e-9 * (z - f), at


class DerivativeOff(Hinge):
    def prox(self, z, step, y):
        f, at = super().prox(z, step, y)
        return f, 0.999 * at


class OneAtKinks(Hinge):
    def prox(self, z, step, y):
        f, at = super().prox(z, step, y)
        return f, np.ones_like(at)


@jit
def _row_off(z, step, y):
    return z + 1e-9, 1.0


class RowOff(Hinge):
    prox_row = staticmethod(_row_off)


class NeverStill(Hinge):
    def prox(self, z, step, y):
        return super().prox(z, step + 1e-3, y)


class Expanding(Hinge):
    def prox(self, z, step, y):
        f, at = super().prox(z, step, y)
        return 1.001 * f, at


@jit
def _value_off(f, y):
    return 1.0 + max(0.0, 1.0 - y * f)


class ValueOff(Hinge):
    value_row = staticmethod(_value_off)


LAWLESS = [
    ("prox", TooFar()),
    ("derivative of prox", DerivativeOff()),
    ("derivative of prox", OneAtKinks()),
    ("prox contracts", NeverStill()),
    ("prox contracts", Expanding()),
    ("compiled prox", RowOff()),
    ("compiled prox", ValueOff()),
]
"""A law of `bmrm.checks`, and a loss that breaks it."""


@jit
def _row_far_off(z, step, y):
    return z + 1e-3, 1.0


class RowFarOff(Hinge):
    prox_row = staticmethod(_row_far_off)


BROKEN = {
    "slope_is_met": SquareTooFar(),
    "twin_is_the_same": TooFar(),
    "weights_stretch_the_step": RowOff(),
    "conjugate_bounds_the_loss": RowFarOff(),
    "envelope_without_kernels_is_the_same": RowFarOff(),
}
