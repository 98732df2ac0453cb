"""Best cut points of many rows: as good as the best kink, though a sample is trusted first."""

import numpy as np
import pytest

from bmrm.losses import LOSSES
from bmrm.losses.ordinal_thresholds import SAMPLE, weighted_quantile
from bmrm.problem import Targets

ROWS = 3 * SAMPLE


def prepared(y, weights, cuts):
    loss, targets = LOSSES.make("ordinal_thresholds", {"cuts": cuts}), Targets(y, weights)
    return loss.prepare(targets, loss.summarise(targets))


def cost_of_cut(f, above, weights, cut):
    return float(np.sum(weights * np.maximum(0.0, np.where(above, 1.0 - f + cut, 1.0 + f - cut))))


def best_by_bisection(f, above, weights):
    """The lowest cost over all kinks: convex in the place, so that a search among sorted kinks finds it."""
    kinks = np.unique(np.where(above, f - 1.0, f + 1.0))
    low, high = 0, kinks.size - 1
    while high > low:
        middle = (low + high) // 2
        left, right = (cost_of_cut(f, above, weights, kinks[k]) for k in (middle, middle + 1))
        low, high = (middle + 1, high) if right < left else (low, middle)
    return cost_of_cut(f, above, weights, kinks[low])


def score_sets():
    rng = np.random.default_rng(0)
    f = rng.normal(size=ROWS)
    misleading = np.where(np.arange(ROWS) % 3 == 0, f + 20.0, f)  # the sample is every third row
    return {"normal": f, "sorted": np.sort(f), "ties": np.round(f), "misleading": misleading, "wide": f**3}


@pytest.mark.parametrize("scores", score_sets())
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", ["all", "immediate"])
def test_value_is_that_of_the_best_places(scores, weighted, cuts):
    f = score_sets()[scores]
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, ROWS) + (f > 0.0)
    weights = rng.choice([0.0, 0.5, 3.0], ROWS) if weighted else np.ones(ROWS)
    value, slope = prepared(y.astype(float), weights if weighted else None, cuts).value_and_slope(f)
    expected = 0.0
    for k in range(4):
        rows = np.ones(ROWS, bool) if cuts == "all" else (y == k) | (y == k + 1)
        expected += best_by_bisection(f[rows], y[rows] > k, weights[rows])
    assert value == pytest.approx(expected, rel=1e-12)
    assert abs(slope.sum()) <= 1e-9 * np.abs(slope).sum()


def test_quantile_with_masses_is_that_of_copies():
    rng = np.random.default_rng(2)
    values, counts = rng.integers(0, 30, 100).astype(float), rng.integers(0, 4, 100)
    for wanted in range(1, counts.sum() + 1):
        copies = weighted_quantile(np.repeat(values, counts), np.empty(0), float(wanted))
        assert weighted_quantile(values, counts.astype(float), float(wanted)) == copies
