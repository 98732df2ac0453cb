"""Measures of rankings against scikit-learn, by hand, and as means over all orders of equal scores."""

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, ndcg_score

from bmrm.metrics import ranked


def all_orders(measure, y, f):
    """The mean over all ways to break ties."""
    values = []
    for order in itertools.permutations(range(len(y))):
        broken = np.lexsort((order, f)).argsort().astype(float)  # ranks from below, ties in the order given
        values.append(measure(y, broken))
    return np.mean(values)


def tied(seed, rows=6):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows).astype(float)
    y[0] = 2.0
    return y, rng.integers(0, 3, rows).astype(float)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ranks", [None, 1, 3, 10])
def test_ndcg_is_that_of_scikit_learn(seed, ranks):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 12).astype(float)
    f = np.round(rng.normal(size=12), seed % 3)
    expected = ndcg_score([2.0**y - 1.0], [f], k=ranks)
    assert ranked.ndcg(y, f, ranks) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_equal_scores_count_as_the_mean_of_all_orders(seed):
    y, f = tied(seed)
    for measure in (
        lambda y, f: ranked.ndcg(y, f, 3),
        ranked.reciprocal_rank,
        lambda y, f: ranked.precision_at(y, f, 4),
        lambda y, f: ranked.recall_at(y, f, 2),
        ranked.break_even,
        ranked.average_precision,
        ranked.winner_found,
    ):
        assert measure(y, f) == pytest.approx(all_orders(measure, y, f), rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    y, f = rng.integers(0, 2, 15).astype(float), rng.normal(size=15)
    assert ranked.average_precision(y, f) == pytest.approx(average_precision_score(y, f), rel=1e-12)


def test_by_hand():
    y, f = np.array([0.0, 1.0, 0.0, 1.0]), np.array([4.0, 3.0, 2.0, 1.0])
    assert ranked.reciprocal_rank(y, f) == 0.5
    assert ranked.precision_at(y, f, 3) == pytest.approx(1 / 3)
    assert ranked.precision_at(y, f, 8) == 0.25
    assert ranked.recall_at(y, f, 8) == 1.0
    assert ranked.break_even(y, f) == 0.5
    assert ranked.average_precision(y, f) == 0.5
    assert ranked.winner_found(y, f) == 0.0
    assert ranked.kendall_tau(np.arange(4.0), f) == -1.0


def test_where_nothing_is_defined():
    none, flat = np.zeros(3), np.ones(3)
    f = np.array([3.0, 1.0, 2.0])
    for measure in (ranked.ndcg, ranked.reciprocal_rank, ranked.break_even, ranked.average_precision):
        assert measure(none, f) is None
    assert ranked.recall_at(none, f, 2) is None
    assert ranked.kendall_tau(flat, f) is None
    assert ranked.kendall_tau(f, flat) == 0.0
    assert ranked.winner_found(flat, f) is None
    assert ranked.ndcg(-flat, f) is None


def test_means_are_over_the_queries_that_count_wherever_their_rows_stand():
    y, f = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([2.0, 1.0, 5.0, 4.0, 9.0, 8.0])
    groups = np.array([7, 7, 3, 3, 5, 5])
    assert ranked.mean_over_queries(ranked.reciprocal_rank, y, f, groups=groups) == 0.75
    order = np.array([5, 0, 2, 4, 3, 1])
    assert ranked.mean_over_queries(ranked.reciprocal_rank, y[order], f[order], groups=groups[order]) == 0.75
    assert ranked.mean_over_queries(ranked.reciprocal_rank, np.zeros(6), f, groups=groups) is None
    assert ranked.mean_over_queries(ranked.reciprocal_rank, y, f, groups=None) == pytest.approx(1 / 2)


@pytest.mark.parametrize("grades", [2, 5, 64, 65, 1000])
def test_kendalls_tau_is_scipys_whether_there_are_few_grades_or_many(grades):
    rng = np.random.default_rng(grades)
    y, f = rng.integers(0, grades, 300).astype(float), rng.normal(size=300).round(1)
    assert ranked.kendall_tau(y, f + y / grades) == pytest.approx(kendalltau(y, f + y / grades).statistic, rel=1e-12)
