"""Roots of rising functions, with jumps and without."""

import numpy as np
import pytest

from bmrm.numerics.bracket import Trial
from bmrm.numerics.roots import newton_root, secant_root


def test_newton_root_finds_the_zero_or_the_jump():
    def smooth(b):
        return Trial(b, np.nan, np.tanh(b - 3.0))

    one, other, _ = newton_root(smooth, smooth(-40.0), lambda trial: 1.0 - trial.derivative**2)
    assert one.t == pytest.approx(3.0, abs=1e-12)
    assert other.t == pytest.approx(3.0, abs=1e-12)

    def jump(b):
        return Trial(b, np.nan, -0.25 if b < 1.0 else 0.75)

    one, other, share = newton_root(jump, jump(0.0), lambda trial: 0.0)
    assert one.t < 1.0 <= other.t
    assert share * one.derivative + (1.0 - share) * other.derivative == 0.0


def test_zeros_of_rising_functions():
    assert secant_root(lambda t: t - 3.5) == pytest.approx(3.5, rel=1e-14)
    assert secant_root(lambda t: np.clip(1e-3 * t + 7.0, -2.0, 2.0) - 1.0) == pytest.approx(-6000.0, rel=1e-9)
    assert secant_root(lambda t: np.tanh(t) + 2.0) is None
    assert secant_root(lambda t: 0.0 * t) == 0.0


def test_zeros_that_are_near_enough():
    found, tried = [], []
    for enough in (0.0, 0.1):
        calls = []
        root = secant_root(lambda t, calls=calls: calls.append(t) or np.expm1(t - 3.5), 1.0, enough)
        found.append(abs(float(np.expm1(root - 3.5))))
        tried.append(len(calls))
    assert found[0] <= 1e-15 < found[1] <= 0.1
    assert tried[1] < tried[0]
