"""The squared Euclidean norm."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Master, Space, Vector
from bmrm.problem.regularizer import FeatureColumns, Planes
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, blocks
from bmrm.regularizers._core.center import Center, center_parameter, center_table, checked_center
from bmrm.regularizers._core.weighted import FeatureWeights, Weighted, feature_weights_parameter
from bmrm.regularizers.base import ANYWHERE, Line, engine_parameter, l2_line, load

ENGINES = {
    "active_set": "bmrm.masters.l2_active_set:SimplexQP",
    "cvxopt": "bmrm.masters.cvxopt:CvxoptQP",
    "line_search": "bmrm.masters.l2_line_search:LineSearchQP",
}


@register("l2")
@dataclass(frozen=True)
class L2(Weighted):
    """lambda/2 ||w||^2, or lambda/2 sum_j c_j w_j^2: the regularizer of support vector machines and ridge regression.

    Its conjugate is ||v||^2 / (2 lambda), so that every plane of the risk gives a lower bound (eq. 15 of Teo et al.,
    KDD 2007). The master of the bundle method is a quadratic program over simplices.

    With a `center` it is lambda/2 ||w - center||^2: weights stay near those of another model unless the rows say
    otherwise (transfer, continual training). `bmrm.fit` and configs minimise over w - center, whose scores are added
    to those that the center gives, so that every solver serves it as it does without one.

    Parameters
    ----------
    lam : lambda > 0.
    engine : solver of the master problem: `active_set` (ours, warm-started), `cvxopt` (interior point, from scratch),
        or `line_search`, one step towards the newest plane in place of the quadratic program (KDD 2007, proof of
        Theorem 2): cheap steps, and many more of them.
    feature_weights : c, a list with a number >= 0 for each feature, or {feature: number} by number from 0, name, or
        `town=*`, all whose names begin alike, the others having 1; 0 for a feature that is not penalised. None for 1.
    center : of the weights, in the units of the data whatever `scale` is: a number for each feature, alike for all
        scores, a list or {feature: number}, the others having 0; an array (features, scores); or the path of a model
        file, whose features are found by name where both have names, and its scores by label. None for 0.

    Raises
    ------
    InputError : lambda is not positive and finite, or the engine is unknown; weights that are negative, no numbers or
        all 0; a center that has no numbers; later, where the features are known, lists of another length, features that
        are not there, and model files that do not fit.
    """

    engine: str = engine_parameter(ENGINES)
    feature_weights: FeatureWeights = feature_weights_parameter()  # noqa: RUF009
    center: Center = center_parameter()  # noqa: RUF009
    smooth = True
    power = 0.5
    l1: ClassVar[float] = 0.0
    _space = ANYWHERE

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", checked_center(self.center, "L2: center"))
        super().__post_init__()

    @property
    def by_feature(self) -> bool:
        """Whether `bind` says what Omega is."""
        return self.feature_weights is not None or self.center is not None

    def without_center(self) -> L2:
        """As of `Centred`."""
        return replace(self, center=None)

    def center_of(self, columns: FeatureColumns, scores: int) -> NDArray[np.float64]:
        """As of `Centred`.

        Parameters
        ----------
        columns : of the data.
        scores : of a row.
        """
        return center_table(self.center, columns, scores, "L2: center")

    def bound_blocks(self, space: Space) -> Blocks:
        """Omega with its factors and its center.

        Parameters
        ----------
        space : of w.
        """
        columns, center = self.columns_of(space), np.zeros(space.dim)
        units = 1.0 if columns.units is None else columns.units[:, None]
        space.table(center)[: columns.count] = units * self.center_of(columns, space.scores)
        return blocks(space, "L2", l2=self.lam * self.factors_in(space), center=center)

    def bind(self, space: Space) -> L2 | Blocks:
        """Omega for vectors of this space; where they are slices, inner products are those of the space.

        Parameters
        ----------
        space : of w.
        """
        if self.by_feature:
            return self.bound_blocks(space)
        if space.whole:
            return self
        bound = copy(self)
        object.__setattr__(bound, "_space", space)
        return bound

    @property
    def l2(self) -> float:
        """Lambda: Omega(w) = l1 ||w||_1 + l2/2 ||w||^2, with l1 = 0."""
        return self.lam

    @property
    def modulus(self) -> float:
        """Lambda: Omega is that strongly convex."""
        return self.lam

    def value(self, w: Vector) -> float:
        """lambda/2 ||w||^2.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return 0.5 * self.lam * self._space.dot(w, w)

    def subgradient(self, w: Vector) -> Vector:
        """Lambda w.

        Parameters
        ----------
        w : (dim,), the weights.
        """
        return self.lam * w

    def hessian_product(self, f: Vector, step: Vector) -> Vector:
        """Lambda step, the second derivative (the same at every `f`) times `step`.

        Parameters
        ----------
        f : (dim,), the weights where it is taken.
        step : (dim,), the direction.
        """
        return self.lam * step

    def along(self, w: Vector, step: Vector) -> Line:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t: a quadratic, set up once.

        Parameters
        ----------
        w, step : (dim,), a point and a direction.
        """
        return l2_line(self.lam, w, step, self._space)

    def conjugate(self, v: Vector) -> float:
        """||v||^2 / (2 lambda), the maximum over w of <v, w> - Omega(w); +inf, with no warning, where it overflows.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return 0.5 * self._space.dot(v, v) / self.lam

    def feasible(self, v: Vector) -> float:
        """1.0: the conjugate is finite everywhere.

        Parameters
        ----------
        v : (dim,), a dual point.
        """
        return 1.0

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2.

        Parameters
        ----------
        v : (dim,), the point to stay near.
        step : greater than 0, the factor of Omega.
        """
        return v / (1.0 + step * self.lam)

    def master(self, planes: Planes) -> Master:
        """As of `HasMaster`.

        Parameters
        ----------
        planes : an empty store, which the master fills.
        """
        return load(ENGINES[self.engine])(planes, self.lam)
