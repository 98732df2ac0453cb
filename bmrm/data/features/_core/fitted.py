"""A feature map in a model: scaling of the columns, the map, and their arrays in the model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features import FEATURES
from bmrm.data.features._core.kernels import KernelMap
from bmrm.data.features._core.rows import Mapped, dtype_of
from bmrm.data.matrix import Csr, Matrix, features_of, plain_matrix
from bmrm.problem import InputError, Vector, shown

PREFIX = "features_"
"""Of the arrays in the model file."""
MOST_FILLED = 1 << 28
"""Most numbers of sparse rows whose zeros are shifted, and so stored."""


@dataclass(frozen=True, eq=False)
class FittedFeatures:
    """What stands between the rows of a user and those that a model is linear in.

    Attributes
    ----------
    section : `{name: ..., option: value}`, for the header; of a transformer its class.
    map : what it is.
    inputs : features of a row before.
    scale, shift : the map sees (x - shift) * scale; None for 1 and 0.
    """

    section: Mapping[str, Any]
    map: Mapped
    inputs: int
    scale: Vector | None = None
    shift: Vector | None = None

    @property
    def names(self) -> list[str]:
        """Of the features that it makes."""
        return [f"{self.section['name']} {k}" for k in range(self.map.outputs)]

    def apply(self, X: Matrix) -> Matrix:
        """What is made of some rows, finite; else InputError."""
        made = self.map.apply(scaled(X, self.scale, self.shift))
        return finite(made, self.section["name"])

    def header(self) -> dict[str, Any]:
        """For the header of the model file."""
        return {**self.section, "inputs": self.inputs}

    def members(self) -> dict[str, NDArray[Any]]:
        """Arrays for the model file; InputError for a map that cannot be in one."""
        columns = {"scale": self.scale, "shift": self.shift}
        given = self.map.arrays() | {name: array for name, array in columns.items() if array is not None}
        return {PREFIX + name: array for name, array in given.items()}

    @classmethod
    def from_file(cls, header: Any, members: Mapping[str, NDArray[Any]]) -> FittedFeatures:
        """The inverse of `header` and `members`; InputError where they are damaged."""
        if not isinstance(header, Mapping) or not isinstance(header.get("name"), str) or ":" in header["name"]:
            raise InputError("its feature map has no known name")
        inputs = header.get("inputs")
        if type(inputs) is not int or inputs < 1:
            raise InputError(f"its feature map takes {shown(inputs)} features, expected a whole number >= 1")
        section = {key: value for key, value in header.items() if key != "inputs"}
        entry, arrays = FEATURES.get(header["name"]), {}
        FEATURES.instance(section)
        for name, array in members.items():
            if name.startswith(PREFIX):
                if array.dtype.kind not in "fi" or not np.isfinite(array).all():
                    raise InputError(f"{name} is {array.dtype}, expected finite numbers")
                arrays[name.removeprefix(PREFIX)] = array
        columns = [arrays.pop(name, None) for name in ("scale", "shift")]
        if any(one is not None and (one.shape != (inputs,) or one.dtype != np.float64) for one in columns):
            raise InputError(f"its scaling does not fit {inputs} features")
        try:
            found: Mapped = entry.facts["map"].from_arrays(section, inputs, arrays)
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"its feature map {header['name']} is damaged: {error}") from error
        return cls(section, found, inputs, *columns)

    def with_kernel(self, kernel: Any) -> FittedFeatures:
        """With a kernel of a user's in place of its name; InputError where there is none to replace."""
        map = self.map
        if not isinstance(map, KernelMap):
            raise InputError(f"the feature map {self.section['name']} has no kernel")
        if not callable(kernel):
            raise InputError(f"kernel is {shown(kernel)}, expected a function")
        return replace(self, map=replace(map, kernel=replace(map.kernel, function=kernel)))


def scaled(X: Matrix, scale: Vector | None, shift: Vector | None) -> Matrix:
    """(x - shift) * scale of each row."""
    if shift is not None and isinstance(X, Csr):
        if X.shape[0] * X.shape[1] > MOST_FILLED:
            raise InputError(
                f"features: scale: standardize shifts the zeros of {X.shape[0]} x {X.shape[1]} sparse rows, which then "
                "take too much memory; take scale: max_abs"
            )
        X = X.to_dense()
    if scale is None and shift is None:
        return X
    if isinstance(X, Csr):
        return plain_matrix(features_of(X).times(np.ones(X.shape[1]) if scale is None else scale))
    moved = X if shift is None else X - shift
    return np.ascontiguousarray(moved if scale is None else moved * scale, dtype_of(X))


def finite(made: Matrix, name: str) -> Matrix:
    """The rows; InputError for one that is not finite."""
    values = made.values if isinstance(made, Csr) else made
    if values is not None and not np.isfinite(values).all():
        raise InputError(f"features: {name} makes numbers that are not finite; expected smaller ones, or a scale")
    return made
