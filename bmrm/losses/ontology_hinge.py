"""A margin that grows with the distance in a tree of labels, or with a cost of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core.cost_matrix import above_own, towards, worst_rivals
from bmrm.losses._core.ontology import OntologyLoss
from bmrm.losses._core.prepared import Array, Positions, along_by_blocks
from bmrm.losses._core.rescaling import Cost, beta_option, checked_cost, cost_option, margin_option, rescaled
from bmrm.problem import Summary

EXAMPLE: Cost = tuple(tuple(float((i != j) * (1 + (2 * i + 3 * j) % 4)) for j in range(8)) for i in range(8))
"""Costs between all nodes of an example of a tree."""


@fast_jit
def ontology_hinge_kernel(f, y, weights, slope, order, parent, depth, candidate, margins, rates, relative):  # type: ignore[no-untyped-def]
    """Fill `slope`, return the sum; one step per node and row.

    Parameters
    ----------
    margins, rates : (nodes, nodes); or (1, distances), by the number of edges between two nodes.
    relative : whether violations are compared, rather than margin + path sum, which has fewer roundings and is enough
        where all rates are 1.
    """
    total = 0.0
    nodes, by_nodes = f.shape[1], margins.shape[0] > 1
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
        origin = sums[own] if relative else 0.0
        row = own if by_nodes else 0
        worst, best, place = own, sums[own] - origin, own if by_nodes else 0
        for v in range(nodes):
            if candidate[v]:
                column = v if by_nodes else depth[own] + depth[v] - 2 * shared[v]
                violation = rates[row, column] * (margins[row, column] + (sums[v] - origin))
                if violation > best:
                    worst, best, place = v, violation, column
        weight = weights[i] if weights.size else 1.0
        total += weight * (rates[row, place] * (margins[row, place] + (sums[worst] - sums[own])))
        weight *= rates[row, place]
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
    """max_k d(y, k)^beta (margin + F_k - F_y), F_k the sum of f along the path to k: margins follow a tree's distance.

    Domain: labels are nodes of a tree given by its edges. The maximum is over the leaves, or all nodes (`candidates`).
    d(y, k) is the number of edges between y and k, where several roots get a common unnamed one; or the user's
    `cost`, with a row per true class and a column per predicted one, in sort order of the candidates, 0 on the diagonal
    and never negative.

    The margin is d(y, k) (`margin: cost`) or 1 (`margin: one`); y itself has margin 0. By default, `margin: cost` and
    `beta: 0`, it grows with the distance. `margin: cost` is table 2 of the KDD paper (2007) as printed, Delta^beta
    (Delta + F_k - F_y), its soft margin with `beta: 0` (the power 0 of a cost of 0 is 1) and its scaled soft margin
    with `beta: 1`. `margin: one` and `beta: 1` is the slack rescaling of Tsochantaridis and others.

    At ties the slope takes the true class first, then the first of the worst.
    """

    cost: Cost | None = cost_option(EXAMPLE, beside={"candidates": "nodes"})  # noqa: RUF009
    margin: str = margin_option("cost", example="one")
    beta: float = beta_option(0.0)

    formula = "max_k d(y, k)^beta (margin + F_k - F_y), margin = 1 or d(y, k), F_k = sum of f along the path to k"
    source = (
        "Cai & Hofmann 2004; Dekel, Keshet & Singer 2004; Tsochantaridis, Joachims, Hofmann & Altun 2005; "
        "Teo, Le, Smola & Vishwanathan 2007, table 2"
    )
    at_zero = "take loss ontology_logistic"
    kernel = staticmethod(ontology_hinge_kernel)
    along_kernel = staticmethod(along_by_blocks(ontology_hinge_kernel))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None:
            cost = checked_cost(self.cost, self.title, int(np.count_nonzero(self.candidate)))
            object.__setattr__(self, "cost", cost)
        _ = self._kernel_tables

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The tree as arrays, margins and rates, and how the kernel compares."""
        return *super().arguments(summary), *self._kernel_tables, self.beta > 0.0

    def value(self, f: Array, y: Positions) -> Array:
        """The loss of each row."""
        loss: Array = self._violations(f, y).max(axis=1)
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: the rate along the path to the worst class, minus it along that to the true one."""
        rivals = worst_rivals(self._violations(f, y), y)
        _, rates = self._tables
        return self._up(towards(rivals, y, f.shape[1], rates[y, rivals]))

    def _violations(self, f: Array, y: Positions) -> Array:
        margins, rates = self._tables
        reach = rates[y] * (margins[y] + above_own(self.tree.path_sums(f), y))
        return np.where(self.candidate, reach, -np.inf)

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """Margins and rates, (nodes, nodes)."""
        nodes = len(self.tree.nodes)
        if self.cost is None:
            cost = self.tree.distances()
        else:
            cost = np.zeros((nodes, nodes))
            cost[np.ix_(self.candidate, self.candidate)] = self.cost
        return rescaled(cost, np.eye(nodes, dtype=bool), self.margin, self.beta, self.title)

    @cached_property
    def _kernel_tables(self) -> tuple[Array, Array]:
        """As `_tables`; by distance where there are no costs, which large trees need less memory for."""
        if self.cost is not None:
            return self._tables
        distances = np.arange(2.0 * self.tree.depth.max() + 3.0)[None]
        return rescaled(distances, distances == 0.0, self.margin, self.beta, self.title)
