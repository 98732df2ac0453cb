"""Mixtures of labelings of one sentence, the vertices of its dual: moved pair by pair, the sentence's scores kept.

Conventions of `chain_marginals`. When the share of a labeling grows, so does the sentence's slope by as much of
the labeling's own, and the scores of the sentence itself move by -`curve` times its image: at token t and label k the
sum of gram[t, u], the products of the rows of features, over the tokens u of label k; for transitions how often each
occurs. The entries of observed transitions, K + i K + j, do as labels do.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import inlined, jit

U = np.uint64
Floats = NDArray[np.float64]


class Moving(NamedTuple):
    """A sentence of which shares move.

    Attributes
    ----------
    gram : (tokens, tokens), the products of its rows.
    observed : whether transitions have features of rows.
    curve : by how much its own scores fall.
    f, trans : scores of labels and transitions, kept up to date.
    slope, trans_slope : of the same shapes; what moves is added.
    """

    gram: Floats
    observed: bool
    curve: float
    f: Floats
    trans: Floats
    slope: Floats
    trans_slope: Floats


class Mixture(NamedTuple):
    """Labelings of one sentence: `paths` (n, tokens), and (n,) their `shares`, `errors` (wrong labels), and `values`.

    Values are errors plus score.
    """

    paths: NDArray[np.uint16]
    shares: Floats
    errors: Floats
    values: Floats


@inlined
def labeling_score(f, trans, observed, path):  # type: ignore[no-untyped-def]
    """The score of a labeling of one sentence."""
    labels, before = U(trans.shape[0]), U(path[0])
    total = f[U(0), before]
    for t in range(1, path.size):
        label = U(path[t])
        total += f[U(t), label] + trans[before, label]
        before = label
    if observed:
        for t in range(1, path.size):
            total += f[U(t), labels + U(path[t - 1]) * labels + U(path[t])]
    return total


@jit
def values_of(f, trans, observed, paths, errors, values):  # type: ignore[no-untyped-def]
    """Fill `values`."""
    for c in range(values.size):
        values[c] = errors[c] + labeling_score(f, trans, observed, paths[c])


@inlined
def squared_distance(gram, observed, a, b, labels, where):  # type: ignore[no-untyped-def]
    """Of the features of two labelings; `where` is room for a number per token."""
    total, count = 0.0, 0
    for t in range(a.size):
        if a[t] != b[t]:
            total += 2.0 * gram[t, t]
            for p in range(count):
                u = where[p]
                total += 2.0 * _alike(a[t], b[t], a[u], b[u]) * gram[t, u]
            where[count] = t
            count += 1
    count = 0
    for t in range(1, a.size):
        if a[t] != b[t] or a[t - 1] != b[t - 1]:
            from_a, from_b = a[t - 1] * labels + a[t], b[t - 1] * labels + b[t]
            total += 2.0 + (2.0 * gram[t, t] if observed else 0.0)
            for p in range(count):
                u = where[p]
                alike = _alike(from_a, from_b, a[u - 1] * labels + a[u], b[u - 1] * labels + b[u])
                total += 2.0 * alike * (1.0 + (gram[t, u] if observed else 0.0))
            where[count] = t
            count += 1
    return total


@inlined
def _alike(a, b, c, d):  # type: ignore[no-untyped-def]
    """The product of (a less b) and (c less d), unit vectors."""
    return int(a == c) + int(b == d) - int(a == d) - int(b == c)


@jit
def add_labeling(observed, path, amount, slope, trans_slope):  # type: ignore[no-untyped-def]
    """Add `amount` times the slope of a labeling's score."""
    labels = trans_slope.shape[0]
    for t in range(path.size):
        slope[t, path[t]] += amount
        if t > 0:
            i, j = path[t - 1], path[t]
            trans_slope[i, j] += amount
            if observed:
                slope[t, labels + i * labels + j] += amount


@jit
def move(sentence, a, b, amount):  # type: ignore[no-untyped-def]
    """Give `amount` of the share of the labeling `b` to `a`: scores and transitions move, and the slopes."""
    gram, observed, curve, f, trans, slope, trans_slope = sentence
    labels, by = trans.shape[0], curve * amount
    for t in range(a.size):
        i, j = int(a[t]), int(b[t])
        if i != j:
            _move_entry(gram, t, i, j, amount, by, f, slope)
        if t > 0 and (i != j or a[t - 1] != b[t - 1]):
            before_i, before_j = int(a[t - 1]), int(b[t - 1])
            trans_slope[before_i, i] += amount
            trans_slope[before_j, j] -= amount
            trans[before_i, i] -= by
            trans[before_j, j] += by
            if observed:
                i, j = labels + before_i * labels + i, labels + before_j * labels + j
                _move_entry(gram, t, i, j, amount, by, f, slope)


@inlined
def _move_entry(gram, t, i, j, amount, by, f, slope):  # type: ignore[no-untyped-def]
    slope[t, i] += amount
    slope[t, j] -= amount
    for u in range(f.shape[0]):
        f[u, i] -= by * gram[t, u]
        f[u, j] += by * gram[t, u]


@jit
def mix(mixture, sentence, goal, most, where):  # type: ignore[no-untyped-def]
    """Move share from the worst labeling in use to the best until no mixture gains above `goal`, or `most` times.

    As much of it as is best (a pairwise step of Frank and Wolfe). `where` is room for a number per token.
    """
    paths, shares, errors, values = mixture
    gram, observed, curve, f, trans, _, _ = sentence
    n, labels = values.size, trans.shape[0]
    for _ in range(most):
        best, worst, mean = 0, -1, 0.0
        for c in range(n):
            mean += shares[c] * values[c]
            if values[c] > values[best]:
                best = c
            if shares[c] > 0.0 and (worst < 0 or values[c] < values[worst]):
                worst = c
        rise = values[best] - values[worst]
        if values[best] - mean <= goal or rise <= 0.0:
            break
        curvature = curve * squared_distance(gram, observed, paths[best], paths[worst], labels, where)
        step = shares[worst] if curvature * shares[worst] <= rise else rise / curvature
        shares[worst] = shares[worst] - step if step < shares[worst] else 0.0
        shares[best] += step
        move(sentence, paths[best], paths[worst], step)
        values_of(f, trans, observed, paths, errors, values)


@inlined
def is_among(path, paths):  # type: ignore[no-untyped-def]
    """Whether `path` is one of `paths`."""
    for c in range(paths.shape[0]):
        t = 0
        while t < path.size and paths[c, t] == path[t]:
            t += 1
        if t == path.size:
            return True
    return False


@inlined
def drop_idle(paths, mixture, errors, n):  # type: ignore[no-untyped-def]
    """Close up the first n where shares are 0; returns how many are left."""
    kept = 0
    for c in range(n):
        if mixture[c] > 0.0:
            if kept < c:
                for t in range(paths.shape[1]):
                    paths[kept, t] = paths[c, t]
                mixture[kept], errors[kept] = mixture[c], errors[c]
            kept += 1
    return kept
