"""The one-dimensional searches against exhaustive references, and what their rules promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.numerics.bracket import Trial
from bmrm.numerics.line_search import enough, minimize_along, step_length, wolfe_search


def hinge_line(seed: int, quadratic: float):
    """A mean of hinges plus a quadratic, its minimum over t >= 0, and a counter of evaluations."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, 60))
    count = [0]

    def function(t):
        count[0] += len(t)
        short = np.maximum(0.0, 1.0 - (a[:, None] + b[:, None] * t))
        value = short.mean(axis=0) + quadratic * (t - 0.3) ** 2
        derivative = np.where(short > 0.0, -b[:, None], 0.0).mean(axis=0) + 2.0 * quadratic * (t - 0.3)
        return value, derivative

    # between kinks the function is a parabola: its minimum is at a kink, at 0, or at the vertex of a piece
    kinks = np.sort(np.concatenate(([0.0], (1.0 - a) / b)))
    kinks = kinks[kinks >= 0.0]
    points = [kinks]
    if quadratic > 0.0:
        middles = np.append(0.5 * (kinks[1:] + kinks[:-1]), kinks[-1] + 1.0)
        vertices = middles - function(middles)[1] / (2.0 * quadratic)
        points.append(vertices[vertices >= 0.0])
    best = function(np.concatenate(points))[0].min()
    count[0] = 0
    return function, best, count


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.1, 10.0]), st.sampled_from([1, 3]), st.floats(1e-4, 10.0))
def test_finds_the_minimum_within_the_accuracy(seed, quadratic, batch, first):
    function, best, count = hinge_line(seed, quadratic)
    found = minimize_along(function, 1e-9, batch=batch, first=first)
    assert found.value <= best + 1e-9 + 1e-9 * abs(best)
    assert found.value == pytest.approx(function(np.array([found.t]))[0][0], rel=1e-14)
    assert count[0] <= 120


def test_a_function_that_rises_is_left_where_it_starts():
    found = minimize_along(lambda t: (1.0 + t, np.ones_like(t)), 1e-12)
    assert found.t <= 1e-9


def test_a_quadratic_takes_few_points():
    asked = []

    def parabola(t):
        asked.extend(t)
        return (t - 0.7) ** 2, 2.0 * (t - 0.7)

    found = minimize_along(parabola, 1e-12)
    assert found.t == pytest.approx(0.7)
    assert len(asked) <= 5


def test_the_step_may_be_longer_than_one():
    found = minimize_along(lambda t: ((t - 123.0) ** 2, 2.0 * (t - 123.0)), 1e-9)
    assert found.t == pytest.approx(123.0, rel=1e-4)


def test_overflow_on_the_way_is_a_wall():
    def steep(t):
        value = np.where(t > 2.0, np.inf, (t - 1.5) ** 2)
        return value, np.where(t > 2.0, np.inf, 2.0 * (t - 1.5))

    found = minimize_along(steep, 1e-10, first=64.0)
    assert found.t == pytest.approx(1.5, abs=1e-4)


def test_the_descent_is_seen_from_a_kink():
    """At t = 0 the subgradient at hand belongs to the rising side; the function falls all the same."""

    def kinked(t):
        value = np.where(t <= 0.0, 2.0 * t, -t) + 2.0 * np.maximum(0.0, t - 1.0)
        return value, np.where(t <= 0.0, 2.0, -1.0) + 2.0 * (t > 1.0)

    assert minimize_along(kinked, 1e-9).t == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("first", [1e-6, 1.0, 1e4])
def test_step_length_leaves_little_of_the_derivative(first):
    def wall(t):
        inside = t < 5.0
        return np.where(inside, (t - 3.0) ** 4, np.inf), np.where(inside, 4.0 * (t - 3.0) ** 3, np.nan)

    t = step_length(wall, -108.0, first)
    assert abs(wall(np.array([t]))[1][0]) <= 0.1 * 108.0
    assert step_length(wall, 1.0) == 0.0


@pytest.mark.parametrize("minimum", [1e-3, 0.3, 1.0, 40.0, 1e5])
@pytest.mark.parametrize("left", [0.9, 0.1])
def test_a_step_is_found_wherever_the_minimum_is(minimum, left):
    def function(ts):
        with np.errstate(over="ignore"):  # a wall far beyond the minimum
            return np.cosh(ts / minimum - 1.0), np.sinh(ts / minimum - 1.0) / minimum

    here, slope = (float(part[0]) for part in function(np.zeros(1)))
    first = Trial(1.0, *(float(part[0]) for part in function(np.ones(1))))
    found = wolfe_search(function, here, slope, first, left)
    assert found is not None
    assert found.value <= here + 1e-4 * found.t * slope
    assert abs(found.derivative) <= left * abs(slope)


def test_there_is_no_step_at_a_kink_nor_up_a_wall():
    def kink(ts):
        return np.where(ts < 0.0, -ts, ts), np.where(ts < 0.0, -1.0, 1.0)

    def wall(ts):
        return np.full(len(ts), np.inf), np.full(len(ts), np.inf)

    for function in (kink, wall):
        first = Trial(1.0, *(float(part[0]) for part in function(np.ones(1))))
        assert not enough(first, 0.0, -1.0, 0.9)
        assert wolfe_search(function, 0.0, -1.0, first, 0.9) is None


@pytest.mark.parametrize("kink", [0.37, 1e-4, 1e-9])
def test_weak_conditions_hold_beyond_a_kink_after_few_trials(kink):
    """However much too long the first trial is: the tangents of a bracket meet at the kink."""
    asked = []

    def function(ts):
        asked.append(ts)
        return np.where(ts < kink, kink - ts, 3.0 * (ts - kink)), np.where(ts < kink, -1.0, 3.0)

    first = Trial(1.0, *(float(part[0]) for part in function(np.ones(1))))
    found = wolfe_search(function, kink, -1.0, first, 0.9, kinked=True)
    assert found is not None
    assert found.value <= kink - 1e-4 * found.t
    assert found.derivative >= -0.9
    assert len(asked) < 15


def test_tangents_that_are_parallel_meet_nowhere():
    """Slopes that are equal by rounding, the value higher at the far end: no division by 0."""

    def function(ts):
        return ts * 1.0, np.where(ts == 0.0, -1e-300, 0.0)

    first = Trial(1.0, 1.0, -1e-300)
    assert wolfe_search(function, 0.0, -1e-300, first, 0.9, kinked=True) is None


@pytest.mark.parametrize("bend", [0.0, 1e-5])
def test_a_kink_is_seen_after_few_trials_and_a_sharp_bend_is_none(bend):
    asked = []

    def function(ts):
        asked.append(ts)
        x = ts - 0.37
        return np.sqrt(x**2 + bend**2), x / np.sqrt(x**2 + bend**2)

    here, slope = (float(part[0]) for part in function(np.zeros(1)))
    first = Trial(1.0, *(float(part[0]) for part in function(np.ones(1))))
    found = wolfe_search(function, here, slope, first, 0.9)
    assert (found is None) is (bend == 0.0)
    assert len(asked) < 30
