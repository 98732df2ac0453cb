"""Weights between bounds, with the squared norm or the sum of absolute values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.problem import InputError, Space, Vector, shown
from bmrm.problem.regularizer import FeatureColumns
from bmrm.registry import parameter
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, blocks
from bmrm.regularizers._core.features import ByFeature, checked_values, values_of
from bmrm.regularizers.base import ScaledBy


@register("box")
@dataclass(frozen=True)
class Box(ByFeature, ScaledBy):
    """lambda/2 ||w||^2 or lambda ||w||_1 for lower <= w <= upper, +inf elsewhere: non-negative weights by default.

    A feature with lower = 0 can only raise the score: the model is monotone in it. Bounds are those of the weights of
    the model, whatever `scale` is; with several scores they hold for each. The conjugate is a sum over weights of
    v_j w_j - Omega(w_j) at the best w_j between its bounds; the proximal map is that of `norm`, then cut to the bounds.
    A constant feature, and what the loss learns besides, have no bounds.

    Parameters
    ----------
    lam : lambda > 0.
    lower, upper : one number for all features, a list with one for each, or {feature: number} by name, number from 0,
        or `town=*`, all whose names begin alike; None, there too, for no bound. Default 0 and None.
    norm : `l2` for lambda/2 ||w||^2, `l1` for lambda ||w||_1.

    Raises
    ------
    InputError : lambda is not positive and finite, or `norm` unknown; bounds that are no numbers, or cross; later,
        where the features are known, lists of another length and features that are not there.
    """

    lower: float | tuple[float | None, ...] | dict[int | str, float | None] | None = parameter(  # noqa: RUF009
        0.0, doc="least weight: a number, one for each feature, or {feature: number}; null for none", example=-0.25
    )
    upper: float | tuple[float | None, ...] | dict[int | str, float | None] | None = parameter(  # noqa: RUF009
        None, doc="largest weight, as `lower`", example=0.125
    )
    norm: str = parameter("l2", doc="what is penalised", choices=("l2", "l1"), example="l1")

    def __post_init__(self) -> None:
        for name, sign in (("lower", -1.0), ("upper", 1.0)):
            given = checked_values(getattr(self, name), f"Box: {name}", empty=sign * math.inf)
            object.__setattr__(self, name, given)
        super().__post_init__()
        if isinstance(self.lower, float) and isinstance(self.upper, float) and self.lower > self.upper:
            raise InputError(f"Box: lower is {self.lower:g}, above upper, which is {self.upper:g}")

    def check_features(self, columns: FeatureColumns) -> None:
        """As of `ByFeature`.

        Parameters
        ----------
        columns : of the data.
        """
        self._bounds(columns)

    def bind(self, space: Space) -> Blocks:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        columns = self.columns_of(space)
        bounds, table = [], np.arange(space.dim)[: space.inputs * space.scores].reshape(-1, space.scores)
        for limits, default in zip(self._bounds(columns), (-math.inf, math.inf), strict=True):
            whole = np.full(space.dim, default)
            whole[table[: columns.count]] = (limits if columns.units is None else limits * columns.units)[:, None]
            bounds.append(whole)
        l1, l2 = (self.lam, 0.0) if self.norm == "l1" else (0.0, self.lam)
        return blocks(space, type(self).__name__, l1=l1, l2=l2, lower=bounds[0], upper=bounds[1])

    def _bounds(self, columns: FeatureColumns) -> tuple[Vector, Vector]:
        """Of each feature; InputError where they cross."""
        lower = values_of(self.lower, columns, "Box: lower", -math.inf)
        upper = values_of(self.upper, columns, "Box: upper", math.inf)
        crossed = np.flatnonzero(lower > upper)
        if crossed.size:
            j = int(crossed[0])
            name = j if columns.names is None else shown(columns.names[j])
            raise InputError(f"Box: lower of feature {name} is {lower[j]:g}, above upper, which is {upper[j]:g}")
        return lower, upper
