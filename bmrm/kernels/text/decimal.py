"""Decimal text to float64, to the same bits as Python's `float`.

Short numbers are exact in float64 arithmetic (W. Clinger, "How to read floating point numbers accurately", PLDI 1990):
a mantissa up to 2^53 times or over a power of ten up to 10^22 is rounded once. The others follow D. Lemire, "Number
parsing at a gigabyte per second", Software: Practice and Experience 51 (2021): the mantissa times a 128-bit
approximation of the power of five decides the rounding, or says that it cannot. What cannot be decided here, and what
is not a plain finite decimal, is left to the caller, who asks Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit

LEAST_POWER, MOST_POWER = -342, 308
"""Decimal exponents beyond these give 0 or infinity for every 64-bit mantissa."""


def _powers_of_five() -> NDArray[np.uint64]:
    """The leading 128 bits of 5^q, as (high, low), for q from LEAST_POWER to MOST_POWER; rounded up where q < 0."""
    table = np.empty((MOST_POWER - LEAST_POWER + 1, 2), np.uint64)
    for q in range(LEAST_POWER, MOST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            # The least b with 5^-q <= 2^b; for small -q exactly 128 bits of the quotient, else truncated from more.
            least = (power - 1).bit_length()
            bits = (1 << (least + 127 if q >= -27 else 2 * least + 128)) // power + 1
            bits >>= bits.bit_length() - 128
        table[q - LEAST_POWER] = bits >> 64, bits & (2**64 - 1)
    return table


POWERS = _powers_of_five()
TENS = np.array([10.0**k for k in range(23)])
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_ZERO, _ONE, _TWO, _THREE, _TEN = (np.uint64(k) for k in (0, 1, 2, 3, 10))
_NINE_BITS, _ALL_BITS = np.uint64(0x1FF), np.uint64(0xFFFFFFFFFFFFFFFF)
_HIDDEN, _ABOVE = np.uint64(1 << 52), np.uint64(1 << 53)
_FRACTION, _TOP, _NINE = np.uint64(52), np.uint64(63), np.uint64(9)
_EXACT_DIGITS = 15
_SIGNIFICANT = 19
"""Decimal digits that always fit in 64 bits."""


@jit
def product(a: Any, b: Any) -> Any:
    """The 128-bit product of two uint64, as (high, low)."""
    a0, a1, b0, b1 = a & _LOW_HALF, a >> _HALF, b & _LOW_HALF, b >> _HALF
    low, left, right = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (left & _LOW_HALF) + (right & _LOW_HALF)
    high = a1 * b1 + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF)
    return high, (low & _LOW_HALF) | (middle << _HALF)


@jit
def float_bits(mantissa: Any, exponent: Any, powers: Any) -> Any:
    """The bits of the float64 nearest to mantissa * 10^exponent, and whether they are certain.

    `mantissa` is a uint64 above 0. Subnormal and infinite results count as not certain.
    """
    if exponent < LEAST_POWER or exponent > MOST_POWER:
        return _ZERO, False
    shift = 0
    scaled = mantissa
    for step in (32, 16, 8, 4, 2, 1):
        if (scaled >> np.uint64(64 - step)) == _ZERO:
            scaled = scaled << np.uint64(step)
            shift += step
    row = exponent - LEAST_POWER
    high, low = product(scaled, powers[row, 0])
    if (high & _NINE_BITS) == _NINE_BITS:
        carry, _ = product(scaled, powers[row, 1])
        low = low + carry
        if low < carry:
            high = high + _ONE
        if low == _ALL_BITS:
            return _ZERO, False
    upper = high >> _TOP
    kept = high >> (upper + _NINE)
    # floor(exponent * log2(10)) in fixed point, exact over the whole range of exponents
    binary = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - shift + 1023
    if binary <= 0:
        return _ZERO, False
    if low <= _ONE and -4 <= exponent <= 23 and (kept & _THREE) == _ONE and (kept << (upper + _NINE)) == high:
        kept = kept - _ONE  # exactly half-way: to even
    kept = (kept + (kept & _ONE)) >> _ONE
    if kept >= _ABOVE:
        kept = _HIDDEN
        binary += 1
    if binary >= 2047:
        return _ZERO, False
    return (kept - _HIDDEN) | (np.uint64(binary) << _FRACTION), True


@jit
def long_mantissa(text: Any, start: Any, stop: Any) -> Any:
    """The first 19 significant digits of text[start:stop], their decimal exponent, whether a digit not 0 was left."""
    mantissa, taken, exponent, pointed, truncated = _ZERO, 0, 0, False, False
    for at in range(start, stop):
        if text[np.uint64(at)] == 46:
            pointed = True
            continue
        digit = np.uint64(text[np.uint64(at)] - 48)
        if taken < _SIGNIFICANT:
            mantissa = mantissa * _TEN + digit
            taken += 1 if mantissa > _ZERO else 0
            exponent -= 1 if pointed else 0
        else:
            truncated = truncated or digit != _ZERO
            exponent += 0 if pointed else 1
    return mantissa, exponent, truncated


@inlined
def short_number(text: Any, at: Any) -> Any:
    """`number` for at most 15 digits without an exponent: small enough to be compiled into the loop that calls it."""
    negative = text[np.uint64(at)] == 45
    if negative:
        at += 1
    start = at
    whole = 0
    while 48 <= text[np.uint64(at)] <= 57:
        whole = whole * 10 + np.int64(text[np.uint64(at)] - 48)
        at += 1
    digits = at - start
    decimals = 0
    if text[np.uint64(at)] == 46:
        at += 1
        start = at
        while 48 <= text[np.uint64(at)] <= 57:
            whole = whole * 10 + np.int64(text[np.uint64(at)] - 48)
            at += 1
        decimals = at - start
        digits += decimals
    if digits == 0 or digits > _EXACT_DIGITS:
        return 0.0, at, False
    result = np.float64(whole)
    if decimals > 0:
        result = result / TENS[decimals]
    return (-result if negative else result), at, True


@jit
def number(text: Any, at: Any, powers: Any, bits: Any, value: Any) -> Any:
    """Read the decimal number at `text[np.uint64(at)]`.

    `text` (uint8) must go on after the number with a byte that is not a digit, '.', 'e' or 'E'. `bits` (1,) uint64 and
    `value` (1,) float64 are one memory cell seen in two ways. Returns the number, the place behind it, and whether it
    is certain; where it is not, the other two mean nothing.
    """
    negative = text[np.uint64(at)] == 45
    if negative or text[np.uint64(at)] == 43:
        at += 1
    start = at
    mantissa = _ZERO
    while 48 <= text[np.uint64(at)] <= 57:
        mantissa = mantissa * _TEN + np.uint64(text[np.uint64(at)] - 48)
        at += 1
    digits = at - start
    exponent = 0
    if text[np.uint64(at)] == 46:
        at += 1
        point = at
        while 48 <= text[np.uint64(at)] <= 57:
            mantissa = mantissa * _TEN + np.uint64(text[np.uint64(at)] - 48)
            at += 1
        exponent = point - at
        digits -= exponent
    if digits == 0:
        return 0.0, at, False
    truncated = False
    if digits > _SIGNIFICANT:
        mantissa, exponent, truncated = long_mantissa(text, start, at)
    if text[np.uint64(at)] == 101 or text[np.uint64(at)] == 69:
        at += 1
        falling = text[np.uint64(at)] == 45
        if falling or text[np.uint64(at)] == 43:
            at += 1
        first = at
        power = 0
        while 48 <= text[np.uint64(at)] <= 57:
            power = min(power * 10 + np.int64(text[np.uint64(at)] - 48), 100_000)
            at += 1
        if at == first:
            return 0.0, at, False
        exponent += -power if falling else power
    certain = True
    if mantissa == _ZERO:
        result = 0.0
    elif mantissa <= _ABOVE and -22 <= exponent <= 22 and not truncated:
        result = np.float64(mantissa)
        if exponent < 0:
            result = result / TENS[-exponent]
        elif exponent > 0:
            result = result * TENS[exponent]
    else:
        bits[0], certain = float_bits(mantissa, exponent, powers)
        result = value[0]
        if truncated and certain:
            above, certain = float_bits(mantissa + _ONE, exponent, powers)
            certain = certain and above == bits[0]
    return (-result if negative else result), at, certain
