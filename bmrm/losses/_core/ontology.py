"""Losses for labels that are nodes of a tree: the score of a class is the sum of the scores along its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array, PreparedRows
from bmrm.losses.base import Labels, RowLoss
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

Edges = Sequence[tuple[float | str, float | str]]


class Tree:
    """A tree, or several below an unnamed root, from edges `(child, parent)`.

    Parameters
    ----------
    edges : every child once; names all numbers or all text.
    title : who asks, for messages.

    Attributes
    ----------
    nodes : the names in sort order; positions below refer to it.
    parent : (nodes,) int64, -1 for roots.
    depth : (nodes,) int64, 0 for roots.
    order : (nodes,) int64, parents before their children.
    leaf : (nodes,) bool.
    """

    def __init__(self, edges: Edges, title: str) -> None:
        if not edges:
            raise InputError(f"{title}: the tree has no edges, expected pairs of child and parent")
        self.title = title
        self.nodes: tuple[float | str, ...] = tuple(sorted({name for edge in edges for name in edge}))
        place = {name: k for k, name in enumerate(self.nodes)}
        self.parent: NDArray[np.int64] = np.full(len(self.nodes), -1, np.int64)
        for child, parent in edges:
            if self.parent[place[child]] >= 0:
                other = self.nodes[self.parent[place[child]]]
                raise InputError(f"{title}: {child!r} has two parents, {other!r} and {parent!r}")
            self.parent[place[child]] = place[parent]
        self.leaf: NDArray[np.bool_] = np.ones(len(self.nodes), np.bool_)
        self.leaf[self.parent[self.parent >= 0]] = False
        self.depth = self._depths()
        self.order: NDArray[np.int64] = np.argsort(self.depth, kind="stable").astype(np.int64)
        self._levels = [np.flatnonzero(self.depth == d) for d in range(1, int(self.depth.max()) + 1)]

    def path_sums(self, f: Array) -> Array:
        """For each node the sum of `f`, (rows, nodes), over the path from its root to it."""
        sums: Array = f.copy()
        for level in self._levels:
            sums[:, level] += sums[:, self.parent[level]]
        return sums

    def subtree_sums(self, f: Array) -> Array:
        """For each node the sum of `f`, (rows, nodes), over the node and all below it: `path_sums` transposed."""
        sums: Array = f.copy()
        for level in reversed(self._levels):
            np.add.at(sums.T, self.parent[level], sums.T[level])
        return sums

    def distances(self) -> Array:
        """(nodes, nodes): edges on the way between two nodes, by the unnamed root where there are several roots."""
        on_path = self.path_sums(np.eye(len(self.nodes))).T
        shared = on_path @ on_path.T - 1.0
        distances: Array = self.depth[:, None] + self.depth[None, :] - 2.0 * shared
        return distances

    def _depths(self) -> NDArray[np.int64]:
        depth = np.where(self.parent < 0, 0, -1).astype(np.int64)
        for level in range(1, len(self.nodes) + 1):
            below = (depth < 0) & (depth[self.parent] == level - 1)
            if not below.any():
                break
            depth[below] = level
        if (depth < 0).any():
            name = self.nodes[int(np.argmax(depth < 0))]
            raise InputError(f"{self.title}: {name!r} is its own ancestor, expected a tree")
        return depth


def consistent(edges: Sequence[Sequence[float | str]], title: str) -> tuple[tuple[float | str, float | str], ...]:
    """The edges as nested tuples, names as readers make them of labels: all numbers where all are, else all text."""
    pairs = [tuple(edge) for edge in edges]
    wrong = next((edge for edge in pairs if len(edge) != 2), None)
    if wrong is not None:
        raise InputError(f"{title}: edge {' '.join(map(str, wrong))!r}, expected a child and its parent")
    try:
        numbers = [(float(child), float(parent)) for child, parent in pairs]
    except ValueError:
        return tuple((str(child), str(parent)) for child, parent in pairs)
    if not np.all(np.isfinite(np.array(numbers or [(0.0, 0.0)]))):
        raise InputError(f"{title}: the name of a node is no finite number")
    return tuple(numbers)


TreeEdges = tuple[tuple[float | str, ...], ...]
EXAMPLE = (("a", "root"), ("b", "root"), ("c", "a"), ("d", "a"), ("e", "d"), ("f", "b"), ("g", "e"))


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

    def class_labels(self, labels: Sequence[Any]) -> Sequence[Any]:
        """The candidates."""
        return [label for label, may in zip(labels, self.candidate, strict=True) if may]

    def class_scores(self, f: Array) -> Array:
        """Of the candidates, (rows, candidates): sums along their paths."""
        scores: Array = self.tree.path_sums(f)[:, self.candidate]
        return scores

    def _up(self, at_nodes: Array) -> Array:
        """A slope with respect to the classes' sums as one with respect to the nodes' scores."""
        return self.tree.subtree_sums(at_nodes)
