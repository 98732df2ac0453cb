"""The option `center` of `l2`: the point from which weights are pulled away at a price, in place of 0."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, shown
from bmrm.problem.regularizer import FeatureColumns
from bmrm.registry import parameter
from bmrm.regularizers._core.features import checked_values, values_of

Center = float | tuple[float, ...] | dict[int | str, float] | str | None


def center_parameter() -> Any:
    """The option."""
    doc = "weights that are not penalised: a list, {feature: number}, or a model file; null for 0"
    return parameter(None, doc=doc, example=0.5, silent=True)


def checked_center(given: Any, title: str) -> Any:
    """A path, a tuple of rows of a table, or what `checked_values` returns.

    Parameters
    ----------
    given : as the option gives it.
    title : what messages call it.

    Raises
    ------
    InputError
        What is none of these.
    """
    if given is None:
        return None
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if not isinstance(path, str) or not path:
            raise InputError(f"{title} is {shown(given)}, expected numbers or the path of a model file")
        return path
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (list, tuple)) and any(isinstance(row, (list, tuple, np.ndarray)) for row in given):
        return _checked_table(given, title)
    return checked_values(given, title, empty=np.nan)


def _checked_table(given: Any, title: str) -> tuple[tuple[float, ...], ...]:
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in given]
    width = len(rows[0]) if isinstance(rows[0], (list, tuple)) else 0
    if not width or any(not isinstance(row, (list, tuple)) or len(row) != width for row in rows):
        raise InputError(f"{title} is {shown(given)}, expected a number for each feature, or as many for each")
    found = [checked_values(row, f"{title}: row {k}", empty=np.nan) for k, row in enumerate(rows)]
    return tuple(tuple(0.0 if value is None else value for value in row) for row in found)


def center_table(center: Any, columns: FeatureColumns, scores: int, title: str) -> NDArray[np.float64]:
    """Numbers for the weights of features, (features, scores), in the units of the data.

    Parameters
    ----------
    center : as `checked_center` returns it; one number for a feature is that of all its scores.
    columns : of the data.
    scores : of a row.
    title : what messages call the option.

    Raises
    ------
    InputError
        The path of a file; numbers for other features or scores.
    """
    if isinstance(center, str):
        raise InputError(f"{title} is the model file {shown(center)}, which `bmrm.fit` reads; expected numbers")
    if isinstance(center, tuple) and center and isinstance(center[0], tuple):
        shape = len(center), len(center[0])
        if shape != (columns.count, scores):
            raise InputError(f"{title} has shape {shape}, expected {columns.count, scores}: features and scores")
        return np.array(center, np.float64)
    found = values_of(center, columns, title, 0.0)
    return np.repeat(found[:, None], scores, axis=1)
