"""Softmax loss: multinomial logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
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
def _finish(f, y, weights, slope):  # type: ignore[no-untyped-def]
    """With exp(f - largest) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    weighted = weights.size > 0
    for i in range(f.shape[0]):
        top, mass = f[i, 0], 0.0
        for k in range(f.shape[1]):
            top = max(top, f[i, k])
            mass += slope[i, k]
        weight = weights[i] if weighted else 1.0
        total += weight * (np.log1p(mass - 1.0) + (top - f[i, y[i]]))
        share = weight / mass
        for k in range(f.shape[1]):
            slope[i, k] *= share
        slope[i, y[i]] -= weight
    return total


def softmax_kernel(f: Array, y: Positions, weights: Vector, slope: Array) -> float:
    """Fill `slope`, return the sum; NumPy's exponential is vectorised where a compiled loop's is not."""
    _below_largest(f, slope)
    np.exp(slope, out=slope)
    return _finish(f, y, weights, slope)  # type: ignore[no-any-return]


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
        top = f.max(axis=1)
        mass = np.exp(f - top[:, None]).sum(axis=1)
        loss: Array = np.log1p(mass - 1.0) + (top - f[np.arange(len(y)), y])
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope in the scores: probabilities minus the indicator of y."""
        shares = probabilities(f)
        shares[np.arange(len(y)), y] -= 1.0
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
