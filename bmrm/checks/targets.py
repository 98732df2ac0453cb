"""Generated targets that a loss takes, whatever its task, and options for a plug-in that needs some."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.labels import LabelSets
from bmrm.problem import InputError, facts_of
from bmrm.registry import option_name

CLASSES = 3
ROWS = 36
Maker = Callable[[np.random.Generator, int, Any], Any]
MAKERS: dict[str, Maker] = {}
"""By the task of a loss."""


def targets_for(loss: Any, rows: int = ROWS, seed: int = 3) -> Any:
    """Targets of the loss's task, inside its domain; InputError for a task of the loss's own."""
    task = facts_of(loss).task
    if task not in MAKERS:
        known = ", ".join(sorted(MAKERS))
        raise InputError(f"no targets can be made up for the task {task!r} (known: {known}); give some as y=")
    return MAKERS[task](np.random.default_rng(seed), rows, loss)


def groups_for(loss: Any, rows: int = ROWS) -> NDArray[np.int64] | None:
    """Groups of 1 to 7 rows that follow one another, for losses that look at one group at a time; else None."""
    if loss.decomposes != "groups":
        return None
    names = np.repeat(np.arange(96, 0, -1), np.tile([5, 1, 7, 3, 6, 2], 16))
    return names[:rows].astype(np.int64)


def example_of(cls: type[Any], options: dict[str, Any] | None = None) -> Any:
    """An instance with the options given, and with their examples where a parameter without a default has none.

    Raises InputError for a parameter that has neither a default nor an example.
    """
    values = dict(options or {})
    for field in dataclasses.fields(cls):
        missing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.init and missing and field.name not in values:
            if field.metadata.get("example") is None:
                name = option_name(field.name)
                raise InputError(f"{cls.__name__}: {name} has no default; give it, or an example to its parameter()")
            values[field.name] = field.metadata["example"]
    return cls(**values)


def _task(name: str) -> Callable[[Maker], Maker]:
    def keep(maker: Maker) -> Maker:
        MAKERS[name] = maker
        return maker

    return keep


@_task("binary")
def _binary(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.where(rng.random(rows) < 0.4, 1.0, -1.0)


@_task("multiclass")
def _multiclass(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES


@_task("regression")
def _regression(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Partly whole numbers, so that scores can meet them."""
    y = rng.integers(-2, 3, size=rows).astype(float)
    y[::3] += rng.normal(size=y[::3].shape)
    lowest = {"": None, ">= 0": 0.0, "> 0": 0.5}[facts_of(loss).targets_from]
    return y if lowest is None else np.abs(y) + lowest


@_task("novelty")
def _novelty(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.array(["not", "looked", "at"])[np.arange(rows) % 3]


@_task("ranking")
def _ranking(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Four grades; the first five rows, which are a group, have all the same."""
    y = rng.integers(0, 4, size=rows).astype(float)
    y[:5] = 1.0
    return y


@_task("sequence")
def _sequence(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES


@_task("ordinal")
def _ordinal(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.arange(rows)[rng.permutation(rows)] % 4 + 1.0


@_task("multivariate")
def _multivariate(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    return np.stack([_regression(rng, rows, loss) for _ in range(CLASSES)], axis=1)


@_task("multilabel")
def _multilabel(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    """Labels 1, 2, 5 and 7; one row without any, one with all."""
    names = np.array([1.0, 2.0, 5.0, 7.0])
    sets = [names[rng.random(4) < 0.4] for _ in range(rows)]
    sets[0], sets[1] = names[:0], names
    return LabelSets.from_rows(sets)


@_task("ontology")
def _ontology(rng: np.random.Generator, rows: int, loss: Any) -> Any:
    names = np.array(loss.tree.nodes)[loss.candidate]
    return names[rng.permutation(rows) % len(names)]
