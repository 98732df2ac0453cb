"""Products of features, by scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features import register
from bmrm.data.features._core.rows import AllRows, plain
from bmrm.data.matrix import MOST_COLUMNS, Csr, Matrix
from bmrm.problem import InputError
from bmrm.registry import check_parameters, parameter


def products(factors: int, degree: int, different: bool) -> int:
    """How many products of at most `degree` of some factors there are, each factor once at most or often."""
    if different:
        return sum(math.comb(factors, k) for k in range(1, min(degree, factors) + 1))
    return math.comb(factors + degree, degree) - 1


@dataclass(frozen=True)
class PolynomialMap:
    """All products of at most `degree` features, without the constant; sparse rows stay sparse."""

    degree: int
    interaction_only: bool
    inputs: int

    @property
    def outputs(self) -> int:
        """As of `Mapped`."""
        return products(self.inputs, self.degree, self.interaction_only)

    def apply(self, X: Matrix) -> Matrix:
        """As of `Mapped`."""
        from sklearn.preprocessing import PolynomialFeatures

        maker = PolynomialFeatures(self.degree, interaction_only=self.interaction_only, include_bias=False)
        made = maker.fit(np.zeros((1, self.inputs))).transform(plain(X))
        return Csr.from_scipy(made) if isinstance(X, Csr) else np.ascontiguousarray(made)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of `Mapped`."""
        return {}

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> PolynomialMap:
        """As of `Mapped`."""
        return cls(section["degree"], section["interaction_only"], inputs)


@register("polynomial", map=PolynomialMap)
@dataclass(frozen=True)
class Polynomial:
    """Products of at most `degree` features: `sklearn.preprocessing.PolynomialFeatures` without the constant.

    Parameters
    ----------
    degree : factors of a product at most.
    interaction_only : whether the factors of a product are different features.

    Raises
    ------
    InputError
        For more products than there can be columns.
    """

    degree: int = parameter(2, least=1, doc="factors of a product at most", example=3)
    interaction_only: bool = parameter(False, doc="products of different features alone", example=True)

    def __post_init__(self) -> None:
        check_parameters(self)

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        if not isinstance(X, Csr):
            return int(X.shape[0]) * products(X.shape[1], self.degree, self.interaction_only)
        sizes, rows = np.unique(np.diff(X.indptr), return_counts=True)
        pairs = zip(sizes.tolist(), rows.tolist(), strict=True)
        return sum(count * products(size, self.degree, self.interaction_only) for size, count in pairs)

    def fitted(self, rows: AllRows) -> tuple[PolynomialMap, Matrix]:
        """As of `Features`."""
        found = PolynomialMap(self.degree, self.interaction_only, rows.X.shape[1])
        if found.outputs > MOST_COLUMNS:
            raise InputError(f"features: polynomial of {found.inputs} features makes {found.outputs}, too many")
        return found, found.apply(rows.X)
