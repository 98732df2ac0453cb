"""Small fits of every loss with every solver, regularizer, bias and kind of data, as plain JSON for `in_a_tree`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from bmrm.checks.plug_in import example_of, groups_for, targets_for
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.problem import facts_of
from bmrm.registry import option_name
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers import SOLVERS

ROWS, FEATURES = 90, 6
LIMITS = {"tolerance": 1e-8, "max_iterations": 60}
L2, L1, ELASTIC = (
    {"name": "l2", "lambda": 0.01},
    {"name": "l1", "lambda": 0.01},
    {"name": "elastic_net", "lambda": 0.02},
)
KINDS = (("dense", "none", False), ("sparse", "regularized", True), ("dense", "free", True), ("sparse", "none", False))
"""Features, bias, whether rows have weights."""
TRIED = ("hinge", "logistic", "huber_hinge")
"""Losses on which options of solvers are tried."""

Case = dict[str, Any]


def all_cases() -> dict[str, Case]:
    """By name: `fit`, the plug-ins; `data`, a name of `all_data`; `features`, `bias`, `weighted`."""
    return {case["name"]: case for case in chain(_every_solver(), _automatic(), _options())}


def all_data() -> dict[str, dict[str, Any]]:
    """Features, targets, weights and groups for each loss; some features lean on the targets."""
    return {entry.name: _data_for(example_of(entry.cls)) for entry in LOSSES.all()}


def _every_solver() -> Iterator[Case]:
    """Every loss with every solver, which may refuse it: with l2, and with l1 or the elastic net."""
    solvers = [entry for entry in SOLVERS.all() if entry.name != "auto"]
    for i, loss in enumerate(LOSSES.all()):
        for j, solver in enumerate(solvers):
            for k, penalty in enumerate((L2, (L1, ELASTIC)[(i + j) % 2])):
                yield _case(loss, _solver(solver), penalty, KINDS[(i + j + k) % len(KINDS)])


def _automatic() -> Iterator[Case]:
    """Every loss as most users fit it. What `auto` tries may hang on the clock."""
    for loss in LOSSES.all():
        yield _case(loss, {"name": "auto", "tolerance": 1e-6}, L2, KINDS[0])


def _options() -> Iterator[Case]:
    """Every option of a plug-in at another value."""
    for loss in LOSSES.all():
        for options in _others(loss, "edges"):  # which have no default: every fit has them
            yield _case(loss, _solver(SOLVERS.get("bundle")), L2, KINDS[0], loss_options=options)
    for entry in REGULARIZERS.all():
        for options in _others(entry, "lambda"):
            penalty = {"name": entry.name, "lambda": 0.01, **options}
            yield _case(LOSSES.get("hinge"), _solver(SOLVERS.get("bundle")), penalty, KINDS[0], said=options)
    for entry in SOLVERS.all():
        penalty = L1 if "smooth regularizer" in entry.facts.get("refuses", ()) else L2
        for options in _others(entry, *LIMITS, "time_limit", "seed"):
            for name in TRIED:
                yield _case(LOSSES.get(name), _solver(entry) | options, penalty, KINDS[0], said=options)


def _others(entry: Any, *without: str) -> Iterator[dict[str, Any]]:
    """Each option at a value that is not its default, with the options that it needs beside it."""
    for field in entry.parameters:
        choices = getattr(field.metadata.get("range"), "choices", None) or ()
        values = [one for one in (field.metadata.get("example"), *choices) if one not in (None, field.default)]
        if values and option_name(field.name) not in without:
            yield {**field.metadata.get("beside", {}), option_name(field.name): values[0]}


def _solver(entry: Any) -> dict[str, Any]:
    seed = {"seed": 7} if any(field.name == "seed" for field in entry.parameters) else {}
    return {"name": entry.name, **LIMITS, **seed}


def _case(
    loss: Any,
    solver: dict[str, Any],
    penalty: dict[str, Any],
    kind: tuple[str, str, bool],
    loss_options: dict[str, Any] | None = None,
    said: dict[str, Any] | None = None,
) -> Case:
    """One fit; its name has the options of the loss, and `said`, those of the others."""
    features, bias, weighted = kind
    made = example_of(loss.cls, loss_options)
    weighted = weighted and facts_of(made).weighted
    bias = "regularized" if bias == "free" and facts_of(made).no_free_intercept else bias
    options = [f"{key}={value}" for key, value in {**(loss_options or {}), **(said or {})}.items()]
    words = [loss.name, solver["name"], penalty["name"], features, bias, *["weighted"][: int(weighted)], *options]
    return {
        "name": " ".join(words),
        "data": loss.name,
        "features": features,
        "bias": bias,
        "weighted": weighted,
        "fit": {"loss": LOSSES.describe(made), "solver": solver, "regularizer": penalty},
    }


def _data_for(loss: Any) -> dict[str, Any]:
    y = targets_for(loss, rows=ROWS)
    random = np.random.default_rng(7)
    X = random.normal(size=(ROWS, FEATURES))
    X[random.random(X.shape) < 0.4] = 0.0
    sets = isinstance(y, LabelSets)
    if facts_of(loss).task in ("regression", "ranking", "ordinal"):
        X[:, 0] += 0.3 * y
    elif sets:
        X[:, :4] += y.indicator(y.classes())
    elif y.ndim == 1:
        X[:, 0] += y == y[0]
    groups = groups_for(loss, rows=ROWS)
    return {
        "X": X.tolist(),
        "y": [y.labels[a:b].tolist() for a, b in zip(y.indptr, y.indptr[1:])] if sets else y.tolist(),
        "sets": sets,
        "weights": random.integers(1, 4, ROWS)[np.arange(ROWS) if groups is None else groups % ROWS].tolist(),
        "groups": None if groups is None else groups.tolist(),
    }
