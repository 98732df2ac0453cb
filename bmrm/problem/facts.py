"""What is constant for a score function, and for a loss: two records, each made once and passed on whole."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Literal

Hessian = Literal["none", "product", "diagonal", "shares"]
"""Available second derivatives: none, products, products and the diagonal, or these and `shares`."""


@dataclass(frozen=True)
class Facts:
    """What is constant for a score function phi.

    Attributes
    ----------
    scores_per_row : 1, or the number of columns of a table of scores.
    mass : what the sum over rows is divided by.
    infimum : phi is never below this; -inf when unknown.
    smooth : differentiable everywhere with a Lipschitz gradient on bounded sets.
    hessian : what is known of the second derivative.
    hessian_total : whether `hessian_total`, the second derivative in constants, is known in one pass over the scores.
    hessian_bound : the second derivative of a row's loss is nowhere above this, for one score per row.
    quadratic : the second derivative is the same everywhere.
    prox : whether `moreau` is known: a sum over rows.
    shift_invariant : whether adding a number to all scores of a row changes nothing.
    structured_max : whether it is a single maximum over labelings of the whole sample.
    piecewise_linear : whether `breakpoints` are known.
    """

    scores_per_row: int
    mass: float
    infimum: float = -math.inf
    smooth: bool = False
    hessian: Hessian = "none"
    hessian_total: bool = False
    hessian_bound: float = math.inf
    quadratic: bool = False
    prox: bool = False
    shift_invariant: bool = False
    structured_max: bool = False
    piecewise_linear: bool = False

    @property
    def curved(self) -> bool:
        """Whether `hessian_product` is known."""
        return self.hessian != "none"

    @property
    def diagonal(self) -> bool:
        """Whether `hessian_diagonal`, the diagonal of the second derivative, is known."""
        return self.hessian in ("diagonal", "shares")

    @property
    def shared(self) -> bool:
        """Whether `hessian_shares` is known, which `LinearMap.gram` takes: several scores per row."""
        return self.hessian == "shares"

    @property
    def separable(self) -> bool:
        """Whether the diagonal is all of the second derivative: one score per row."""
        return self.diagonal and self.scores_per_row == 1


@dataclass(frozen=True)
class LossFacts:
    """What is constant for a loss; a member that the loss does not have is taken to have its default here.

    Attributes
    ----------
    name : the registered one.
    title : the name for messages: the registered one, else that of the class.
    formula, source : of a row's loss, and where it is from, for tables.
    task : "binary", "regression", "multiclass", "multilabel", "ontology", "sequence", "ranking" or "novelty".
    decomposes : what the loss is a sum over: "rows", "groups" or, where it is none, "no".
    metrics : names of measures, of `bmrm.metrics`.
    smooth, shift_invariant, hessian_bound, quadratic : as of `Facts`.
    scattered_groups : rows of equal group number are one group wherever they stand.
    weighted : a weight means so many copies of the row; where False, weights other than 1 are refused.
    by_group : `predict` takes `groups=`: the predictions of a group's rows depend on one another.
    by_structure : `predict` takes `structure=`, which `Targets` has of each row.
    only_ranks : `predict` gives scores, which order rows but are no targets.
    needs_targets : whether rows must have labels or numbers.
    at_zero : what helps where the minimum is at w = 0, beside a smaller lambda.
    no_free_intercept : why an intercept that the regularizer does not touch has no meaning; empty where it has one.
    instead_of_intercept : what serves as an intercept, so that a free one is there only where it is asked for.
    multiclass : the loss that takes its place where there are more than two classes; empty where there is none.
    targets_from : "", ">= 0" or "> 0": where the targets of a regression begin.
    takes_shares : whether targets may be shares of labels: the loss of a row is then the mean of those of its labels.
    """

    name: str = ""
    title: str = ""
    formula: str = ""
    source: str = ""
    task: str = ""
    decomposes: str = "no"
    metrics: tuple[str, ...] = ()
    smooth: bool = False
    shift_invariant: bool = False
    hessian_bound: float = math.inf
    quadratic: bool = False
    scattered_groups: bool = False
    weighted: bool = True
    by_group: bool = False
    by_structure: bool = False
    only_ranks: bool = False
    needs_targets: bool = True
    at_zero: str = ""
    no_free_intercept: str = ""
    instead_of_intercept: str = ""
    multiclass: str = ""
    targets_from: str = ""
    takes_shares: bool = False


_DEFAULTS: tuple[tuple[str, Any], ...] = tuple((field.name, field.default) for field in fields(LossFacts))


def facts_of(loss: Any) -> LossFacts:
    """The facts of a loss, of whatever class."""
    cls: Any = type(loss)
    return _of_class(cls) or _facts_of(loss)


@cache
def _of_class(cls: type) -> LossFacts | None:
    """Those of all losses of a class of this package without parameters; None of others."""
    own = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
    return _facts_of(cls()) if own and is_dataclass(cls) and not fields(cls) else None


def _facts_of(loss: Any) -> LossFacts:
    found = LossFacts(*(getattr(loss, name, default) for name, default in _DEFAULTS))
    if found.title:
        return found
    cls = loss if isinstance(loss, type) else type(loss)
    return replace(found, title=found.name or cls.__name__)
