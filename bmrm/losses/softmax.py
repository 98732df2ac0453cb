"""Softmax loss: multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.vectors import dot
from bmrm.losses import register
from bmrm.losses.base import MulticlassLoss
from bmrm.losses.prepared import Array, Positions
from bmrm.problem import Vector


@fast_jit
def _below_largest(f, out):  # type: ignore[no-untyped-def]
    """Each score minus the largest of its row."""
    for i in range(f.shape[0]):
        top = f[i, 0]
        for k in range(1, f.shape[1]):
            top = max(top, f[i, k])
        for k in range(f.shape[1]):
            out[i, k] = f[i, k] - top


@fast_jit
def _finish(f, y, weights, slope, besides, excess):  # type: ignore[no-untyped-def]
    """With exp(f - largest) in `slope`: replace it by the slope, fill `besides` and `excess`.

    Per row, the loss is log(1 + besides) + excess: the largest score is left out of the sum, and where it is the true
    one out of the slope, so that small losses keep their digits.
    """
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        own, top = y[i], 0
        for k in range(1, f.shape[1]):
            if f[i, k] > f[i, top]:
                top = k
        others = 0.0
        for k in range(top):
            others += slope[i, k]
        for k in range(top + 1, f.shape[1]):
            others += slope[i, k]
        besides[i], excess[i] = others, f[i, top] - f[i, own]
        share = (weights[i] if weighted else 1.0) / (1.0 + others)
        wrong = others if own == top else 1.0 + (others - slope[i, own])
        for k in range(f.shape[1]):
            slope[i, k] *= share
        slope[i, own] = -share * wrong


def softmax_kernel(f: Array, y: Positions, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum; NumPy's functions are vectorised where those of a compiled loop are not."""
    _below_largest(f, slope)
    np.exp(slope, out=slope)
    losses, excess = np.empty((2, f.shape[0]))
    _finish(f, y, weights, slope, losses, excess)
    np.log1p(losses, out=losses)
    losses += excess
    return dot(weights, losses) if weights.size else float(losses.sum())


@register("softmax", task="multiclass")
@dataclass(frozen=True)
class Softmax(MulticlassLoss):
    """log(sum_k exp(f_k)) - f_y: the negative log likelihood of multinomial logistic regression.

    Domain: at least two classes. The probability of class k is exp(f_k) / sum_j exp(f_j). Adding a constant to all
    scores of a row changes nothing; finite for every finite f. With two classes it is `logistic` in f_2 - f_1.
    """

    formula = "log(sum_k exp(f_k)) - f_y"
    source = "Bishop 2006, section 4.3.4"
    smooth = True
    metrics = ("accuracy", "log_loss")
    kernel = staticmethod(softmax_kernel)

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

    def curvature_product(self, f: Array, y: Positions, step: Array) -> Array:
        """Each row's second derivative, diag(p) - p p', times its row of `step`."""
        shares = probabilities(f)
        product: Array = shares * step
        product -= shares * product.sum(axis=1, keepdims=True)
        return product


def probabilities(f: Array) -> Array:
    """exp(f_k) / sum_j exp(f_j) in each row; (rows, K)."""
    shares: Array = np.exp(f - f.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
