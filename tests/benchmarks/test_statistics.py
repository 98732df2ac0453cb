"""Ratios, geometric means, performance profiles."""

import math

import numpy as np
import pytest

from benchmarks.race.statistics import NOT_REACHED, Interval, geometric_mean, performance_profile, ratio, share_at

pytestmark = pytest.mark.nightly


def test_profile_of_three_problems() -> None:
    found = performance_profile({"a": [1.0, 4.0, math.inf], "b": [2.0, 2.0, 3.0], "c": [math.inf, math.inf, math.inf]})
    assert [share_at(found["a"], t) for t in (1.0, 1.9, 2.0, 100.0)] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])
    assert [share_at(found["b"], t) for t in (1.0, 2.0)] == pytest.approx([2 / 3, 1.0])
    assert share_at(found["c"], 1e9) == 0.0


def test_profile_counts_problems_that_nobody_solved_for_nobody() -> None:
    found = performance_profile({"a": [1.0, math.inf], "b": [1.0, math.inf]})
    assert share_at(found["a"], 1.0) == share_at(found["b"], 50.0) == 0.5


def test_ratio_is_that_of_medians_and_its_interval_holds_it() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = 1.0 + 0.1 * rng.random(9), 2.0 + 0.2 * rng.random(9)
    found = ratio(ours, theirs)
    assert found.middle == pytest.approx(np.median(ours) / np.median(theirs))
    assert 0.45 < found.low <= found.middle <= found.high < 0.55


def test_pairs_take_a_slow_moment_out() -> None:
    slow = np.array([1.0, 1.1, 0.9, 3.0, 1.0, 5.0, 1.0, 2.0, 4.0])
    paired, apart = ratio(0.5 * slow, slow), ratio(0.5 * slow, slow, paired=False)
    assert paired.high - paired.low < 1e-12
    assert apart.high - apart.low > 0.1


def test_geometric_mean() -> None:
    exact = [Interval(one, one, one) for one in (0.5, 0.125)]
    found = geometric_mean(exact)
    assert (found.middle, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))
    assert geometric_mean([exact[0], NOT_REACHED]).middle == math.inf
    assert math.isnan(geometric_mean([]).middle)


def test_interval_of_a_geometric_mean_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    sides = 0.2 * 1.645  # log ratios with a standard deviation of 0.2, their 90 % intervals
    hits = 0
    for _ in range(400):
        middles = np.exp(0.2 * rng.standard_normal(16))
        found = geometric_mean([Interval(m, m * np.exp(-sides), m * np.exp(sides)) for m in middles])
        hits += found.low <= 1.0 <= found.high
    assert 0.86 < hits / 400 < 0.94
