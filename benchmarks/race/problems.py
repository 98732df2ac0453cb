"""The problems of the race, class by class (`targets.KINDS`), and which of them are quick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.race.problem import Problem

LAMBDAS = (1e-3, 1e-4, 1e-5, 1e-6)
LOW = ("a9a", "w8a", "ijcnn1-cont", "covtype-scaled", "covtype-raw", "usps-binary", "dna-binary")
"""Two classes, d <= 1500."""
HIGH = ("farm-ads", "news20-binary", "rcv1-like")
BUNDLES = ("bmrm c++", "ls-bmrm c++", "ocas")
"""Families of the peers that are bundle methods."""


def all_problems() -> tuple[Problem, ...]:
    """In the order of the tables."""
    found = tuple(problem for part in PARTS for problem in part())
    names = [problem.name for problem in found]
    assert len(set(names)) == len(names), "two problems have one name"
    return found


def grid(
    kind: str,
    loss: str,
    sets: Iterable[str],
    lambdas: Iterable[float],
    quick: Iterable[tuple[str, float]] = (),
    penalty: str = "l2",
    **rest: Any,
) -> Iterator[Problem]:
    """A problem for each set and lambda, those of `quick` marked; `rest` are fields of `Problem` and of the loss."""
    fast = set(quick)
    fields = {key: rest.pop(key) for key in ("ours", "rivals") if key in rest}
    for data in sets:
        for lam in lambdas:
            weights = {"l1": lam / 2, "l2": lam / 2} if penalty == "elastic_net" else {penalty: lam}
            yield Problem(kind, data, loss, options=rest, quick=(data, lam) in fast, **weights, **fields)


def _two_classes() -> Iterator[Problem]:
    yield from grid("hinge-low", "hinge", LOW, LAMBDAS, [("a9a", 1e-5), ("w8a", 1e-4)])
    yield from grid("hinge-high", "hinge", HIGH, LAMBDAS, [("news20-binary", 1e-4), ("rcv1-like", 1e-5)])
    both = [("a9a", 1e-5), ("news20-binary", 1e-4)]
    yield from grid("logistic", "logistic", (*LOW, *HIGH), LAMBDAS, both)
    yield from grid("squared-hinge", "squared_hinge", (*LOW, *HIGH), LAMBDAS, both)


def _absolute() -> Iterator[Problem]:
    sets, lambdas = ("cpusmall", "fried", "abalone", "space_ga", "year-like", "rcv1-like-regression"), (1e-3, 1e-5)
    yield from grid("absolute", "least_absolute_deviation", sets, lambdas, [("cpusmall", 1e-5)])
    yield from grid("absolute", "epsilon_insensitive", sets, lambdas, [("fried", 1e-5)], epsilon=0.1)
    yield from grid("absolute", "quantile", sets, lambdas, tau=0.5)
    yield from grid("absolute", "quantile", ("fried", "year-like"), (1e-8,), [("fried", 1e-8)], tau=0.9)
    yield from grid("absolute", "quantile", ("million",), (1e-8,), tau=0.5)
    yield from grid("absolute", "quantile", ("cpusmall",), (1e-2, 1e-3), penalty="l1", tau=0.5)


def _regression() -> Iterator[Problem]:
    sets = ("cpusmall", "fried", "abalone", "year-like")
    yield from grid("regression", "huber", sets, (1e-3, 1e-5), [("cpusmall", 1e-5)], delta=0.5)
    yield from grid("regression", "poisson", ("bike",), (1e-3, 1e-5), [("bike", 1e-3)])
    more = (*sets, "rcv1-like-regression")
    yield from grid("regression", "least_squares", more, (1e-3, 1e-5), [("rcv1-like-regression", 1e-3)])
    yield from grid("regression", "squared_epsilon_insensitive", ("fried", "year-like"), (1e-3, 1e-5), epsilon=0.1)


def _sparse_weights() -> Iterator[Problem]:
    sets = ("a9a", "w8a", "news20-binary", "rcv1-like", "farm-ads")
    yield from grid("l1", "logistic", sets, (1e-3, 1e-4, 1e-5), [("a9a", 1e-4)], penalty="l1")
    regression = ("fried", "lasso-like", "rcv1-like-regression")
    lasso = [("lasso-like", 1e-2)]
    yield from grid("l1", "least_squares", regression, (1e-2, 1e-3, 1e-4), lasso, penalty="l1")
    yield from grid("l1", "least_squares", regression[1:], (1e-2, 1e-3), penalty="elastic_net")
    yield from grid("l1", "logistic", ("a9a", "rcv1-like"), (1e-3, 1e-4), penalty="elastic_net")
    yield from grid("l1", "hinge", ("a9a", "w8a"), (1e-2, 1e-3, 1e-4), penalty="l1")
    yield from grid("l1", "squared_hinge", sets, (1e-3, 1e-4), [("a9a", 1e-3)], penalty="l1")


def _many_classes() -> Iterator[Problem]:
    sets = ("dna", "usps", "news20", "multiclass-like", "covtype")
    quick = [("dna", 1e-3)]
    yield from grid("multiclass", "multiclass_hinge", sets, (1e-3, 1e-4, 1e-5), quick)
    yield from grid("multiclass", "softmax", sets, (1e-3, 1e-4, 1e-5), quick)


def _structured() -> Iterator[Problem]:
    yield from grid("ranking", "roc_area", ("a9a", "w8a", "dna-binary"), (1e-3, 1e-5), [("dna-binary", 1e-3)])
    ranking = ("mq2008", "mq2008-binary", "ranking-like")
    yield from grid("ranking", "rank_hinge", ranking, (1e-2, 1e-3, 1e-4), [("mq2008-binary", 1e-3)])
    yield from grid("f-beta", "f_beta", ("a9a", "w8a", "ijcnn1-cont"), (1e-3, 1e-4), [("a9a", 1e-3)], beta=1.0)
    yield from grid("chain", "chain_crf", ("conll2000-300",), (2.0 / 300,), [("conll2000-300", 2.0 / 300)])
    yield from grid("chain", "chain_crf", ("conll2000",), (2.0 / 8936,))
    yield from grid("chain", "chain_margin", ("conll2000-300", "conll2000"), (1e-2,))
    for loss in ("chain_crf", "chain_margin"):
        yield from grid("chain", loss, ("chains-like",), (1e-2, 1e-3))


def _bundles() -> Iterator[Problem]:
    ours = {"ours": "line_search_bundle", "rivals": BUNDLES}
    yield from grid("bundle", "hinge", ("a9a", "news20-binary", "rcv1-like"), LAMBDAS, [("a9a", 1e-4)], **ours)
    yield from grid("bundle", "logistic", ("a9a",), (1e-3, 1e-5), **ours)


def _unlike() -> Iterator[Problem]:
    """Of the generated families that neither half resembles."""
    low, high = ("heavy-tails", "noise", "small"), ("genes", "short-texts", "long-texts")
    yield from grid("hinge-low", "hinge", low, LAMBDAS[::2])
    yield from grid("hinge-high", "hinge", high, LAMBDAS[::2])
    yield from grid("logistic", "logistic", (*low, *high), LAMBDAS[::2])
    yield from grid("squared-hinge", "squared_hinge", (*low, *high), LAMBDAS[::2])
    numbers = ("genes-regression", "heavy-tails-regression", "long-texts-regression", "small-regression")
    yield from grid("absolute", "least_absolute_deviation", numbers, (1e-3, 1e-5))
    yield from grid("absolute", "epsilon_insensitive", numbers, (1e-3, 1e-5), epsilon=0.1)
    yield from grid("regression", "huber", numbers, (1e-3, 1e-5), delta=0.5)
    yield from grid("regression", "least_squares", numbers, (1e-3, 1e-5))
    yield from grid("l1", "logistic", (*low, *high), (1e-3, 1e-4, 1e-5), penalty="l1")
    yield from grid("l1", "least_squares", numbers, (1e-2, 1e-3), penalty="l1")
    yield from grid("l1", "least_squares", numbers, (1e-2,), penalty="elastic_net")
    yield from grid("l1", "squared_hinge", ("heavy-tails", "short-texts"), (1e-3, 1e-4), penalty="l1")
    for loss in ("multiclass_hinge", "softmax"):
        yield from grid("multiclass", loss, ("apart-classes", "noisy-classes"), (1e-3, 1e-5))
    for loss in ("roc_area", "f_beta"):
        kind = "ranking" if loss == "roc_area" else "f-beta"
        yield from grid(kind, loss, ("heavy-tails", "short-texts"), (1e-3, 1e-4))


PARTS = (_two_classes, _absolute, _regression, _sparse_weights, _many_classes, _structured, _bundles, _unlike)
