"""The marginals of labels and transitions of one chain whose labelings are as likely as exp(score).

Conventions of this file, of `chains` and of `viterbi`: K labels; `f` is (tokens, K), or (tokens, K + K K) where every
token brings the scores of the transitions into it (`observed`; entry K + i K + j is added to `trans[i, j]`); sentence s
has the tokens `starts[s]` to `starts[s + 1]`, one or more. The score of a labeling is the sum of f[t, label of t] and,
from the second token on, of trans[label of t - 1, label of t].
"""

from __future__ import annotations

import math

import numpy as np

from bmrm.kernels.jit import fast_jit, inlined, jit
from bmrm.kernels.rows.exponential import exponentials

WIDEST = 500.0
"""Range of token and transition scores up to which sums of exponentials lose nothing: exp(-500) is 7e-218."""

U = np.uint64


@inlined
def largest(values):  # type: ignore[no-untyped-def]
    """Of a vector."""
    high = values[0]
    for k in range(1, values.size):
        high = max(high, values[k])
    return high


@jit
def extremes(table):  # type: ignore[no-untyped-def]
    """The least and the largest entry of a matrix."""
    low = high = table[0, 0]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            low, high = min(low, table[i, j]), max(high, table[i, j])
    return low, high


@jit
def score_range(f, labels):  # type: ignore[no-untyped-def]
    """The largest difference between two labels' scores at one token."""
    widest = 0.0
    for t in range(f.shape[0]):
        low = high = f[t, 0]
        for k in range(1, labels):
            low, high = min(low, f[t, k]), max(high, f[t, k])
        widest = max(widest, high - low)
    return widest


@jit
def exponentials_below(f, b, spare):  # type: ignore[no-untyped-def]
    """b = exp(f - the largest of each row); returns the sum of those. `spare`, like `b`, is overwritten."""
    total = 0.0
    for t in range(f.shape[0]):
        high = f[t, 0]
        for k in range(1, b.shape[1]):
            high = max(high, f[t, k])
        for k in range(b.shape[1]):
            b[t, k] = f[t, k] - high
        total += high
    exponentials(b.reshape(-1), spare.reshape(-1))
    return total


@fast_jit
def times(p, E, out):  # type: ignore[no-untyped-def]
    """out = p E, four rows of E at a time."""
    rows, columns = E.shape
    for j in range(columns):
        out[j] = 0.0
    i = U(0)
    for _ in range(rows // 4):
        p0, p1, p2, p3 = p[i], p[i + U(1)], p[i + U(2)], p[i + U(3)]
        e0, e1, e2, e3 = E[i], E[i + U(1)], E[i + U(2)], E[i + U(3)]
        for j in range(columns):
            out[j] += p0 * e0[j] + p1 * e1[j] + p2 * e2[j] + p3 * e3[j]
        i += U(4)
    while i < U(rows):
        weight, e = p[i], E[i]
        for j in range(columns):
            out[j] += weight * e[j]
        i += U(1)


@fast_jit
def _add_products(a, b, pairs):  # type: ignore[no-untyped-def]
    """pairs[i, j] += the sum over t of a[t - 1, i] b[t, j]; b[0] is not read."""
    steps, labels = a.shape
    t = U(1)
    for _ in range((steps - 1) // 4):
        a0, a1, a2, a3 = a[t - U(1)], a[t], a[t + U(1)], a[t + U(2)]
        b0, b1, b2, b3 = b[t], b[t + U(1)], b[t + U(2)], b[t + U(3)]
        for i in range(labels):
            w0, w1, w2, w3, row = a0[i], a1[i], a2[i], a3[i], pairs[i]
            for j in range(labels):
                row[j] += w0 * b0[j] + w1 * b1[j] + w2 * b2[j] + w3 * b3[j]
        t += U(4)
    while t < U(steps):
        for i in range(labels):
            weight, row, last = a[t - U(1), i], pairs[i], b[t]
            for j in range(labels):
                row[j] += weight * last[j]
        t += U(1)


@fast_jit
def scaled_marginals(f, E, ET, marginals, forward, b, pairs):  # type: ignore[no-untyped-def]
    """The logarithm of the sum over labelings of exp(score), the largest score of each token taken off.

    Fills `marginals` with that of each label of each token, and adds to `pairs` what, times E, is that of each
    transition. `forward` and `b` are overwritten. Sums are scaled to 1 at every token.
    """
    steps, labels = f.shape[0], E.shape[0]
    total = 0.0
    inverse = np.empty(steps)
    reach = np.empty(labels)
    exponentials_below(f, b, forward)
    for t in range(steps):
        here, potential = forward[t], b[t]
        if t == 0:
            for k in range(labels):
                here[k] = 1.0
        else:
            times(forward[t - 1], E, here)
        mass = 0.0
        for k in range(labels):
            here[k] *= potential[k]
            mass += here[k]
        inverse[t] = 1.0 / mass
        for k in range(labels):
            here[k] *= inverse[t]
        total += math.log(mass)
    for k in range(labels):
        b[steps - 1, k] *= inverse[steps - 1]
        marginals[steps - 1, k] = forward[steps - 1, k]
    for back in range(1, steps):
        t = steps - 1 - back
        times(b[t + 1], ET, reach)
        potential, here, marginal = b[t], forward[t], marginals[t]
        for k in range(labels):
            potential[k] *= inverse[t] * reach[k]
            marginal[k] = here[k] * reach[k]
    _add_products(forward, b, pairs)
    return total


@jit
def _log_sum(values):  # type: ignore[no-untyped-def]
    """Of the largest value and what the others add to it, which loses no digits where that is little."""
    high, top, others = values[0], 0, 0.0
    for k in range(1, values.size):
        if values[k] > high:
            high, top = values[k], k
    for k in range(values.size):
        others += 0.0 if k == top else math.exp(values[k] - high)
    return high + math.log1p(others)


@inlined
def step_score(f, trans, observed, t, i, j):  # type: ignore[no-untyped-def]
    """The score of the transition from label i to label j, into token t."""
    labels = trans.shape[0]
    return trans[i, j] + (f[t, labels + i * labels + j] if observed else 0.0)


@jit
def _forward(f, trans, observed, y, forward):  # type: ignore[no-untyped-def]
    """forward[t, j]: the logarithm of the sum of exp(score) over the labelings up to token t that end in label j.

    The largest of each token is taken off, so that large scores cost no digits. Returns the logarithm of the sum over
    all labelings, less the score of the labeling `y` unless that is empty. That is taken off each score beforehand: of
    a likely labeling nothing is left, however large its scores are.
    """
    labels, steps = trans.shape[0], f.shape[0]
    terms = np.empty(labels)
    total = 0.0
    for t in range(steps):
        truth = f[t, y[t]] if y.size else 0.0
        step = step_score(f, trans, observed, t, y[t - 1], y[t]) if y.size and t > 0 else 0.0
        for j in range(labels):
            forward[t, j] = f[t, j] - truth
            if t > 0:
                for i in range(labels):
                    terms[i] = forward[t - 1, i] + (step_score(f, trans, observed, t, i, j) - step)
                forward[t, j] += _log_sum(terms)
        high = largest(forward[t])
        for j in range(labels):
            forward[t, j] -= high
        total += high
    return total + _log_sum(forward[steps - 1])


@jit
def _backward(f, trans, observed, backward):  # type: ignore[no-untyped-def]
    """backward[t, i]: the same over the labelings after token t, the label of which is i."""
    labels, steps = trans.shape[0], f.shape[0]
    terms = np.empty(labels)
    backward[steps - 1] = 0.0
    for t in range(steps - 2, -1, -1):
        for i in range(labels):
            for j in range(labels):
                terms[j] = step_score(f, trans, observed, t + 1, i, j) + f[t + 1, j] + backward[t + 1, j]
            backward[t, i] = _log_sum(terms)
        high = largest(backward[t])
        for i in range(labels):
            backward[t, i] -= high


@jit
def _shares(logarithms, true):  # type: ignore[no-untyped-def]
    """exp of each, divided by the sum; the entry `true` less 1, as what the others leave: it loses no digits near 1.

    -1 for no such entry. In place; the largest is taken off first, so that large logarithms cost no digits.
    """
    total, others, high = 0.0, 0.0, largest(logarithms)
    for k in range(logarithms.size):
        logarithms[k] = math.exp(logarithms[k] - high)
        total += logarithms[k]
        others += 0.0 if k == true else logarithms[k]
    for k in range(logarithms.size):
        logarithms[k] /= total
    if true >= 0:
        logarithms[true] = -others / total


@jit
def marginals_by_logarithms(f, trans, observed, y, marginals, pairs):  # type: ignore[no-untyped-def]
    """The logarithm of the sum over labelings of exp(score), by logarithms, whatever the size of the scores.

    Fills `marginals` (like `f`) with that of each label of each token, and of each transition if they are observed, and
    adds to `pairs` those of each transition, summed over the tokens. Of all this the labeling `y` is taken off, its
    score from the logarithm, 1 from the marginals of its labels and transitions, unless it is empty.
    """
    labels, steps = trans.shape[0], f.shape[0]
    forward, backward = np.empty((steps, labels)), np.empty((steps, labels))
    log_normalizer = _forward(f, trans, observed, y, forward)
    _backward(f, trans, observed, backward)
    into = np.empty((labels, labels))
    marginals[:] = 0.0
    for t in range(steps):
        for k in range(labels):
            marginals[t, k] = forward[t, k] + backward[t, k]
        _shares(marginals[t, :labels], y[t] if y.size else -1)
        if t == 0:
            continue
        for i in range(labels):
            for j in range(labels):
                into[i, j] = forward[t - 1, i] + step_score(f, trans, observed, t, i, j) + f[t, j] + backward[t, j]
        _shares(into.reshape(-1), y[t - 1] * labels + y[t] if y.size else -1)
        for i in range(labels):
            for j in range(labels):
                pairs[i, j] += into[i, j]
                if observed:
                    marginals[t, labels + i * labels + j] = into[i, j]
    return log_normalizer


@jit
def labeling_marginals(f, trans, given, marginals, pairs):  # type: ignore[no-untyped-def]
    """`marginals` of chains, see `bmrm.kernels.structures.sums`: by sums of exponentials where scores allow it."""
    labels, steps = trans.shape[0], f.shape[0]
    pairs[:] = 0.0
    least, top = extremes(trans)
    observed = f.shape[1] > labels
    if observed or not top - least + score_range(f, labels) <= WIDEST:
        log_normalizer: float = marginals_by_logarithms(f, trans, observed, np.empty(0, np.int64), marginals, pairs)
        return log_normalizer
    room = np.empty((2 * labels + 2 * steps, labels))  # one array: in short sentences each counts
    E, ET, forward, b = room[:labels], room[labels : 2 * labels], room[-2 * steps : -steps], room[-steps:]
    _exponentials(trans, top, E, ET)
    total = scaled_marginals(f, E, ET, marginals, forward, b, pairs) + (steps - 1) * top
    for t in range(steps):
        high = f[t, 0]
        for k in range(1, labels):
            high = max(high, f[t, k])
        total += high
    for i in range(labels):
        for j in range(labels):
            pairs[i, j] *= E[i, j]
    return total


@jit
def _exponentials(trans, top, E, ET):  # type: ignore[no-untyped-def]
    """Fill E with exp(trans - top), and ET with its transpose."""
    labels = trans.shape[0]
    for i in range(labels):
        for j in range(labels):
            E[i, j] = trans[i, j] - top
    exponentials(E.reshape(-1), ET.reshape(-1))
    for i in range(labels):
        for j in range(labels):
            ET[j, i] = E[i, j]


@jit
def log_partition(f, trans, given):  # type: ignore[no-untyped-def]
    """What `labeling_marginals` returns, alone; half of its work."""
    labels, steps = trans.shape[0], f.shape[0]
    least, top = extremes(trans)
    observed = f.shape[1] > labels
    if observed or not top - least + score_range(f, labels) <= WIDEST:
        return _forward(f, trans, observed, np.empty(0, np.int64), np.empty((steps, labels)))
    room = np.empty((2 * labels + 2 * steps, labels))
    E, ET, forward, b = room[:labels], room[labels : 2 * labels], room[-2 * steps : -steps], room[-steps:]
    _exponentials(trans, top, E, ET)
    total = (steps - 1) * top + exponentials_below(f, b, forward)
    before, reach = b[0], forward[0]
    for t in range(steps):
        if t > 0:
            times(before, E, reach)
            before = b[t]
            for k in range(labels):
                before[k] *= reach[k]
        mass = 0.0
        for k in range(labels):
            mass += before[k]
        inverse = 1.0 / mass
        for k in range(labels):
            before[k] *= inverse
        total += math.log(mass)
    return total
