"""Features in the options of regularizers: by number, by name, or all whose names begin alike (`town=*`)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, Space, Vector, shown
from bmrm.problem.regularizer import FeatureColumns
from bmrm.registry import nearest

Feature = int | str
Group = tuple[Feature, ...]
Values = Any
"""A number for all features, None for none, a tuple with one for each, or `ByName`; see `checked_values`."""
ALL = "*"
"""Ends a text that stands for all names which begin like it."""
R = TypeVar("R", bound="ByFeature")


class ByFeature:
    """Base class of regularizers whose options name features; what they are is told before `bind`."""

    _columns: FeatureColumns | None = None

    def with_features(self: R, columns: FeatureColumns) -> R:
        """The same for these features; as of `OfFeatures`.

        Parameters
        ----------
        columns : of the data.
        """
        found = copy(self)
        object.__setattr__(found, "_columns", columns)
        found.check_features(columns)
        return found

    def check_features(self, columns: FeatureColumns) -> None:
        """Raise InputError for features that are not there.

        Parameters
        ----------
        columns : of the data.
        """

    def columns_of(self, space: Space) -> FeatureColumns:
        """What is known of the features; of a space alone, that each input is one.

        Parameters
        ----------
        space : of w.
        """
        return FeatureColumns(space.inputs) if self._columns is None else self._columns


def numbers_of(features: Sequence[Feature], columns: FeatureColumns, title: str) -> Iterator[int]:
    """The number of each feature, in order; of a text that ends in `*` all that begin like it.

    Parameters
    ----------
    features : as the option gives them.
    columns : of the data.
    title : what messages call the option.

    Raises
    ------
    InputError
        A feature that is not there.
    """
    names = columns.names
    places = {} if names is None else {name: k for k, name in enumerate(names)}
    for feature in features:
        if type(feature) is int and 0 <= feature < columns.count:
            yield feature
        elif isinstance(feature, str) and feature in places:
            yield places[feature]
        elif isinstance(feature, str) and not _is_number(feature):
            yield from _named(feature, names, title)
        else:
            number = int(feature)
            if not 0 <= number < columns.count:
                raise InputError(f"{title}: feature {number}, expected 0 to {columns.count - 1}")
            yield number


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _named(feature: str, names: tuple[str, ...] | None, title: str) -> list[int]:
    if names is None:
        raise InputError(f"{title}: feature {shown(feature)}, but the features have no names; expected their numbers")
    start = feature.removesuffix(ALL)
    found = [k for k, name in enumerate(names) if name.startswith(start)] if start != feature else []
    if not found:
        what = f"no feature begins with {shown(start)}" if start != feature else f"there is no feature {shown(feature)}"
        raise InputError(f"{title}: {what}{nearest(start, names)}")
    return found


def checked_feature(given: Any, title: str) -> Feature:
    """A number from 0, or a name.

    Raises
    ------
    InputError
        Anything else.
    """
    if type(given) is int and given >= 0:  # most are: asking for abstract classes takes longer
        return given
    if isinstance(given, str) and given:
        return given
    if isinstance(given, numbers.Integral) and not isinstance(given, bool) and int(given) >= 0:
        return int(given)
    raise InputError(f"{title} has the feature {shown(given)}, expected a number from 0, or a name")


def checked_groups(given: Any, title: str) -> tuple[Group, ...] | None:
    """Groups of features as tuples, from lists, or from a file with a group on each line.

    Raises
    ------
    InputError
        What is none of these, or an empty group.
    """
    if given is None:
        return None
    if isinstance(given, str):
        given = _of_file(given, title)
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(f"{title} is {shown(given)}, expected lists of features, or a file with a group on each line")
    found = []
    for k, group in enumerate(given):
        group = [group] if isinstance(group, (str, int)) else group
        if not isinstance(group, (list, tuple)) or not group:
            raise InputError(f"{title}: group {k} is {shown(group)}, expected a list of features")
        found.append(tuple(checked_feature(one, f"{title}: group {k}") for one in group))
    return tuple(found)


def _of_file(path: str, title: str) -> list[list[str]]:
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8 text"
        raise InputError(f"{title}: {shown(path)} cannot be read: {reason}; expected a group on each line") from error
    groups = [line.replace(",", " ").split() for line in lines]
    return [group for group in groups if group]


def groups_of(groups: Sequence[Group], columns: FeatureColumns, title: str) -> list[NDArray[np.int64]]:
    """The feature numbers of each group.

    Raises
    ------
    InputError
        A feature that is not there, or in two groups.
    """
    owner: dict[int, int] = {}
    found = []
    for k, group in enumerate(groups):
        members = [*numbers_of(group, columns, f"{title}: group {k}")]
        for number in members:
            if number in owner:
                name = number if columns.names is None else shown(columns.names[number])
                where = f"groups {owner[number]} and {k}" if owner[number] != k else f"group {k} twice"
                raise InputError(f"{title}: feature {name} is in {where}, expected groups that do not overlap")
            owner[number] = k
        found.append(np.array(members, np.int64))
    return found


class ByName(dict[Any, Any]):
    """Values by feature, hashable, so that options may be compared and kept in sets; not to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def checked_values(given: Any, title: str, *, empty: float) -> Values:
    """A number for each feature: one for all, one each, or by feature; None is `empty`, and so are the others there.

    Parameters
    ----------
    given : as the option gives it.
    title : what messages call it.
    empty : what None stands for; other infinities, and nan, are refused.

    Raises
    ------
    InputError
        What is none of these.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        return ByName({checked_feature(one, title): _number(x, f"{title} of {one}", empty) for one, x in given.items()})
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (list, tuple)):
        return tuple(_number(x, f"{title} of feature {k}", empty) for k, x in enumerate(given))
    return _number(given, title, empty)


def _number(given: Any, title: str, empty: float) -> float | None:
    if given is None or (isinstance(given, float) and given == empty):
        return None
    number = isinstance(given, (numbers.Real, np.generic)) and not isinstance(given, (bool, np.bool_))
    if not number or not math.isfinite(given):
        raise InputError(f"{title} is {shown(given)}, expected a finite number, one for each feature, or by feature")
    return float(given)


def values_of(values: Values, columns: FeatureColumns, title: str, empty: float) -> Vector:
    """One number for each feature, (features,).

    Parameters
    ----------
    values : as `checked_values` returns.
    columns : of the data.
    title : what messages call the option.
    empty : of features for which None is given, or nothing.

    Raises
    ------
    InputError
        Another number of them than of features, or a feature that is not there.
    """
    found = np.full(columns.count, empty)
    if isinstance(values, ByName):
        for feature, value in values.items():
            for j in numbers_of([feature], columns, title):
                found[j] = empty if value is None else value
    elif isinstance(values, tuple):
        if len(values) != columns.count:
            raise InputError(f"{title} has {len(values)} numbers, expected one for each of {columns.count} features")
        found[:] = [empty if value is None else value for value in values]
    elif values is not None:
        found[:] = values
    return found
