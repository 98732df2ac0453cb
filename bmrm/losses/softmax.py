"""Softmax loss: multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.products import laplacian
from bmrm.kernels.products.vectors import dot, plain
from bmrm.kernels.rows.exponential import exponentiate
from bmrm.losses import register
from bmrm.losses._core.prepared import Array, Positions, along_by_blocks, block_rows, blocks
from bmrm.losses._core.softmax_prox import softmax_offset, softmax_points, softmax_prox, softmax_value
from bmrm.losses.base import MulticlassLoss
from bmrm.problem import Vector


@fast_jit
def below_largest(f, out, tops):  # type: ignore[no-untyped-def]
    """Each score minus the largest of its row; `tops` is the last position of the largest."""
    for i in range(f.shape[0]):
        top, at = f[i, 0], 0
        for k in range(1, f.shape[1]):
            top = f[i, k] if f[i, k] > top else top
        for k in range(f.shape[1]):
            at = k if f[i, k] == top else at
            out[i, k] = f[i, k] - top
        tops[i] = at


@fast_jit
def _finish(f, y, weights, tops, slope, besides, excess):  # type: ignore[no-untyped-def]
    """With exp(f - largest) in `slope`: replace it by the slope, fill `besides` and `excess`.

    Per row, the loss is log(1 + besides) + excess: the largest score is excluded from the sum and, if it is that of the
    true class, from the slope, so that small losses keep their digits. There are no branches, since the largest class
    is unpredictable.
    """
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own, top = y[i], tops[i]
        others = 0.0
        for k in range(f.shape[1]):
            others += slope[i, k] * (k != top)
        besides[i], excess[i] = others, f[i, top] - f[i, own]
        share = (weights[i] if weighted else 1.0) / (1.0 + others)
        miss = 1.0 * (own != top)
        wrong = miss + (others - miss * slope[i, own])
        for k in range(f.shape[1]):
            slope[i, k] *= share
        slope[i, own] = -share * wrong


def softmax_kernel(f: Array, y: Positions, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum; NumPy's logarithm is vectorised where that of a compiled loop is not."""
    tops, total = np.empty(block_rows(f), np.int64), 0.0
    losses, excesses = np.empty((2, block_rows(f)))
    for rows in blocks(f):
        scores, part, masses = f[rows], slope[rows], weights[rows]
        loss, excess = losses[: part.shape[0]], excesses[: part.shape[0]]
        below_largest(scores, part, tops)
        exponentiate(part.reshape(-1))
        _finish(scores, y[rows], masses, tops, part, loss, excess)
        np.log1p(loss, out=loss)
        loss += excess
        total += dot(masses, loss) if masses.size else float(loss.sum())
    return total


@fast_jit
def _divide(out):  # type: ignore[no-untyped-def]
    """Make each row of exponentials sum to 1."""
    for i in range(out.shape[0]):
        mass = 0.0
        for k in range(out.shape[1]):
            mass += out[i, k]
        share = 1.0 / mass
        for k in range(out.shape[1]):
            out[i, k] *= share


def probabilities(f: Array) -> Array:
    """exp(f_k) / sum_j exp(f_j) in each row; (rows, K)."""
    f = plain(f)
    found, tops = np.empty_like(f), np.empty(block_rows(f), np.int64)
    for rows in blocks(f):
        part = found[rows]
        below_largest(f[rows], part, tops)
        exponentiate(part.reshape(-1))
        _divide(part)
    return found


def softmax_curvature(f: Array, step: Array) -> Array:
    """Each row's second derivative, diag(p) - p p', times its row of `step`."""
    product = np.array(step, np.float64)
    laplacian.multiply(probabilities(f), product)
    return product


@register("softmax", task="multiclass")
@dataclass(frozen=True)
class Softmax(MulticlassLoss):
    """log(sum_k exp(f_k)) - f_y: the negative log likelihood of multinomial logistic regression.

    Domain: at least two classes. The probability of class k is exp(f_k) / sum_j exp(f_j). Adding a constant to all
    scores of a row does not change the loss. Finite for every finite f. With two classes it is `logistic` in f_2 - f_1.
    Targets may be a row of shares, one of each class.
    """

    formula = "log(sum_k exp(f_k)) - f_y"
    source = "Bishop 2006, section 4.3.4"
    smooth = True
    shift_invariant = True
    takes_shares = True
    metrics = ("accuracy", "log_loss")
    kernel = staticmethod(softmax_kernel)
    along_kernel = staticmethod(along_by_blocks(softmax_kernel))
    value_scores_row = staticmethod(softmax_value)
    prox_scores_row = staticmethod(softmax_prox)
    offset_scores_row = staticmethod(softmax_offset)

    def probabilities(self, f: Array) -> Array:
        """exp(f_k) / sum_j exp(f_j) in each row; (rows, K)."""
        return probabilities(f)

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        rows, top = np.arange(len(y)), f.argmax(axis=1)
        others = np.exp(f - f[rows, top][:, None])
        others[rows, top] = 0.0
        loss: Array = np.log1p(others.sum(axis=1)) + (f[rows, top] - f[rows, y])
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope in the scores: probabilities minus the indicator of y."""
        shares, rows = probabilities(f), np.arange(len(y))
        shares[rows, y] = 0.0
        shares[rows, y] = -shares.sum(axis=1)
        return shares

    def hessian_product(self, f: Array, y: Positions, step: Array) -> Array:
        """Each row's second derivative, diag(p) - p p', times its row of `step`."""
        return softmax_curvature(f, step)

    def curvature(self, f: Array, y: Positions) -> Array:
        """The diagonal of each row's second derivative, p - p^2."""
        shares = probabilities(f)
        laplacian.diagonal(shares)
        return shares

    def shares(self, f: Array, y: Positions) -> Array:
        """The probabilities, which tell the second derivative, see `ScoreFunction.hessian_shares`."""
        return probabilities(f)

    def prox_shares(self, moves: Array, step: Array, y: Positions) -> Array:
        """The derivative of z - f in z, see `bmrm.losses.base`: step p / (1 + step p), p the probabilities at f."""
        rates = np.array(moves)
        rates[np.arange(len(y)), y] += step
        np.maximum(rates, 0.0, out=rates)
        return rates / (1.0 + rates)

    def prox_scores(self, z: Array, step: Array | float, y: Positions) -> Array:
        """The proximal point of each row."""
        return softmax_points(z, step, y)
