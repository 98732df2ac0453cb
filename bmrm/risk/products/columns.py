"""Scaled and shifted features, without touching the data: the change is made to the weights instead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, Vector

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """The features x' = (x - shift) * scale.

    Since <x', w> = <x, scale w> - <shift, scale w>, sparse data stay sparse.

    Attributes
    ----------
    scale : (features,) finite, or None for 1.
    shift : (features,) finite, in the units of the raw features, or None for 0.
    """

    scale: Vector | None = None
    shift: Vector | None = None

    def __post_init__(self) -> None:
        for name in ("scale", "shift"):
            array = getattr(self, name)
            if array is not None and not (array.ndim == 1 and np.all(np.isfinite(array))):
                raise InputError(f"Columns: {name} must be a vector of finite numbers")

    def check(self, features: int) -> None:
        """InputError unless there is an entry for each of `features`."""
        for name in ("scale", "shift"):
            array = getattr(self, name)
            if array is not None and array.shape != (features,):
                raise InputError(f"Columns: {name} has {array.shape[0]} entries, the data have {features} features")

    def raw_weights(self, weights: Array, intercept: Array) -> tuple[Array, Array]:
        """The weights and the intercept for raw features that give the same scores.

        Parameters
        ----------
        weights : (features,) or (features, scores per row), for x'.
        intercept : (scores per row,), a number where `weights` is a vector.
        """
        raw = weights if self.scale is None else (weights.T * self.scale).T
        return raw, intercept if self.shift is None else intercept - self.shift @ raw

    def scaled_weights(self, raw: Array, intercept: Array) -> tuple[Array, Array]:
        """The inverse of `raw_weights`; features of scale 0 get weight 0."""
        if self.scale is None:
            return raw, intercept if self.shift is None else intercept + self.shift @ raw
        scale = np.where(self.scale == 0.0, 1.0, self.scale)
        weights = ((raw.T / scale) * (self.scale != 0.0)).T
        return weights, intercept if self.shift is None else intercept + self.shift @ raw

    def scaled_gradient(self, raw: Array, total: Array) -> Array:
        """The gradient with respect to weights for x', from that for x and the sum of the slopes; may reuse `raw`."""
        return self.scaled_part(slice(None), raw, total)

    def scaled_part(self, features: slice, raw: Array, total: Array) -> Array:
        """As `scaled_gradient`, where `raw` holds some consecutive features only."""
        with np.errstate(over="ignore", invalid="ignore"):  # slopes far away may be as large as any number
            if self.shift is not None:
                raw -= np.multiply.outer(self.shift[features], total)
            if self.scale is not None:
                raw *= self.scale[features] if raw.ndim == 1 else self.scale[features, None]
        return raw
