"""Losses of compiled functions of one row: all that is generated from them, and that NumPy lines do as well."""

from dataclasses import dataclass

import numpy as np
import pytest

import bmrm
from bmrm.losses._core.smooth_rows import smooth_points
from bmrm.losses.base import RegressionLoss, row, strict_row
from bmrm.losses.exponential import Exponential
from bmrm.losses.hinge import Hinge
from bmrm.registry import parameter


@dataclass(frozen=True)
class OnArrays(RegressionLoss):
    """delta^2 (sqrt(1 + (r / delta)^2) - 1), r = f - y, in NumPy."""

    smooth = True
    delta: float = parameter(1.0, above=0.0, doc="where the parabola turns into lines")

    def value(self, f, y):
        return self.delta * (np.hypot(self.delta, f - y) - self.delta)

    def slope(self, f, y):
        return self.delta * (f - y) / np.hypot(self.delta, f - y)

    def curvature(self, f, y):
        return (self.delta / np.hypot(self.delta, f - y)) ** 3

    def prox(self, z, step, y):
        return smooth_points(self, z, step, y)


@dataclass(frozen=True)
class OfOneRow(RegressionLoss):
    """The same, row by row."""

    smooth = True
    delta: float = parameter(1.0, above=0.0, doc="where the parabola turns into lines")

    @row
    def value_slope(f, y, delta):
        size = np.hypot(delta, f - y)
        return delta * (size - delta), delta * (f - y) / size

    @row
    def curvature(f, y, delta):
        return (delta / np.hypot(delta, f - y)) ** 3

    @strict_row
    def prox(z, step, y, delta):
        f, lower, upper = z, min(z, y), max(z, y)
        for _ in range(200):
            size = np.hypot(delta, f - y)
            rate = 1.0 + step * (delta / size) ** 3
            at = f - z + step * delta * (f - y) / size
            if at == 0.0:
                break
            lower, upper = (lower, f) if at > 0.0 else (f, upper)
            new = f - at / rate
            new = new if lower < new < upper else 0.5 * (lower + upper)
            if abs(new - f) <= 1e-16 * abs(f):
                break
            f = new
        return f, 1.0 / (1.0 + step * (delta / np.hypot(delta, f - y)) ** 3)


@pytest.mark.parametrize("loss", [OnArrays(2.0), OfOneRow(2.0)], ids=lambda loss: type(loss).__name__)
def test_both_forms_keep_the_laws(loss):
    report = bmrm.check_loss(loss)
    assert report.ok, str(report)
    assert "second derivative" in report.held
    assert "prox" in report.held


@pytest.mark.parametrize("solver", ["newton", "semismooth_newton", "lbfgs"])
def test_both_forms_have_one_minimum(solver):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5))
    y = X @ random.normal(size=5) + random.standard_t(2.0, 60)
    weights = random.integers(0, 3, 60).astype(float)
    fits = [
        bmrm.fit(X, y, loss=loss, sample_weight=weights, regularizer=bmrm.L2(0.1), solver=solver, tolerance=1e-8)
        for loss in (OnArrays(0.5), OfOneRow(0.5))
    ]
    assert fits[1].solution.objective == pytest.approx(fits[0].solution.objective, rel=1e-7)


def test_functions_of_a_row_open_dual_coordinate_ascent():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(50, 4)), random.normal(size=50)
    dual, primal = (
        bmrm.fit(X, y, loss=OfOneRow(), regularizer=bmrm.L2(0.1), solver=solver, tolerance=1e-8)
        for solver in ("dual_coordinate", "lbfgs")
    )
    assert dual.solution.objective == pytest.approx(primal.solution.objective, rel=1e-7)


def test_arrays_are_of_any_shape():
    loss, f = OfOneRow(2.0), np.linspace(-3.0, 3.0, 12).reshape(3, 4)
    for y in (1.0, np.ones((3, 1)), np.ones((3, 4))):
        np.testing.assert_allclose(loss.value(f, y), OnArrays(2.0).value(f, y), rtol=1e-12)
        np.testing.assert_allclose(loss.slope(f, y), OnArrays(2.0).slope(f, y), rtol=1e-12)
        np.testing.assert_allclose(loss.curvature(f, y), OnArrays(2.0).curvature(f, y), rtol=1e-12)
    assert loss.value(f.T, 1.0).shape == (4, 3)
    assert loss.value(0.0, 1.0).shape == ()


def test_formulas_of_a_subclass_replace_what_was_generated():
    class Doubled(Hinge):
        def value(self, f, y):
            return 2.0 * super().value(f, y)

        def slope(self, f, y):
            return 2.0 * super().slope(f, y)

    assert Doubled.kernel is None
    assert Doubled.value_row is None
    assert Hinge.kernel is not None


def test_nothing_is_generated_before_it_is_asked_for():
    class Late(Hinge):
        value_slope = row(lambda f, y: (1.0, 0.0))

    late = vars(Late)
    assert "_function" not in vars(late["kernel"])
    assert Late.value_row(0.0, 1.0) == 1.0
    assert "_function" in vars(late["value_row"])
    assert "_function" not in vars(late["kernel"])


def test_weight_0_hides_an_infinite_loss():
    f, y = np.array([1e4, 0.0]), np.array([-1.0, 1.0])
    slope = np.empty(2)
    assert Exponential.kernel(f, y, np.empty(0), slope) == np.inf
    assert Exponential.kernel(f, y, np.array([0.0, 2.0]), slope) == 2.0
    np.testing.assert_array_equal(slope, [0.0, -2.0])
