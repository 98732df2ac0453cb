"""Sweeps of several threads: each moves a copy of the weights for a part of the rows, then they meet and add up.

What the moves of others do meanwhile is allowed for by a factor of the curvatures, which follows what meetings show:
see `bmrm.risk.dual.joint`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.atomic import wait
from bmrm.kernels.dual.order import shuffle_blocks
from bmrm.kernels.dual.sweep import CAUTION, DRIFT, GAP
from bmrm.kernels.jit import inlined, jit

Floats = NDArray[np.float64]
TOGETHER, APART = range(2)
"""Places in `squares` of the squared norm of the sum of the moves, and of the sum of their squared norms."""
ABOVE, KEPT = 1.0, 0.5
"""Factor of the next round over the one that this round needed, and over the last factor at least."""
OPEN, LEFT = range(2)
"""Places in the `counts` of a thread of its active rows, and of those that a sweep has left so far."""
MEETINGS, FACTOR, VISITED = range(3)
"""Places in `progress` of the number of meetings, the factor of the next round, and the visits of the last sweeps."""


class Meeting(NamedTuple):
    """What the threads have in common.

    Attributes
    ----------
    flags : as of `wait`.
    v, copies : the weights (dim,), and those that each thread moves, (threads, dim).
    scalars, scalar_copies : the same of the numbers that move with them, (3 scores,) and (threads, 3 scores), the
        totals last.
    squares : (threads, 2), of the moves of each thread's share of the weights, in units of the moves of the copies.
    """

    flags: NDArray[np.int64]
    v: Floats
    copies: Floats
    scalars: Floats
    scalar_copies: Floats
    squares: Floats


class TeamState(NamedTuple):
    """What outlasts the call of a kernel.

    `counts` (threads, 2); `sums` (threads, 2), GAP and DRIFT of the last sweep; `progress` (3,).
    """

    counts: NDArray[np.int64]
    sums: Floats
    progress: Floats


@jit
def next_factor(together, apart, factor):  # type: ignore[no-untyped-def]
    """After a round with this factor; inf where nothing was said so far, and nothing is where nothing has moved."""
    if apart > 0.0 and apart < np.inf and together < np.inf:
        return max(ABOVE * together / apart, KEPT * factor, 1.0)
    return factor


@jit
def merge(base, copies, first, last, factor, squares, scale):  # type: ignore[no-untyped-def]
    """base[first:last] += the moves of the copies over `factor`; the copies become it again.

    Adds to `squares` those of the moves times `scale`.
    """
    together, apart, team = 0.0, 0.0, copies.shape[0]
    for p in range(first, last):
        before, total = base[p], 0.0
        for t in range(team):
            move = copies[t, p] - before
            total += move
            apart += move * move
        together += total * total
        after = before + total / factor
        base[p] = after
        for t in range(team):
            copies[t, p] = after
    squares[TOGETHER] += scale * together
    squares[APART] += scale * apart


@jit
def meet(meeting, thread, number, factor, penalty):  # type: ignore[no-untyped-def]
    """Meeting `number`, above 0 and rising; whether nobody has given up. Each thread merges its share of the weights.

    `penalty` is the square of the feature that stands for a constant: its totals are moves, too.
    """
    flags, v, copies, scalars, scalar_copies, squares = meeting
    team, mine = copies.shape[0], squares[thread]
    if not wait(flags, thread, team, 2 * number):
        return False
    mine[:] = 0.0
    merge(v, copies, v.size * thread // team, v.size * (thread + 1) // team, factor, mine, 1.0)
    if thread == 0:
        others = 2 * scalars.size // 3
        merge(scalars, scalar_copies, 0, others, factor, mine, 0.0)
        merge(scalars, scalar_copies, others, scalars.size, factor, mine, penalty)
    return wait(flags, thread, team, 2 * number + 1)


@jit
def factor_after(meeting, factor):  # type: ignore[no-untyped-def]
    """That of the next round, the same for all threads; comes before the next meeting."""
    together, apart = 0.0, 0.0
    for t in range(meeting.squares.shape[0]):
        together += meeting.squares[t, TOGETHER]
        apart += meeting.squares[t, APART]
    return next_factor(together, apart, factor)


@inlined
def faster(steps, factor):  # type: ignore[no-untyped-def]
    """`Steps` with curvatures times `factor`."""
    threshold, step, shares, has_bias, moves, extra = steps
    return threshold, factor * step, factor * shares, has_bias, moves, factor * extra


@inlined
def one_score(dual, factor):  # type: ignore[no-untyped-def]
    """The `Dual` of `dual_sweep` with curvatures times `factor`."""
    state, v, scalars, steps, smooth, arguments = dual
    return state, v, scalars, faster(steps, factor), smooth, arguments


@inlined
def many_scores(dual, factor):  # type: ignore[no-untyped-def]
    """The `Dual` of `dual_many` with curvatures times `factor`."""
    state, slopes, v, vectors, steps, added, held, room, arguments = dual
    return state, slopes, v, vectors, faster(steps, factor), added, held, room, arguments


def rounds(thread, meeting, state, turns, penalty, matrix, rows, shrinking, limit, known, dual):  # type: ignore[no-untyped-def]
    """What `dual_sweep.rounds` does, by the thread of this number of several; whether nobody has given up.

    A thread visits rows of its own in all sweeps, whose numbers stay in its cache: those of a share of all rows. It
    calls `visit`, a compiled `sweep`, and `with_factor`, one of the two above.

    Parameters
    ----------
    meeting : its weights are those of `dual` of all threads, each with its copies.
    state : a `TeamState`.
    turns : first, last and all: a sweep has so many rounds, in each of which a thread visits a part of its open rows.
        Where these are not all of them, `rounds` makes those from the first to before the last of one sweep only.
    rows : the open ones of all threads.
    shrinking : as in `dual_sweep.rounds`, but that `random` is (threads,); each thread uses its share of the room, and
        leaves its open rows at the beginning of its share of `kept`.
    """
    order, kept, margin, random = shrinking
    counts, sums, progress = state
    team, (begin, end, cuts) = meeting.copies.shape[0], turns
    number, factor, near, visited = progress[MEETINGS], progress[FACTOR], margin[0], 0
    low, high = order.size * thread // team, order.size * (thread + 1) // team
    mine, own = random[thread : thread + 1], counts[thread]
    if begin == 0:
        own[OPEN] = 0
        for row in rows:
            if low <= row and row < high:
                kept[low + own[OPEN]] = row
                own[OPEN] += 1
    while visited < limit:
        if begin == 0:
            shuffle_blocks(kept[low : low + own[OPEN]], order[low:high], mine)
            own[LEFT] = 0
            sums[thread] = 0.0
        for cut in range(begin, end):
            first, last = low + own[OPEN] * cut // cuts, low + own[OPEN] * (cut + 1) // cuts
            now = with_factor(dual, factor)  # type: ignore[name-defined]  # noqa: F821
            found = np.zeros(2)
            left = visit(order[first:last], kept[low + own[LEFT] : high], near, known, found, matrix, now)  # type: ignore[name-defined]  # noqa: F821
            own[LEFT] += left
            sums[thread, GAP] += found[GAP]
            sums[thread, DRIFT] += found[DRIFT]
            number += 1
            if not meet(meeting, thread, number, factor, penalty):
                return False
            factor = min(factor_after(meeting, factor), float(team))
        if end < cuts:
            break
        before, left, drift = 0, 0, 0.0
        for t in range(team):
            before += counts[t, OPEN]
            left += counts[t, LEFT]
            drift += sums[t, DRIFT]
        number += 1
        if not wait(meeting.flags, thread, team, 2 * number + 1):
            return False
        own[OPEN] = own[LEFT]
        visited += before
        near = CAUTION * np.sqrt(drift / before) if known else near
        if begin > 0 or not known or left == 0:
            break
    if thread == 0:
        progress[MEETINGS], progress[FACTOR], progress[VISITED], margin[0] = number, factor, visited, near
    return True
