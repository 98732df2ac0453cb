"""Losses for labels that are nodes of a tree: the score of a class is the sum of the scores along its path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array, PreparedRows
from bmrm.losses._core.tree import Tree, consistent
from bmrm.losses.base import Labels, RowLoss
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

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

    def _up(self, at_nodes: Array) -> Array:
        """A slope with respect to the classes' sums as one with respect to the nodes' scores."""
        return self.tree.subtree_sums(at_nodes)
