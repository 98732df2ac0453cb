"""Factors of the weights of rows by their class: `class_weight` of every door."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bmrm.data.label_types import stored
from bmrm.problem import InputError, Vector, shown
from bmrm.registry import Range, checked_value

BALANCED = "balanced"
"""All classes weigh the same, with the weights of their rows."""
ClassWeight = Mapping[Any, float] | Sequence[tuple[Any, float]] | str | None
"""A factor for each label, or pairs of both, `BALANCED`, or None for 1."""


def checked(given: ClassWeight, name: str = "class_weight") -> dict[Any, float] | str | None:
    """What was given, with factors finite and >= 0.

    Raises
    ------
    InputError
        What is none of these; a label that is given twice.
    """
    if given is None or (isinstance(given, str) and given == BALANCED):
        return given
    pairs: Any = list(given.items()) if isinstance(given, Mapping) else given
    if isinstance(pairs, str) or not isinstance(pairs, Sequence) or not all(_is_pair(pair) for pair in pairs):
        raise InputError(f"{name} is {shown(given)}, expected a dict of factors by label, '{BALANCED}' or None")
    limits, found = Range(least=0.0, below=math.inf), dict[Any, float]()
    for label, factor in pairs:
        if label in found:
            raise InputError(f"{name} has the label {shown(label)} twice")
        found[label] = checked_value(f"{name} of {shown(label)}", factor, (float,), limits)
    return found


def _is_pair(pair: Any) -> bool:
    """Whether it is a label, which is a number, text or a time, and something else."""
    no_label = (Mapping, set, list, tuple, type(None))
    return isinstance(pair, (tuple, list)) and len(pair) == 2 and not isinstance(pair[0], no_label)


def factors(
    given: dict[Any, float] | str | None, labels: Sequence[Any], masses: Vector, name: str = "class_weight"
) -> Vector:
    """The factor of each class.

    Parameters
    ----------
    given : as `checked` returns. A label that no row has is no error where all classes have a factor: a part of the
        rows may lack it.
    labels, masses : of the classes, and the weight of the rows of each.
    name : of the argument, for messages.

    Raises
    ------
    InputError
        Labels that are perhaps misspelt.
    """
    if given is None:
        return np.ones(len(labels))
    if isinstance(given, str):
        there = masses > 0.0
        balanced: Vector = masses.sum() / (np.count_nonzero(there) * np.where(there, masses, 1.0))
        return balanced
    strange = next((label for label in given if label not in labels), None)
    if strange is not None and any(label not in given for label in labels):
        raise InputError(
            f"{name} has the label {shown(strange)}, which y has not; its labels are {shown(list(labels))}"
        )
    return np.array([given.get(label, 1.0) for label in labels], np.float64)


def pairs_of(given: ClassWeight) -> Any:
    """As plain JSON: pairs of label and factor; labels of other types as text."""
    found = checked(given)
    if not isinstance(found, dict):
        return found
    return [[one if isinstance(one, (int, float, str)) else str(one), factor] for one, factor in found.items()]


def of_stored(given: dict[Any, float] | str | None) -> dict[Any, float] | str | None:
    """The factors by labels as datasets store them (see `bmrm.data.label_types`)."""
    return {_stored(label): factor for label, factor in given.items()} if isinstance(given, dict) else given


def _stored(label: Any) -> Any:
    if isinstance(label, str):
        return label
    found = stored(np.array([label]), "class_weight")[0][0].item()
    return label if found == label else found
