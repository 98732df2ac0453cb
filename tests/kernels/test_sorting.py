"""Sorting against numpy's, whatever the scores are like."""

import itertools

import numpy as np
import pytest

from bmrm.kernels.rankings.sorting import FEW, ascending, ascending_within

SIZE = 4 * FEW


def kinds(rng):
    return {
        "normal": rng.normal(size=SIZE),
        "ties": rng.integers(-2, 3, SIZE).astype(float),
        "one value": np.full(SIZE, 3.5),
        "cauchy": rng.standard_cauchy(SIZE),
        "outlier": np.append(rng.normal(size=SIZE), 1e300),
        "huge and tiny": np.concatenate((1e-300 * rng.normal(size=SIZE), 1e300 * rng.normal(size=SIZE))),
        "close together": 1e9 + 1e-6 * rng.normal(size=SIZE),
        "one cell": np.concatenate((1e-30 * rng.normal(size=SIZE), np.full(SIZE, 1.0), np.full(SIZE, -1.0))),
        "infinite": np.concatenate((rng.normal(size=SIZE), [np.inf, -np.inf])),
        "rising": np.sort(rng.normal(size=SIZE)),
        "falling": -np.sort(rng.normal(size=SIZE)),
        "few": rng.normal(size=FEW - 1),
        "one": np.ones(1),
        "none": np.empty(0),
    }


@pytest.mark.parametrize("kind", kinds(np.random.default_rng(0)))
def test_order_is_that_of_a_stable_sort(kind):
    f = kinds(np.random.default_rng(0))[kind]
    order, values = ascending(f)
    np.testing.assert_array_equal(order, np.argsort(f, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(f))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 127, 128, 129, 300])
@pytest.mark.parametrize("strange", [[], [0.5, 0.5], [np.inf, -np.inf], [np.inf, np.inf]])
def test_short_pieces_are_sorted_by_pairs_or_by_merging(size, strange):
    f = np.append(np.random.default_rng(2).normal(size=size), strange)
    order, values = ascending_within(f, np.array([0, 0, f.size]))
    np.testing.assert_array_equal(order, np.argsort(f, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(f))


def test_scores_that_are_no_numbers_keep_all_rows():
    f = np.where(np.arange(300) % 7 == 0, np.nan, np.random.default_rng(3).normal(size=300))
    np.testing.assert_array_equal(np.sort(ascending_within(f, np.array([0, 100, 300]))[0]), np.arange(300))


@pytest.mark.parametrize("decimals", [0, 2, 9])
def test_pieces_are_sorted_each_in_its_place(decimals):
    rng = np.random.default_rng(1)
    starts = np.sort(np.concatenate(([0, 5000, 5000], rng.integers(0, 5001, 60))))
    f = np.round(rng.normal(size=5000), decimals)
    order, values = ascending_within(f, starts)
    for a, b in itertools.pairwise(starts):
        np.testing.assert_array_equal(order[a:b], a + np.argsort(f[a:b], kind="stable"))
    np.testing.assert_array_equal(values, f[order])
