"""Decimal text to float64 against Python's float."""

import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.kernels.text.decimal import LEAST_POWER, POWERS, number, product, short_number

BITS = np.zeros(1, np.uint64)
CELL = BITS.view(np.float64)


def read(text):
    """The number, or None where the kernel leaves it to Python."""
    value, at, certain = number(np.frombuffer(text.encode() + b" ", np.uint8), 0, POWERS, BITS, CELL)
    assert not certain or at == len(text)
    return value if certain else None


def same(text):
    """Check the bits; True where the kernel was certain."""
    value = read(text)
    assert value is None or struct.pack("d", value) == struct.pack("d", float(text)), text
    return value is not None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_text_of_any_float(value):
    assert same(repr(value)) or 0 < abs(value) < 2.3e-308


@given(st.integers(0, 10**30), st.integers(0, 10**30), st.integers(-420, 420), st.sampled_from(["", "+", "-"]))
def test_any_decimal(whole, part, power, sign):
    same(f"{sign}{whole}.{part}e{power}")
    same(f"{sign}{whole}")
    same(f".{part}")


def test_many_random_numbers_are_decided_without_python():
    rng = random.Random(0)
    texts = [f"{rng.uniform(-1, 1) * 10.0 ** rng.randint(-250, 250):.{rng.randint(0, 18)}e}" for _ in range(20_000)]
    assert sum(map(same, texts)) == len(texts)


def test_half_way_between_two_floats():
    rng = random.Random(1)
    decided = 0
    for _ in range(5_000):
        low = rng.getrandbits(53) | 1 << 52
        middle = Fraction(2 * low + 1) * Fraction(2) ** rng.randint(-70, 70) / 2
        digits = middle.denominator.bit_length() - 1  # the denominator is a power of two
        exact = middle.numerator * 5**digits
        for near in (exact - 1, exact, exact + 1):
            decided += same(f"{near}e-{digits}")
    assert decided > 0


@pytest.mark.parametrize("text", ["9007199254740993", "9007199254740995", "18014398509481986", "36028797018963972e0"])
def test_ties_go_to_even_without_python(text):
    assert same(text)


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-0",
        "+0.0",
        "0e999",
        "00000000000000000000000000001",
        "0.00000000000000000000000000000000001",
        "5.",
        ".5",
        "1e22",
        "1e23",
        "123456789012345678901234567890",
        "9" * 19,
        "9" * 20,
        "1" + "0" * 60,
        "-1E+5",
        "1e-00005",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "0." + "0" * 300 + "1",
        "1" + "0" * 308,
    ],
)
def test_well_formed(text):
    assert same(text)


@pytest.mark.parametrize(
    "text", ["", "-", "+", ".", "-.", "e5", "1e", "1e+", "1e-", "nan", "inf", "--1", "1e309", "4e-320"]
)
def test_left_to_python(text):
    assert read(text) is None


@pytest.mark.parametrize(("text", "end"), [("12:3", 2), ("1.5.5", 3), ("1_0", 1), ("1e5e5", 3), ("1-", 1)])
def test_stops_behind_the_number(text, end):
    value, at, certain = number(np.frombuffer(text.encode() + b" ", np.uint8), 0, POWERS, BITS, CELL)
    assert certain
    assert at == end
    assert value == float(text[:end])


@given(st.from_regex(r"-?[0-9]{0,9}(\.[0-9]{0,9})?", fullmatch=True))
def test_short_numbers(text):
    value, at, good = short_number.py_func(np.frombuffer(text.encode() + b" ", np.uint8), 0)
    digits = sum(map(str.isdigit, text))
    assert good == (0 < digits <= 15)
    if good:
        assert at == len(text)
        assert struct.pack("d", value) == struct.pack("d", float(text))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_product(a, b):
    high, low = product(np.uint64(a), np.uint64(b))
    assert int(high) << 64 | int(low) == a * b


def test_powers_of_five_are_within_one_unit():
    for row in range(0, POWERS.shape[0], 13):
        power = Fraction(5) ** (row + LEAST_POWER)
        found = Fraction(int(POWERS[row, 0]) << 64 | int(POWERS[row, 1]))
        assert 2**127 <= found < 2**128
        scale = Fraction(2) ** round(np.log2(float(found)) - (row + LEAST_POWER) * np.log2(5.0))
        assert abs(found - power * scale) <= 1
