"""What dual ascents a group of rows at a time share, however they keep its slope: templates for `specialised`.

Rows are read as in `dual_many`; structures are those of `bmrm.kernels.structures.sums`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import jit

U = np.uint64
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Grouped(NamedTuple):
    """What is given of the groups.

    Attributes
    ----------
    starts : (groups + 1,), where the rows of each begin, and the last end.
    y : (rows,), true labels.
    weights : (groups,).
    grams : the products of the rows of each group, (rows, rows), one after the other.
    gram_at : (groups + 1,), where they begin, and the last end.
    given : (rows, numbers), of the structure.
    """

    starts: Ints
    y: Ints
    weights: Floats
    grams: Floats
    gram_at: Ints
    given: Ints


class Weights(NamedTuple):
    """Those of the features (columns, scores per row), the parameters, those of a constant (scores per row,)."""

    v: Floats
    tail: Floats
    bias: Floats


class Steps(NamedTuple):
    """How the weights move with the slopes.

    `threshold` is of `weigh`; weights move by -step * (change of slope) * x; `has_bias` is 1.0 where a constant feature
    1 follows the others, else 0.0.
    """

    threshold: float
    step: float
    has_bias: float


@jit
def split(flat, rows, width, parameters):  # type: ignore[no-untyped-def]
    """The numbers of the rows (rows, width), and before them those of the parameters, shaped like these; views."""
    border = parameters.size
    return flat[border : border + rows * width].reshape(rows, width), flat[:border].reshape(parameters.shape)


def read_scores(matrix, first, weights, threshold, f, parameters):  # type: ignore[no-untyped-def]
    """Fill `f` with the scores of the rows from `first` on, and `parameters`.

    It calls `gather_row` of `dual_many`, and `weigh` of `dual_rows`; `threshold` is of `weigh`.
    """
    v, tail, bias = weights
    for t in range(f.shape[0]):
        gather_row(matrix, U(first + t), v, threshold, f[t])  # type: ignore[name-defined]  # noqa: F821
        for k in range(f.shape[1]):
            f[t, k] += weigh(bias[k], threshold)  # type: ignore[name-defined]  # noqa: F821
    source, target = tail.reshape(-1), parameters.reshape(-1)
    for i in range(source.size):
        target[i] = weigh(source[i], threshold)  # type: ignore[name-defined]  # noqa: F821


def move_weights(matrix, first, slope, of_parameters, curve, has_bias, line, weights):  # type: ignore[no-untyped-def]
    """Move the weights by -curve times what the slopes of a group have changed by, its rows from `first` on.

    It calls `spread_row` of `dual_many`; `has_bias` is of `Steps`; `line`, a row of scores, is overwritten.
    """
    v, tail, bias = weights
    for t in range(slope.shape[0]):
        for k in range(line.size):
            line[k] = -curve * slope[t, k]
            bias[k] += has_bias * line[k]
        spread_row(matrix, U(first + t), line, v)  # type: ignore[name-defined]  # noqa: F821
    source, target = of_parameters.reshape(-1), tail.reshape(-1)
    for i in range(source.size):
        target[i] -= curve * source[i]


def grams(matrix, starts, gram_at, bias, row, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the products of the rows of each group, each plus `bias`; `row` is (columns,) of 0.

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
