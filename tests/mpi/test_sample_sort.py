"""Sorting over ranks, and losses of the whole sample without all scores on one of them; ranks are threads here."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmrm.losses import LOSSES
from bmrm.mpi.sample_sort import SampleSort
from bmrm.problem import Targets
from tests.mpi.simulated import on_ranks

FEW_VALUES = st.sampled_from([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5])
"""Differences of exactly 1 among them, and ties."""
SCORES = st.one_of(FEW_VALUES, st.floats(-3.0, 3.0, width=16))
"""Sums of them are exact, so that tables that are equally bad are so to the last digit, in whatever order."""
LABELS = st.integers(0, 1)
SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=5)
"""Rows of each rank."""


def pieces(array, sizes):
    return np.split(array, np.cumsum(sizes)[:-1])


@st.composite
def parted_numbers(draw):
    sizes = draw(SIZES)
    keys = np.array(draw(st.lists(SCORES, min_size=sum(sizes), max_size=sum(sizes))))
    return sizes, keys, np.arange(1.0, len(keys) + 1.0)


@given(parted_numbers())
def test_ranges_follow_each_other_and_answers_go_back(parted):
    sizes, keys, masses = parted
    own_keys, own_masses = pieces(keys, sizes), pieces(masses, sizes)

    def work(group):
        found = SampleSort(group).sort(own_keys[group.rank], own_masses[group.rank])
        sums = found.below(found.beside), found.above(found.beside)
        return found.keys, found.beside, *(found.back(each) for each in (found.beside, *sums))

    results, _ = on_ranks(len(sizes), work)
    np.testing.assert_array_equal(np.concatenate([one[0] for one in results]), np.sort(keys))
    assert sorted(np.concatenate([one[1] for one in results])) == sorted(masses)
    back, below, above = (np.concatenate([one[k] for one in results]) for k in (2, 3, 4))
    np.testing.assert_array_equal(back, masses)
    np.testing.assert_array_equal(below, [masses[keys < key].sum() for key in keys])
    np.testing.assert_array_equal(above, [masses[keys > key].sum() for key in keys])


@pytest.mark.parametrize("kind", ["equal", "two values", "sorted", "random", "one rank", "small and large"])
def test_no_range_is_more_than_three_times_the_mean(kind):
    ranks, each = 8, 4000
    random = np.random.default_rng(0)
    sizes = [each] * ranks
    keys = random.normal(size=ranks * each)
    if kind == "equal":
        keys[:] = 0.5
    elif kind == "two values":
        keys = np.sign(keys)
    elif kind == "sorted":
        keys.sort()
    elif kind == "one rank":
        sizes = [0, 0, ranks * each, *[0] * (ranks - 3)]
    elif kind == "small and large":
        sizes = [ranks * each // 2, *[ranks * each // 2 // (ranks - 1)] * (ranks - 1)]
        keys = keys[: sum(sizes)]
    own = pieces(keys, sizes)
    found, groups = on_ranks(ranks, lambda group: SampleSort(group).sort(own[group.rank]).keys.size)
    assert sum(found) == keys.size
    assert max(found) <= 3 * keys.size / ranks + ranks
    assert max(group.received for group in groups) <= 8 * max(found)


def bound(name, y, weights, **options):
    loss = LOSSES.make(name, options)
    targets = Targets(y, weights)
    summary = loss.summarise(targets)
    return loss, summary, loss.prepare(targets, summary)


def compare(name, sizes, f, y, weights=None, **options):
    """The value and the slopes of all ranks against those in one place."""
    loss, summary, gathered = bound(name, y, weights, **options)
    own_f, own_y = pieces(f, sizes), pieces(y, sizes)
    own_weights = [None] * len(sizes) if weights is None else pieces(weights, sizes)

    def work(group):
        rank = group.rank
        prepared = loss.prepare_over_ranks(Targets(own_y[rank], own_weights[rank]), summary, SampleSort(group))
        prepared.meet()
        return prepared.mass, *prepared.value_and_slope(own_f[rank])

    results, _ = on_ranks(len(sizes), work)
    value, slope = gathered.value_and_slope(f)
    for rank, (mass, own_value, _) in enumerate(results):
        assert mass == pytest.approx(gathered.mass, rel=1e-13)
        assert rank == 0 or own_value == 0.0
    scale = gathered.mass * (1.0 + np.abs(f).max())  # the value is a difference of numbers of this size
    assert results[0][1] == pytest.approx(value, rel=1e-12, abs=1e-14 * scale)
    np.testing.assert_allclose(np.concatenate([one[2] for one in results]), slope, rtol=1e-12, atol=0.0)


@st.composite
def parted_rows(draw, weighted):
    """Rows of both classes, on each rank any of them."""
    sizes = draw(SIZES)
    total = sum(sizes)
    if total < 2:
        sizes = [*sizes, 2 - total]
    total = sum(sizes)
    scores = draw(st.sampled_from([SCORES, FEW_VALUES, st.just(0.0)]))
    f = np.array(draw(st.lists(scores, min_size=total, max_size=total)))
    y = np.array(draw(st.lists(LABELS, min_size=total, max_size=total)), np.float64)
    y[draw(st.integers(0, total - 1))] = 0.0
    if not y.any():
        y[np.flatnonzero(y == 0.0)[draw(st.integers(0, total - 2)) + 1]] = 1.0
    if not weighted or draw(st.booleans()):
        return sizes, f, y, None
    weights = np.array(draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.0]), min_size=total, max_size=total)))
    weights[[np.argmin(y), np.argmax(y)]] = 1.0
    return sizes, f, y, weights


@given(parted_rows(weighted=True))
def test_roc_area(parted):
    compare("roc_area", *parted)


@given(parted_rows(weighted=True), st.sampled_from([0.05, 0.1, 0.5, 0.75, 1.0]))
def test_partial_roc_area(parted, max_fpr):
    compare("partial_roc_area", *parted, max_fpr=max_fpr)


LOST_IN_SUMS = [0, 0, 4], np.array([-2.0, -2.0, 0.5, 1e-219]), np.array([0.0, 1.0, 0.0, 0.0]), None


@given(parted_rows(weighted=False), st.sampled_from([0.25, 0.5, 1.0, 2.0, 5.0]))
@example(LOST_IN_SUMS, 0.25)
def test_f_beta(parted, beta):
    compare("f_beta", *parted, beta=beta)
