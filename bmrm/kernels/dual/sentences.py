"""What dual ascents a sentence at a time share, however they keep its slope: templates for `specialised`.

The weights of features are (columns, scores per row), those of transitions (K, K); rows are read as in `dual_many`.
"""

from __future__ import annotations

import numpy as np

U = np.uint64


def read_scores(matrix, first, v, tail, bias, threshold, f, trans):  # type: ignore[no-untyped-def]
    """Fill `f` with the scores of the rows from `first` on, and `trans` with those of transitions.

    It calls `gather_row` of `dual_many`, and `weigh` of `dual_rows`; `threshold` is of `weigh`.
    """
    for t in range(f.shape[0]):
        gather_row(matrix, U(first + t), v, threshold, f[t])  # type: ignore[name-defined]  # noqa: F821
        for k in range(f.shape[1]):
            f[t, k] += weigh(bias[k], threshold)  # type: ignore[name-defined]  # noqa: F821
    for i in range(tail.shape[0]):
        for j in range(tail.shape[1]):
            trans[i, j] = weigh(tail[i, j], threshold)  # type: ignore[name-defined]  # noqa: F821


def move_weights(matrix, first, slope, trans_slope, curve, has_bias, line, v, tail, bias):  # type: ignore[no-untyped-def]
    """Move the weights by -curve times what the slopes of a sentence have changed by, its rows from `first` on.

    It calls `spread_row` of `dual_many`; `has_bias` is 1.0 where a constant feature 1 follows the others, else 0.0;
    `line`, a row of scores, is overwritten.
    """
    for t in range(slope.shape[0]):
        for k in range(line.size):
            line[k] = -curve * slope[t, k]
            bias[k] += has_bias * line[k]
        spread_row(matrix, U(first + t), line, v)  # type: ignore[name-defined]  # noqa: F821
    for i in range(tail.shape[0]):
        for j in range(tail.shape[1]):
            tail[i, j] -= curve * trans_slope[i, j]


def grams(matrix, starts, gram_at, bias, row, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the products of the rows of each sentence, each plus `bias`; `row` is (columns,) of 0.

    It calls `span`, `column` and `entry` of `dual_many`.
    """
    for s in range(starts.size - 1):
        steps = starts[s + 1] - starts[s]
        gram = out[gram_at[s] : gram_at[s + 1]].reshape(steps, steps)
        for t in range(steps):
            i = U(starts[s] + t)
            start, end = span(matrix, i)  # type: ignore[name-defined]  # noqa: F821
            for p in range(start, end):
                row[column(matrix, p)] = entry(matrix, i, p)  # type: ignore[name-defined]  # noqa: F821
            for u in range(t + 1):
                j, total = U(starts[s] + u), bias
                first, last = span(matrix, j)  # type: ignore[name-defined]  # noqa: F821
                for p in range(first, last):
                    k, value = column(matrix, p), entry(matrix, j, p)  # type: ignore[name-defined]  # noqa: F821
                    total += row[k] * value
                gram[t, u] = gram[u, t] = total
            for p in range(start, end):
                row[column(matrix, p)] = 0.0  # type: ignore[name-defined]  # noqa: F821
