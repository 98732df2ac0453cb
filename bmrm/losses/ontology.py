"""Losses for labels that are nodes of a tree: the score of a class is the sum of the scores along its path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit
from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.blocks import along_by_blocks
from bmrm.losses._core.prepared import Array, Positions, PreparedRows
from bmrm.losses._core.rivals import above_own, towards, worst_rivals
from bmrm.losses._core.tree import Tree, consistent
from bmrm.losses.base import Labels, RowLoss
from bmrm.losses.softmax import probabilities, softmax_curvature
from bmrm.problem import InputError, Summary, Targets, Vector
from bmrm.registry import parameter

TreeEdges = tuple[tuple[float | str, ...], ...]
EXAMPLE = (("a", "root"), ("b", "root"), ("c", "a"), ("d", "a"), ("e", "d"), ("f", "b"), ("g", "e"))


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


@fast_jit
def _path_sums(f, y, order, parent, candidate, out, own):  # type: ignore[no-untyped-def]
    """For each candidate the sum over its path minus the largest, -inf for other nodes; `own` is that of the label."""
    sums = np.empty(f.shape[1])
    for i in range(f.shape[0]):
        top = -np.inf
        for at in range(f.shape[1]):
            v = order[at]
            above = parent[v]
            sums[v] = f[i, v] + (sums[above] if above >= 0 else 0.0)
            if candidate[v] and sums[v] > top:
                top = sums[v]
        for v in range(f.shape[1]):
            out[i, v] = sums[v] - top if candidate[v] else -np.inf
        own[i] = sums[y[i]] - top


@fast_jit
def _finish(y, weights, order, parent, own, slope):  # type: ignore[no-untyped-def]
    """With exp(sum - largest) in `slope`: replace it by the slope, return the sum."""
    total = 0.0
    for i in range(slope.shape[0]):
        weight = weights[i] if weights.size else 1.0
        mass = 0.0
        for v in range(slope.shape[1]):
            mass += slope[i, v]
        total += weight * (np.log1p(mass - 1.0) - own[i])
        share = weight / mass
        for v in range(slope.shape[1]):
            slope[i, v] *= share
        for at in range(slope.shape[1] - 1, -1, -1):
            v = order[at]
            if parent[v] >= 0:
                slope[i, parent[v]] += slope[i, v]
        v = y[i]
        while v >= 0:
            slope[i, v] -= weight
            v = parent[v]
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
    own = np.empty(f.shape[0])
    _path_sums(f, y, order, parent, candidate, slope, own)
    np.exp(slope, out=slope)
    return _finish(y, weights, order, parent, own, slope)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class OntologyLoss(RowLoss):
    """A loss over a tree of labels. There are as many scores per row as nodes, in the order of `Tree.nodes`.

    The score of a class is the sum of the scores from its root down to it, so weights are learned per node.
    """

    edges: TreeEdges = parameter(  # noqa: RUF009
        doc="the tree: pairs of child and parent, or a file with `child parent` in each line",
        example=EXAMPLE,
    )
    candidates: str = parameter(
        "leaves", doc="the nodes that may be labels", choices=("leaves", "nodes"), example="nodes"
    )

    task: ClassVar[str] = "ontology"
    metrics = ("accuracy", "tree_distance", "macro_f1")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "edges", consistent(self.edges, self.title))
        _ = self.tree

    @cached_property
    def tree(self) -> Tree:
        """The tree of the edges."""
        return Tree(self.edges, self.title)  # type: ignore[arg-type]

    @cached_property
    def candidate(self) -> NDArray[np.bool_]:
        """(nodes,): whether the node may be a label."""
        return self.tree.leaf if self.candidates == "leaves" else np.ones_like(self.tree.leaf)

    def summarise(self, targets: Targets) -> Summary:
        """The nodes of the tree and how many of these rows have each as their label."""
        found = domain.summary_of_labels(targets, self.title)
        counts = dict(zip(found.labels, found.counts, strict=True))
        nodes = self.tree.nodes
        return Summary(found.rows, found.weight, nodes, tuple(counts.get(node, 0) for node in nodes), 0, found.dtype)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError where a label is no node, or no leaf while `candidates` are the leaves."""
        y = domain.label_positions(targets, summary.labels, self.title)
        wrong = ~self.candidate[y]
        if targets.weights is not None:
            wrong &= np.asarray(targets.weights) != 0.0
        if wrong.any():
            name = self.tree.nodes[y[np.argmax(wrong)]]
            raise InputError(f"{self.title}: the label {name!r} is no leaf of the tree; take candidates: nodes")
        return self._prepared(targets, y, len(self.tree.nodes), summary)

    def arguments(self, summary: Summary) -> tuple[Any, ...]:
        """The tree as arrays."""
        return self.tree.order, self.tree.parent, self.tree.depth, self.candidate

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The candidate of the largest sum along its path, (rows,)."""
        sums = np.where(self.candidate, self.tree.path_sums(f), -np.inf)
        chosen: NDArray[Any] = np.array(labels)[sums.argmax(axis=1)]
        return chosen

    def _up(self, at_nodes: Array) -> Array:
        """A slope with respect to the classes' sums as one with respect to the nodes' scores."""
        return self.tree.subtree_sums(at_nodes)


@register("ontology_hinge", task="ontology")
@dataclass(frozen=True)
class OntologyHinge(OntologyLoss):
    """max_k (d(y, k) + F_k - F_y), F_k the sum of f along the path to k: the margin grows with the tree's distance.

    Domain: labels are nodes of a tree given by its edges; d(y, k) is the number of edges between y and k. Several
    roots hang on an unnamed one. The maximum is over the leaves, or all nodes (`candidates`). At ties the slope takes
    the true class first, then the first of the worst.
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
        top = reach.max(axis=1)
        mass = np.exp(reach - top[:, None]).sum(axis=1)
        loss: Array = np.log1p(mass - 1.0) + (top - sums[np.arange(len(y)), y])
        return loss

    def slope(self, f: Array, y: Positions) -> Array:
        """Its slope: the probability of the node's subtree, minus 1 along the path to the true class."""
        shares = probabilities(self._reach(f))
        shares[np.arange(len(y)), y] -= 1.0
        return self._up(shares)

    def curvature_product(self, f: Array, y: Positions, step: Array) -> Array:
        """Each row's second derivative times its row of `step`."""
        return self._up(softmax_curvature(self._reach(f), self.tree.path_sums(step)))

    def _reach(self, f: Array) -> Array:
        """The sum along the path to each candidate, -inf for other nodes; (rows, nodes)."""
        return np.where(self.candidate, self.tree.path_sums(f), -np.inf)
