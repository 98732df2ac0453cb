"""Groups of features as blocks of coordinates, for `group_l2` and `sparse_group`."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, Space, Vector, shown
from bmrm.problem.regularizer import FeatureColumns
from bmrm.registry import parameter
from bmrm.regularizers._core.blocks import Partition
from bmrm.regularizers._core.features import ByFeature, checked_groups, groups_of
from bmrm.regularizers.base import ScaledBy

G = TypeVar("G", bound="Grouped")
T = TypeVar("T")
GROUPS = ((0, 1),)
"""An example."""


@dataclass(frozen=True)
class Grouped(ByFeature, ScaledBy):
    """Base class: lambda, the groups and their weights.

    Parameters
    ----------
    lam : lambda > 0.
    groups : lists of features, by number from 0, by name, or as `town=*`, all whose names begin alike; or a file with a
        group on each line, features between blanks or commas. None: every feature is a group of its own.
    weights : of the groups, >= 0; 0 for a group that is not penalised. None for sqrt(features of the group).

    Raises
    ------
    InputError : an option is outside its range; later, where the features are known, groups that overlap or name
        features that are not there.
    """

    groups: tuple[tuple[int | str, ...], ...] | None = parameter(
        None, doc="features of each group, by number, name, or name*", example=GROUPS
    )
    weights: tuple[float, ...] | None = parameter(
        None, doc="weight of each group; null = sqrt(features)", example=(2.0,), beside={"groups": GROUPS}
    )

    _known: ClassVar[dict[str, Any]]
    """What was found for the features last asked about, with what they were; of an instance."""

    def __post_init__(self) -> None:
        super().__post_init__()
        title = type(self).__name__
        object.__setattr__(self, "groups", checked_groups(self.groups, f"{title}: groups"))
        object.__setattr__(self, "weights", _checked_weights(self.weights, self.groups, title))
        object.__setattr__(self, "_known", {})

    def with_lambda(self: G, lam: float) -> G:
        """As of `ScaledBy`; what is known of the groups is known of those.

        Parameters
        ----------
        lam : lambda > 0.
        """
        found = copy(self)
        object.__setattr__(found, "lam", ScaledBy(lam).lam)
        return found

    def check_features(self, columns: FeatureColumns) -> None:
        """As of `ByFeature`.

        Parameters
        ----------
        columns : of the data.
        """
        self._groups_in(columns)

    def _groups_in(self, columns: FeatureColumns) -> list[NDArray[np.int64]]:
        make = partial(groups_of, self.groups or (), columns, f"{type(self).__name__}: groups")
        return self._once("groups", (columns.count, columns.names), make)

    def _once(self, name: str, key: object, make: Callable[[], T]) -> T:
        """What was made for the same key the last time, by this or by one of another lambda."""
        last: Any = self._known.get(name)
        if last is None or last[0] != key:
            last = self._known[name] = key, make()
        found: T = last[1]
        return found

    def partition(self, space: Space, strength: float) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """Blocks of the strengths `strength` times the weights, as of `Partition.arrays`.

        The block of a group has the coordinates of its features for all scores. Features in no group are blocks of
        their own of weight 1, as are a constant feature and what the loss learns besides.

        Parameters
        ----------
        space : of w.
        strength : the factor of all weights.
        """
        columns = self.columns_of(space)
        make = partial(self._partition, space, columns)
        starts, coordinates, weights = self._once("partition", (columns.count, columns.names, space), make)
        return starts, coordinates, strength * weights

    def _partition(self, space: Space, columns: FeatureColumns) -> tuple[NDArray[np.int64], NDArray[np.int64], Vector]:
        """The same for a strength of 1."""
        groups = self._groups_in(columns)
        weights = [math.sqrt(len(group)) for group in groups] if self.weights is None else self.weights
        found, others = Partition(space), np.ones(space.inputs, bool)
        for group, weight in zip(groups, weights, strict=True):
            found.add(group, weight)
            others[group] = False
        found.add_each(np.flatnonzero(others), 1.0)
        return found.arrays(1.0)


def _checked_weights(given: Any, groups: Any, title: str) -> tuple[float, ...] | None:
    """As tuples of floats; InputError unless there is one for each group."""
    if given is None:
        return None
    try:
        weights = tuple(float(one) for one in given)
    except (TypeError, ValueError):
        raise InputError(f"{title}: weights is {shown(given)}, expected a number for each group") from None
    if groups is None or len(weights) != len(groups):
        count = 0 if groups is None else len(groups)
        raise InputError(f"{title}: {len(weights)} weights for {count} groups, expected one each")
    wrong = next((one for one in weights if not 0.0 <= one < math.inf), None)
    if wrong is not None:
        raise InputError(f"{title}: weights has {wrong:g}, expected numbers >= 0")
    return weights
