"""Masks cancel to the last bit, sums are exact, and what one rank sends looks like chance."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.mpi.masks import LARGEST, MOST, Masks, joined, split

UNIT = Fraction(1, 2**120)
ordinary = st.floats(-1e18, 1e18)


def summed(parts):
    """What rank 0 makes of the words of all ranks."""
    return joined(np.sum([split(np.array(part)) for part in parts], axis=0, dtype=np.uint64))


@given(st.lists(st.lists(ordinary, min_size=3, max_size=3), min_size=1, max_size=9))
def test_a_sum_is_that_of_exact_arithmetic(parts):
    for found, *numbers in zip(summed(parts).tolist(), *parts, strict=True):
        exact = sum(map(Fraction, numbers))
        error = abs(Fraction(found) - exact)
        assert error <= UNIT * len(parts) / 2 + Fraction(2 * math.ulp(float(exact)))


@given(st.lists(st.floats(2.0**-67, LARGEST, exclude_max=True), min_size=1, max_size=5), st.booleans())
def test_a_number_alone_is_itself(numbers, negative):
    given = -np.array(numbers) if negative else np.array(numbers)
    np.testing.assert_array_equal(joined(split(given)), given)


def test_the_most_ranks_have_room():
    largest = np.nextafter(LARGEST, 0.0)
    parts = [[largest, -largest, 2.0**-30, -(2.0**-100), np.inf, -np.inf]] * MOST
    found = summed(parts)
    assert found[0] == MOST * largest
    assert found[1] == -MOST * largest
    assert found[2:4].tolist() == [MOST * 2.0**-30, -MOST * 2.0**-100]
    assert np.isposinf(found[4])
    assert np.isnan(found[5])


@pytest.mark.parametrize(
    ("numbers", "wanted"), [((1.0, np.inf), np.inf), ((2.0, np.nan), np.nan), ((0.5, 1e30), np.inf)]
)
def test_what_is_beyond_counts_as_infinite(numbers, wanted):
    """An objective that overflows stays so, on whichever rank."""
    np.testing.assert_equal(summed([[number] for number in numbers])[0], wanted)


@pytest.fixture
def three():
    """The masks of ranks 1, 2 and 3."""
    keys = {(1, 2): b"a" * 32, (1, 3): b"b" * 32, (2, 3): b"c" * 32}
    return [Masks(rank, {a + b - rank: key for (a, b), key in keys.items() if rank in (a, b)}) for rank in (1, 2, 3)]


def test_masks_cancel_sum_after_sum(three):
    random = np.random.default_rng(0)
    for count in (1, 7, 1000):
        parts = random.normal(size=(3, count))
        words = np.sum([mask.masked(part) for mask, part in zip(three, parts, strict=True)], axis=0, dtype=np.uint64)
        np.testing.assert_allclose(three[0].total(words), parts.sum(axis=0), rtol=1e-15, atol=1e-15)


def test_what_one_rank_sends_tells_nothing_of_its_numbers(three):
    first, second, _ = three
    zeros, again, ones = first.masked(np.zeros(4000)), first.masked(np.zeros(4000)), second.masked(np.ones(4000))
    assert not np.any(zeros == again)
    for words in (zeros, again, ones):
        bits = np.unpackbits(words.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 4.0 / math.sqrt(bits.size)
        assert len(np.unique(words)) == words.size
