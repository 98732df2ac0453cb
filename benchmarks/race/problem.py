"""A problem of the race, and the same with its data: what every competitor is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.race.halves import half_of
from benchmarks.race.sets import load
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr


@dataclass(frozen=True)
class Problem:
    """Minimise l1 ||w||_1 + l2/2 ||w||^2 + mean loss of the rows' scores <x_i, w>; no intercept.

    Attributes
    ----------
    kind : the class of problems that it belongs to, a key of `targets.KINDS`.
    data : a name of `sets.MAKERS`.
    loss : a registered loss; `options` are its parameters.
    quick : whether `make bench` includes it.
    ours : the solver that is timed; "auto" but for comparisons of one method.
    rivals : the families of peers that it is for; empty for all.
    """

    kind: str
    data: str
    loss: str
    l1: float = 0.0
    l2: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    ours: str = "auto"
    rivals: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Unique among the problems."""
        options = "".join(f",{key}={value:g}" for key, value in self.options.items())
        lambdas = [f"{sign}={value:g}" for sign, value in (("l1", self.l1), ("l2", self.l2)) if value]
        ours = "" if self.ours == "auto" else f" [{self.ours}]"
        return f"{self.loss}{options} {self.data} {' '.join(lambdas)}{ours}"

    @property
    def half(self) -> str:
        """Of the split into sets for tuning and for judging."""
        return half_of(self.data)

    @property
    def penalty(self) -> str:
        """The regularizer's kind."""
        return "elastic_net" if self.l1 and self.l2 else ("l1" if self.l1 else "l2")

    @property
    def lam(self) -> float:
        """Lambda of a regularizer that has only one."""
        return self.l1 + self.l2


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its data, as arrays that nobody may change; peers take copies."""

    problem: Problem
    dataset: Dataset

    @classmethod
    def of(cls, problem: Problem) -> Task:
        """With all rows."""
        return cls(problem, load(problem.data))

    def few(self, rows: int = 400) -> Task:
        """With a sample of whole groups, or of rows, every class in it, features within [-1, 1]: for warming up."""
        y, groups = self.dataset.targets.y, self.dataset.targets.groups
        if groups is not None:
            chosen = np.flatnonzero(groups < groups[0] + max(5, rows // 20))
            return Task(self.problem, tame(self.dataset.select(chosen)))
        rng = np.random.default_rng(0)
        order = rng.permutation(self.dataset.rows)
        firsts = [order[np.flatnonzero(y[order] == label)[:2]] for label in self.labels] if self.labels.size else []
        return Task(self.problem, tame(self.dataset.select(np.unique(np.concatenate([order[:rows], *firsts])))))

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return self.problem.loss

    @property
    def rows(self) -> int:
        """m."""
        return self.dataset.rows

    @property
    def features(self) -> int:
        """d."""
        return self.dataset.features

    @cached_property
    def X(self) -> Any:
        """scipy CSR, or a dense array."""
        X = self.dataset.X
        if not isinstance(X, Csr):
            return X
        from scipy.sparse import csr_matrix

        found = X.to_scipy()
        small = found.nnz < 2**31
        indptr = found.indptr.astype(np.int32 if small else np.int64)
        return csr_matrix((found.data.astype(np.float64), found.indices, indptr), shape=found.shape)

    @property
    def sparse(self) -> bool:
        """Whether `X` is a scipy matrix."""
        return isinstance(self.dataset.X, Csr)

    @property
    def y(self) -> NDArray[Any]:
        """Targets."""
        return self.dataset.targets.y  # type: ignore[no-any-return]

    @cached_property
    def labels(self) -> NDArray[Any]:
        """The distinct classes in score order; empty for regression."""
        kinds = ("multiclass_hinge", "softmax", "chain_crf", "chain_margin")
        return np.unique(self.y) if self.loss in kinds else np.empty(0)

    @cached_property
    def classes(self) -> NDArray[np.int64]:
        """Targets as places in `labels`."""
        return np.searchsorted(self.labels, self.y)

    def share(self) -> None:
        """Make what is made once, so that forked processes have it without making it again."""
        _ = self.X, self.labels, self.classes if self.labels.size else None

    def copied(self) -> tuple[Any, NDArray[Any]]:
        """(X, y) of one's own, to be changed at will."""
        return self.X.copy(), self.y.copy()


def tame(dataset: Dataset) -> Dataset:
    """With every feature divided by its largest absolute value: no program takes long on a few such rows."""
    X = dataset.X
    if not isinstance(X, Csr):
        return replace(dataset, X=(X / np.maximum(np.abs(X).max(axis=0), 1e-300)).astype(X.dtype))
    if X.values is None:
        return dataset
    largest = np.full(X.columns, 1e-300)
    np.maximum.at(largest, X.indices, np.abs(X.values))
    return replace(dataset, X=replace(X, values=(X.values / largest[X.indices]).astype(X.values.dtype)))
