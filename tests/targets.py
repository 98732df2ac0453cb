"""Generated targets that a loss takes, whatever its task, and an instance of every registered loss."""

import dataclasses

import numpy as np

from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES

CLASSES = 3
MAKERS = {}


def task(name):
    def keep(function):
        MAKERS[name] = function
        return function

    return keep


def targets_for(loss, rows=36, seed=3):
    """Targets of the loss's task, inside its domain."""
    return MAKERS[loss.task](np.random.default_rng(seed), rows, loss)


def groups_for(loss, rows=36):
    """Groups of 1 to 7 rows that follow one another, for losses that look at one group at a time; else None."""
    if loss.decomposes != "groups":
        return None
    names = np.repeat(np.arange(96, 0, -1), np.tile([5, 1, 7, 3, 6, 2], 16))
    return names[:rows].astype(np.int64)


@task("binary")
def _binary(rng, rows, loss):
    return np.where(rng.random(rows) < 0.4, 1.0, -1.0)


@task("multiclass")
def _multiclass(rng, rows, loss):
    return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES


@task("regression")
def _regression(rng, rows, loss):
    """Partly whole numbers, so that scores can meet them."""
    y = rng.integers(-2, 3, size=rows).astype(float)
    y[::3] += rng.normal(size=y[::3].shape)
    lowest = {"": None, ">= 0": 0.0, "> 0": 0.5}[getattr(loss, "targets_from", "")]
    return y if lowest is None else np.abs(y) + lowest


@task("novelty")
def _novelty(rng, rows, loss):
    return np.array(["not", "looked", "at"])[np.arange(rows) % 3]


@task("ranking")
def _ranking(rng, rows, loss):
    """Four grades; the first five rows, which are a group, have all the same."""
    y = rng.integers(0, 4, size=rows).astype(float)
    y[:5] = 1.0
    return y


@task("sequence")
def _sequence(rng, rows, loss):
    return np.arange(rows, dtype=float)[rng.permutation(rows)] % CLASSES


@task("ordinal")
def _ordinal(rng, rows, loss):
    return np.arange(rows)[rng.permutation(rows)] % 4 + 1.0


@task("multivariate")
def _multivariate(rng, rows, loss):
    return np.stack([_regression(rng, rows, loss) for _ in range(CLASSES)], axis=1)


@task("multilabel")
def _multilabel(rng, rows, loss):
    """Labels 1, 2, 5 and 7; one row without any, one with all."""
    names = np.array([1.0, 2.0, 5.0, 7.0])
    sets = [names[rng.random(4) < 0.4] for _ in range(rows)]
    sets[0], sets[1] = names[:0], names
    return LabelSets.from_rows(sets)


@task("ontology")
def _ontology(rng, rows, loss):
    names = np.array(loss.tree.nodes)[loss.candidate]
    return names[rng.permutation(rows) % len(names)]


def examples(entry, required_only=False):
    """The example of each parameter, or of those without a default."""
    return {
        field.name: field.metadata["example"]
        for field in entry.parameters
        if field.metadata.get("example") is not None and not (required_only and has_default(field))
    }


def has_default(field):
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def default_instance(entry):
    """The loss as its name alone makes it; parameters without a default are at their example."""
    return entry.cls(**examples(entry, required_only=True))


def losses():
    """Each registered loss with its defaults, and once more with every parameter at its example."""
    for entry in LOSSES.all():
        yield default_instance(entry)
        if examples(entry) != examples(entry, required_only=True):
            yield entry.cls(**examples(entry))
