"""Scaled and shifted features, and A' diag(weights) A of them: its diagonal, the matrix, that of several scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Features, Matrix, features_of
from bmrm.kernels.products.csr_many import active_rows
from bmrm.kernels.products.vectors import column_sums, plain
from bmrm.problem import Check, InputError, Vector, unchecked

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """The features x' = (x - shift) * scale.

    Since <x', w> = <x, scale w> - <shift, scale w>, sparse data stay sparse.

    Attributes
    ----------
    scale : (features,) finite, or None for 1.
    shift : (features,) finite, in the units of the raw features, or None for 0.
    """

    scale: Vector | None = None
    shift: Vector | None = None

    def __post_init__(self) -> None:
        for name in ("scale", "shift"):
            array = getattr(self, name)
            if array is not None and not (array.ndim == 1 and np.all(np.isfinite(array))):
                raise InputError(f"Columns: {name} must be a vector of finite numbers")

    def check(self, features: int) -> None:
        """InputError unless there is an entry for each of `features`."""
        for name in ("scale", "shift"):
            array = getattr(self, name)
            if array is not None and array.shape != (features,):
                raise InputError(f"Columns: {name} has {array.shape[0]} entries, the data have {features} features")

    def divided(self, by: Vector) -> Columns:
        """The features x' / by."""
        return Columns(1.0 / by if self.scale is None else self.scale / by, self.shift)

    def raw_weights(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """The weights and the intercept for raw features that give the same scores.

        Parameters
        ----------
        weights : (features,) or (features, scores per row), for x'.
        intercept : (scores per row,), a number where `weights` is a vector.
        """
        raw = weights if self.scale is None else (weights.T * self.scale).T
        return raw, intercept if self.shift is None else intercept - self.shift @ raw

    def scaled_weights(self, raw: Array, intercept: Array) -> tuple[Array, Array]:
        """The inverse of `raw_weights`; features of scale 0 get weight 0."""
        if self.scale is None:
            return raw, intercept if self.shift is None else intercept + self.shift @ raw
        scale = np.where(self.scale == 0.0, 1.0, self.scale)
        weights = ((raw.T / scale) * (self.scale != 0.0)).T
        return weights, intercept if self.shift is None else intercept + self.shift @ raw

    def scaled_gradient(self, raw: Array, total: Array) -> Array:
        """The gradient with respect to weights for x', from that for x and the sum of the slopes; may reuse `raw`."""
        return self.scaled_part(slice(None), raw, total)

    def scaled_part(self, features: slice, raw: Array, total: Array) -> Array:
        """As `scaled_gradient`, where `raw` holds some consecutive features only."""
        if self.shift is None and self.scale is None:
            return raw
        with np.errstate(over="ignore", invalid="ignore"):  # slopes far away may be as large as any number
            if self.shift is not None:
                raw -= np.multiply.outer(self.shift[features], total)
            if self.scale is not None:
                raw *= self.scale[features] if raw.ndim == 1 else self.scale[features, None]
        return raw


def diagonal(X: Features, columns: Columns, bias: bool, weights: Vector) -> Vector:
    """For each input the sum over rows of weight times its square; inputs are scaled features, then the bias.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    weights : (rows,).
    """
    squares = X.weighted_squares(weights, columns.shift)  # around the shift, not by the difference of large sums
    if columns.scale is not None:
        squares *= columns.scale**2
    return np.append(squares, float(weights.sum())) if bias else squares


def row_norms(matrix: Matrix | Features, columns: Columns) -> Vector:
    """(rows,): the root of the sum over features of ((x - shift) scale)^2, sparse data staying sparse."""
    X = features_of(matrix)
    features = X.shape[1]
    factor = np.ones(features) if columns.scale is None else columns.scale**2
    shift = np.zeros(features) if columns.shift is None else columns.shift
    norms = np.empty(X.shape[0])
    for start, stop in X.ranges():
        part, out, cross = X.part(start, stop), norms[start:stop], np.zeros(stop - start)
        part.squared().products(1).scores(0, stop - start, factor, float(shift @ (factor * shift)), out)
        if columns.shift is not None:
            part.products(1).scores(0, stop - start, factor * shift, 0.0, cross)
            out -= 2.0 * cross
    return np.sqrt(np.maximum(norms, 0.0))


Places = NDArray[np.int64]


def gram_of(
    X: Features, columns: Columns, bias: bool, weights: Vector, chosen: Places | None = None, check: Check = unchecked
) -> Array:
    """For each two inputs the sum over rows of weight times both; inputs are scaled features, then the bias.

    Parameters
    ----------
    X : (rows, features).
    columns : scale and shift of the features.
    bias : whether a constant feature 1 follows.
    weights : (rows,), of any sign; rows of weight 0 are skipped.
    chosen : increasing inputs to which the result is restricted; None for all.
    check : called now and then, some ten times a second.
    """
    features = X.shape[1]
    weights = plain(weights)
    with_bias = bias and (chosen is None or bool(chosen.size and chosen[-1] == features))
    kept = None if chosen is None else chosen[: chosen.size - int(with_bias)]
    raw, sums = X.gram(weights, kept, check)
    if sums is None:
        sums = np.zeros(features)
        if with_bias or columns.shift is not None:
            X.products(1).add_rmatvec(0, X.shape[0], weights, sums)
    return _scaled(raw, sums if kept is None else sums[kept], weights, columns, kept, with_bias)


def _scaled(raw: Array, sums: Vector, weights: Vector, columns: Columns, kept: Places | None, with_bias: bool) -> Array:
    """The Gram matrix of the inputs, from that of raw features and their weighted sums."""
    part = slice(None) if kept is None else kept
    total = float(weights.sum()) if with_bias or columns.shift is not None else 0.0
    if columns.shift is not None:
        shift = columns.shift[part]
        raw -= np.outer(shift, sums)
        sums = sums - total * shift
        raw -= np.outer(sums, shift)
    if columns.scale is not None:
        scale = columns.scale[part]
        raw *= scale[:, None]
        raw *= scale
        sums = sums * scale
    if not with_bias:
        return raw
    bordered = np.empty((raw.shape[0] + 1, raw.shape[0] + 1))
    bordered[:-1, :-1] = raw
    bordered[-1, :-1] = bordered[:-1, -1] = sums
    bordered[-1, -1] = total
    return bordered


def gram_of_scores(table: Array, inputs: int, gram: Callable[[Array], Array]) -> Array:
    """The matrix of (inputs, K) weights in C order; (inputs K, inputs K).

    H is the Laplacian of a graph of the scores whose edges weigh c_j c_k / sum(c): a Gram matrix of the inputs for each
    two scores that meet in any row.

    Parameters
    ----------
    table : c, (rows, K), not negative.
    gram : the inputs' matrix for weights of rows, (rows,) to (inputs, inputs).
    """
    width = table.shape[1]
    out = np.zeros((width, width, inputs, inputs))
    rows = active_rows(table)
    shares = np.ascontiguousarray(table.T if rows.size == table.shape[0] else table[rows].T)
    rates = shares / column_sums(shares)
    for j, k in combinations(range(width), 2):
        edges = shares[j] * rates[k]
        if edges.any():
            part = gram(_spread(edges, rows, table.shape[0]))
            out[j, j] += part
            out[k, k] += part
            out[j, k] -= part
            out[k, j] = out[j, k]
    return np.ascontiguousarray(out.transpose(2, 0, 3, 1)).reshape(inputs * width, inputs * width)


def _spread(edges: Array, rows: NDArray[np.int64], count: int) -> Array:
    """Weights of all rows from those of some."""
    if rows.size == count:
        return edges
    weights = np.zeros(count)
    weights[rows] = edges
    return weights
