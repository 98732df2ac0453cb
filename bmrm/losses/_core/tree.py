"""A tree of labels, and sums over it that cost one step per node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core.prepared import Array
from bmrm.problem import InputError

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
        self.nodes: tuple[float | str, ...] = tuple(sorted({name for edge in edges for name in edge}))  # type: ignore[type-var]
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
