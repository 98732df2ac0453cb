"""A margin that grows with the distance in a tree of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.cost_matrix import above_own, towards, worst_rivals
from bmrm.losses._core.ontology import OntologyLoss
from bmrm.losses._core.prepared import Array, Positions, along_by_blocks


@fast_jit
def ontology_hinge_kernel(f, y, weights, slope, order, parent, depth, candidate):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum; one step per node and row."""
    total = 0.0
    nodes = f.shape[1]
    sums, shared = np.empty(nodes), np.empty(nodes, np.int64)
    on_path = np.zeros(nodes, np.bool_)
    for i in range(f.shape[0]):
        own = y[i]
        v = own
        while v >= 0:
            on_path[v] = True
            v = parent[v]
        for at in range(nodes):
            v = order[at]
            above = parent[v]
            sums[v] = f[i, v] + (sums[above] if above >= 0 else 0.0)
            # depth of the last common node; -1 is the unnamed root
            shared[v] = depth[v] if on_path[v] else (shared[above] if above >= 0 else -1)
            slope[i, v] = 0.0
        worst, best, distance = own, sums[own], 0
        for v in range(nodes):
            apart = depth[own] + depth[v] - 2 * shared[v]
            if candidate[v] and apart + sums[v] > best:
                worst, best, distance = v, apart + sums[v], apart
        weight = weights[i] if weights.size else 1.0
        total += weight * (distance + (sums[worst] - sums[own]))
        v = worst
        while v >= 0:
            slope[i, v] += weight
            v = parent[v]
        v = own
        while v >= 0:
            slope[i, v] -= weight
            on_path[v] = False
            v = parent[v]
    return total


@register("ontology_hinge", task="ontology")
@dataclass(frozen=True)
class OntologyHinge(OntologyLoss):
    """max_k (d(y, k) + F_k - F_y), F_k the sum of f along the path to k: the margin grows with the tree's distance.

    Domain: labels are nodes of a tree given by its edges; d(y, k) is the number of edges between y and k. Several roots
    get a common unnamed one. The maximum is over the leaves, or all nodes (`candidates`). At ties the slope takes the
    true class first, then the first of the worst.
    """

    formula = "max_k (d(y, k) + F_k - F_y), F_k = sum of f along the path to k"
    source = "Cai & Hofmann 2004; Dekel, Keshet & Singer 2004"
    kernel = staticmethod(ontology_hinge_kernel)
    along_kernel = staticmethod(along_by_blocks(ontology_hinge_kernel))

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = self._violations(f, y).max(axis=1)
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: 1 along the path to the worst class, -1 along that to the true one."""
        return self._up(towards(worst_rivals(self._violations(f, y), y), y, f.shape[1]))

    def _violations(self, f: Array, y: Positions) -> Array:
        reach = self.tree.distances()[y] + above_own(self.tree.path_sums(f), y)
        return np.where(self.candidate, reach, -np.inf)
