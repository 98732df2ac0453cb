"""Softmax over the leaves of a tree, whose paths share weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.products import laplacian
from bmrm.losses import register
from bmrm.losses._core.ontology import OntologyLoss
from bmrm.losses._core.prepared import Array, Positions, along_by_blocks
from bmrm.losses.softmax import probabilities, softmax_curvature
from bmrm.problem import Vector


@fast_jit
def _path_sums(f, y, order, parent, candidate, out, own, tops):  # type: ignore[no-untyped-def]
    """For each candidate the sum over its path minus the largest, -inf for other nodes.

    `own` is that of the label, `tops` a position of the largest.
    """
    sums = np.empty(f.shape[1])
    for i in range(f.shape[0]):
        top = -np.inf
        for at in range(f.shape[1]):
            v = order[at]
            above = parent[v]
            sums[v] = f[i, v] + (sums[above] if above >= 0 else 0.0)
            if candidate[v] and sums[v] > top:
                top = sums[v]
                tops[i] = v
        for v in range(f.shape[1]):
            out[i, v] = sums[v] - top if candidate[v] else -np.inf
        own[i] = sums[y[i]] - top


@fast_jit
def _finish(y, weights, order, parent, own, tops, slope):  # type: ignore[no-untyped-def]
    """With exp(sum - largest) in `slope`: replace it by the slope, return the sum.

    The largest is left out of sums, and the label's own out of its slope, so that small losses keep their digits.
    """
    total = 0.0
    for i in range(slope.shape[0]):
        weight = weights[i] if weights.size else 1.0
        besides, others = 0.0, 0.0
        for v in range(slope.shape[1]):
            besides += slope[i, v] if v != tops[i] else 0.0
            others += slope[i, v] if v != y[i] else 0.0
        total += weight * (np.log1p(besides) - own[i])
        share = weight / (1.0 + besides)
        for v in range(slope.shape[1]):
            slope[i, v] *= share
        slope[i, y[i]] = -others * share
        for at in range(slope.shape[1] - 1, -1, -1):
            v = order[at]
            if parent[v] >= 0:
                slope[i, parent[v]] += slope[i, v]
    return total


def ontology_logistic_kernel(
    f: Array,
    y: Positions,
    weights: Vector,
    slope: Array,
    order: Positions,
    parent: Positions,
    depth: Positions,
    candidate: NDArray[np.bool_],
) -> float:
    """Fill `slope`, return the sum; NumPy's exponential is vectorised where a compiled loop's is not."""
    own, tops = np.empty(f.shape[0]), np.zeros(f.shape[0], np.int64)
    _path_sums(f, y, order, parent, candidate, slope, own, tops)
    np.exp(slope, out=slope)
    return float(_finish(y, weights, order, parent, own, tops, slope))


@register("ontology_logistic", task="ontology")
@dataclass(frozen=True)
class OntologyLogistic(OntologyLoss):
    """log(sum_k exp(F_k)) - F_y, F_k the sum of f along the path to k: softmax whose classes share weights in a tree.

    Domain: labels are nodes of a tree given by its edges; the sum is over the leaves, or all nodes (`candidates`).
    Finite for every finite f. With a tree of depth 1 it is `softmax`.
    """

    formula = "log(sum_k exp(F_k)) - F_y, F_k = sum of f along the path to k"
    source = "Teo, Le, Smola & Vishwanathan 2007, section 3.2"
    smooth = True
    kernel = staticmethod(ontology_logistic_kernel)
    along_kernel = staticmethod(along_by_blocks(ontology_logistic_kernel))

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        sums, reach = self.tree.path_sums(f), self._reach(f)
        rows, top = np.arange(len(y)), reach.argmax(axis=1)
        others = np.exp(reach - reach[rows, top][:, None])
        others[rows, top] = 0.0
        loss: Array = np.log1p(others.sum(axis=1)) + (reach[rows, top] - sums[rows, y])
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: the probability of the node's subtree, minus 1 along the path to the true class."""
        shares, rows = probabilities(self._reach(f)), np.arange(len(y))
        shares[rows, y] = 0.0
        shares[rows, y] = -shares.sum(axis=1)
        return self._up(shares)

    def hessian_product(self, f: Array, y: Positions, step: Array) -> Array:
        """Each row's second derivative times its row of `step`."""
        return self._up(softmax_curvature(self._reach(f), self.tree.path_sums(step)))

    def hessian_total(self, f: Array, weights: Vector) -> Array:
        """The sum of the rows' second derivatives, (nodes, nodes)."""
        inner = laplacian.total(weights[:, None] * probabilities(self._reach(f)))
        return self._up(self._up(inner).T)

    def _reach(self, f: Array) -> Array:
        """The sum along the path to each candidate, -inf for other nodes; (rows, nodes)."""
        return np.where(self.candidate, self.tree.path_sums(f), -np.inf)
