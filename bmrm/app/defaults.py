"""What is taken where nothing is given: a loss by the kind of y, lambda by the rows, an intercept by the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import Any, Literal

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.label_types import is_whole
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError, facts_of
from bmrm.registry import Entry

MOST_CLASSES = 100
"""Most different integers that count as classes; with more they are as likely counts or measurements, and the user is
asked."""
INTERCEPTS = {"free": "free intercept", "regularized": "constant feature", "none": "no intercept"}
"""Names of the values of `data.bias` in tables."""


def default_loss(data: Dataset, group: Group | None = None, name: str = "y") -> tuple[str, str]:
    """Collective: the name of a loss that fits the targets of all ranks, and what they were taken for.

    Two labels are classes, whatever their type; more are classes where they are text, integers or truth values, and
    numbers where they are floats.

    Parameters
    ----------
    group : the ranks; None for this process alone.
    name : what messages call the targets.

    Raises
    ------
    InputError
        Where the targets may mean either, or there are none.
    """
    group = Alone() if group is None else group
    found: tuple[str, str] | None = None
    told = group.gather(kinds_of(data))
    with together(group):
        if told is not None:
            found = _loss_for([one for one in told if one], name)
    loss, words = group.broadcast(found)
    return loss, words


def kinds_of(data: Dataset) -> dict[str, Any]:
    """What the targets of some rows are, for other ranks; {} where there are none.

    `values` are the different ones of positive weight; of numbers that are not whole no more than tell that.
    """
    y, dtype = data.targets.y, data.targets.dtype
    if not data.labelled or not data.rows:
        return {}
    if isinstance(y, LabelSets):
        return {"sets": True}
    if y.ndim != 1:
        return {"shape": list(y.shape)}
    values = np.unique(y if data.targets.weights is None else y[data.targets.weights > 0.0])
    floats = y.dtype.kind == "f" and not is_whole(dtype)
    whole = not floats or bool((values == np.rint(values)).all())
    return {"floats": floats, "whole": whole, "values": (values[:3] if floats else values).tolist()}


def _loss_for(kinds: Sequence[Mapping[str, Any]], name: str) -> tuple[str, str]:
    if not kinds:
        none = "y is None" if name == "y" else f"{name} has no labels"
        raise InputError(f"{none}, expected a label or a number for each row of X, or a loss that needs none: novelty")
    if any("sets" in one for one in kinds):
        return "multilabel_hinge", "sets of labels"
    shape = next((one["shape"] for one in kinds if "shape" in one), None)
    if shape is not None:
        raise InputError(
            f"{name} has shape {tuple(shape)}, expected one label or number per row, or a loss by name: "
            "multivariate_least_squares for numbers, multilabel_hinge for a matrix of 0 and 1"
        )
    values = {value for one in kinds for value in one["values"]}
    whole = all(one["whole"] for one in kinds)
    if any(one["floats"] for one in kinds) and not (whole and len(values) == 2):
        return "least_squares", "numbers"
    if len(values) <= 2:
        return "hinge", "two classes"
    if len(values) > MOST_CLASSES and not any(isinstance(value, str) for value in values):
        raise InputError(
            f"{name} holds {len(values)} different integers, expected a loss by name: least_squares for numbers, "
            "multiclass_hinge for classes"
        )
    return facts_of(LOSSES.get("hinge").cls).multiclass, f"{len(values)} classes"


def default_lambda(data: Dataset) -> float:
    """1 / m for m rows of positive weight."""
    weights = data.targets.weights
    return 1.0 / max(1, data.rows if weights is None else int(np.count_nonzero(weights)))


def needs_lambda(entry: Entry[Any]) -> bool:
    """Whether the lambda of a regularizer is 1 / m unless it is given."""
    found = entry.options.get("lambda")
    return found is not None and found.default is MISSING


def default_bias(loss: Any) -> Literal["free", "none"]:
    """`free` where the loss has a free intercept and nothing that serves as one, else `none`."""
    facts = facts_of(loss)
    return "none" if facts.no_free_intercept or facts.instead_of_intercept else "free"
