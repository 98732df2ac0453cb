"""Regularizers of single weights with a factor for each feature: `feature_weights` of `l2`, `l1` and `elastic_net`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from bmrm.problem import IncompatibleError, InputError, Space, Vector, shown
from bmrm.problem.regularizer import FeatureColumns
from bmrm.registry import parameter
from bmrm.regularizers._core.blocks import Blocks, blocks
from bmrm.regularizers._core.features import ByFeature, ByName, checked_values, values_of
from bmrm.regularizers.base import ScaledBy

FeatureWeights = float | tuple[float, ...] | dict[int | str, float] | None
FAR = 1e6
"""Ratio of factors up to which features may be divided by them."""
MEMBERS = ("value", "subgradient", "along", "hessian_product", "conjugate", "feasible", "prox", "master")

W = TypeVar("W", bound="Weighted")


def feature_weights_parameter() -> Any:
    """The option: a factor of the penalty of each feature."""
    doc = "factor of each penalty: a list, or {feature: number}; 0 for none"
    return parameter(None, doc=doc, example=2.0, silent=True)


class Weighted(ByFeature, ScaledBy):
    """Base class: Omega is a sum over weights, each times the factor c of its feature.

    Without `feature_weights` the classes are what they always were. With them Omega depends on where the features are
    in w: `bind` returns it, and members that need to know it raise InputError before.
    """

    feature_weights: FeatureWeights
    power: ClassVar[float]
    """Omega(w) with factors c is Omega(c^power w) without them; 0.0 where it is not."""

    def __post_init__(self) -> None:
        super().__post_init__()
        title = type(self).__name__
        given = checked_values(self.feature_weights, f"{title}: feature_weights", empty=np.nan)
        _refuse_negative(given, title)
        object.__setattr__(self, "feature_weights", given)
        if self.by_feature:
            for name in MEMBERS:
                object.__setattr__(self, name, partial(_unbound, title))

    @property
    def by_feature(self) -> bool:
        """Whether `bind` says what Omega is."""
        return self.feature_weights is not None

    def with_features(self: W, columns: FeatureColumns) -> W:
        """As of `OfFeatures`; the same where nothing is said of single features.

        Parameters
        ----------
        columns : of the data.
        """
        return super().with_features(columns) if self.by_feature else self

    def check_features(self, columns: FeatureColumns) -> None:
        """As of `ByFeature`.

        Parameters
        ----------
        columns : of the data.
        """
        self.factors(columns)

    def factors(self, columns: FeatureColumns) -> Vector:
        """c of each feature, 1 where none is given.

        Raises
        ------
        InputError
            Another number of them than of features, a feature that is not there, or all of them 0.
        """
        title = type(self).__name__
        found = values_of(self.feature_weights, columns, f"{title}: feature_weights", 1.0)
        if found.size and not found.any():
            raise InputError(f"{title}: feature_weights are all 0; without a regularizer take `none`")
        return found

    def factors_in(self, space: Space) -> Vector:
        """c of each coordinate; 1 for those of a constant feature and of what the loss learns besides.

        Parameters
        ----------
        space : of w.
        """
        columns, whole = self.columns_of(space), np.ones(space.dim)
        space.table(whole)[: columns.count] = self.factors(columns)[:, None]
        return whole

    def rescaled(self: W) -> tuple[Vector, W] | None:
        """As of `Rescalable`: sum_j c_j |w_j| is ||v||_1 of v_j = c_j w_j, with the features divided by c_j."""
        if not self.by_feature or self.power == 0.0 or self._columns is None:
            return None
        c = self.factors(self._columns)
        least, most = float(c.min(initial=1.0)), float(c.max(initial=1.0))
        if not least * FAR > most:  # a free feature, or scores of little accuracy
            return None
        return c**self.power, replace(self, feature_weights=None)  # type: ignore[type-var, call-arg]

    def bind(self, space: Space) -> Any:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        title = type(self).__name__
        if self.by_feature:
            return self.bound_blocks(space)
        if not space.whole:
            raise IncompatibleError(f"regularizer {title} needs all weights in one place, here they are sliced; use l2")
        return self

    def bound_blocks(self, space: Space) -> Blocks:
        """Omega with its factors.

        Parameters
        ----------
        space : of w.
        """
        c = self.factors_in(space)
        return blocks(space, type(self).__name__, l1=self.l1 * c, l2=self.l2 * c)  # type: ignore[attr-defined]


def _refuse_negative(given: Any, title: str) -> None:
    pairs = given.items() if isinstance(given, ByName) else enumerate(given) if isinstance(given, tuple) else ()
    for feature, value in pairs:
        if value is not None and value < 0.0:
            raise InputError(f"{title}: feature_weights of {shown(feature)} is {value:g}, expected numbers >= 0")
    if isinstance(given, float) and not given > 0.0:
        raise InputError(f"{title}: feature_weights is {given:g}, expected a number > 0 for all features")


def _unbound(title: str, *_: Any, **__: Any) -> Any:
    raise InputError(f"{title}: which weights are those of a feature is not known; take what `bind(space)` returns")
