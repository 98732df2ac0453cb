"""Which rows an evaluation may leave out because their slopes have been 0 for a while (PROBE).

`used_at` has for each row the last step at which its slope was not 0, `tried_at` the step at which a dormant row is
tried again, 0 for an active row. The loops over rows are without branches, which no processor could predict.
"""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit

U = np.uint64
"""Type of indices: signed ones would cost a check for negative values in the loop."""


@jit
def part_rows(tried_at, step, rows):  # type: ignore[no-untyped-def]
    """Fill `rows` with those due at `step`, rising, then those left out, falling; return how many are due."""
    due, last = U(0), U(tried_at.size - 1)
    for i in range(tried_at.size):
        rows[due] = i
        rows[last - (U(i) - due)] = i
        due += U(tried_at[i] <= step)
    return due


@jit
def settle(rows, active, step, first, limit, least, most, seed, used_at, tried_at, dormant):  # type: ignore[no-untyped-def]
    """Note what `step` says of listed rows, the slopes of those at the positions `active` not being 0.

    A row of slope 0 becomes dormant at the `limit`-th such step in a row, and stays so where it was only tried; for
    `least` to `most` steps, a hash of seed, step and number of the row (splitmix64's mixing), counted from `first`.
    `dormant` is room for as many rows.
    """
    wake(rows, active, step, used_at, tried_at)
    count = U(0)
    for r in range(rows.size):
        i = U(rows[r])
        dormant[count] = i
        calm = step - used_at[i]
        count += U((calm >= limit) | ((calm > 0) & (tried_at[i] > 0)))
    for k in range(count):
        i = U(dormant[k])
        x = (U(first) + i) * U(0x9E3779B97F4A7C15) + U(step) * U(0xD1B54A32D192ED03) + U(seed)
        x = (x ^ (x >> U(30))) * U(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> U(27))) * U(0x94D049BB133111EB)
        x = x ^ (x >> U(31))
        tried_at[i] = step + 1 + least + np.int64(((x >> U(32)) * U(most - least + 1)) >> U(32))


@jit
def wake(rows, active, step, used_at, tried_at):  # type: ignore[no-untyped-def]
    """The listed rows at the positions `active` are or become active."""
    for r in active:
        i = U(rows[U(r)])
        used_at[i], tried_at[i] = step, 0
