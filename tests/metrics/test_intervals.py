"""Intervals over folds against SciPy's and by hand."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from bmrm.metrics.core import ScoredRows
from bmrm.metrics.intervals import interval_over_folds, parts_of, t_interval
from bmrm.problem import InputError


@pytest.mark.parametrize("count", [2, 3, 4, 9, 10, 101])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_interval_is_that_of_scipy(confidence, count):
    values = np.random.default_rng(0).random(count)
    ours = t_interval(values, confidence)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(confidence)
    assert (ours.mean, ours.low, ours.high) == pytest.approx((values.mean(), low, high), rel=1e-12)


def test_by_hand():
    """Values 0.8 and 0.9: deviation 0.0707, t = 12.706 for one degree of freedom."""
    interval = t_interval([0.8, 0.9])
    assert interval.low == pytest.approx(0.85 - 12.7062 * 0.05, abs=1e-4)
    assert str(interval) == "0.8500 (0.2147 to 1.4853)"


def test_one_area_for_each_fold():
    random = np.random.default_rng(1)
    y, f, fold = random.integers(0, 2, 200), random.normal(size=200), np.arange(200) % 10
    f += y
    scored = ScoredRows(y, f, (f > 0).astype(int), None, 2, {})
    interval = interval_over_folds(parts_of(scored, fold))
    assert interval.values == pytest.approx([roc_auc_score(y[fold == k], f[fold == k]) for k in range(10)])
    assert interval.low < interval.mean < interval.high


def test_coverage_of_the_interval():
    random = np.random.default_rng(2)
    inside = [i.low < 0.0 < i.high for i in (t_interval(row) for row in random.normal(size=(2000, 10)))]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(InputError, match="two values"):
        t_interval([1.0])
    with pytest.raises(InputError, match="confidence"):
        t_interval([1.0, 2.0], 1.0)
    y = np.array([0, 0, 1, 1])
    with pytest.raises(InputError, match="fold 0"):
        interval_over_folds(parts_of(ScoredRows(y, y * 1.0, y, None, 2, {}), np.array([0, 0, 1, 1])))


def test_an_interval_ends_where_the_measure_does():
    """Folds that are nearly all right: Student's interval alone would go on beyond 1."""
    y = np.tile([0.0, 1.0], 100)
    predicted = y.copy()
    predicted[[3, 7, 11]] = 1.0 - y[[3, 7, 11]]
    rows = ScoredRows(y, 2.0 * predicted - 1.0, predicted, None, 2, {})
    found = interval_over_folds(parts_of(rows, np.arange(200) // 40), "accuracy")
    student = t_interval(found.values)
    assert student.high > 1.0
    assert (found.low, found.high) == (student.low, 1.0)
