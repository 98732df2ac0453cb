"""Rows on few directions, `bmrm project`: a linear map that is fitted to some rows, and kept for others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.convert import Converted, checked_target, write_as
from bmrm.app.pipeline.features import Featured
from bmrm.data.archives import read_arrays, write_arrays
from bmrm.data.dataset import Dataset
from bmrm.data.features import FEATURES
from bmrm.data.features._core.fitted import FittedFeatures
from bmrm.data.files import about, open_bytes, whole_file
from bmrm.data.layout import Layout
from bmrm.data.reading import from_one, manner, scan
from bmrm.mpi.group import Alone
from bmrm.problem import InputError, shown
from bmrm.registry import Range, checked_value, nearest

METHODS: Mapping[str, tuple[str, bool]] = {"random": ("random_projection", True), "svd": ("svd", False)}
"""Their feature maps, and whether these draw numbers."""
SCALES = "none", "standardize", "max_abs"
VERSION = 1
HEADER, NAMES = "header", "names"


@dataclass(frozen=True, eq=False)
class Projection:
    """A fitted map, and how the rows were read that it takes.

    Attributes
    ----------
    fitted : scaling and map.
    layout : of the rows that it was fitted to.
    """

    fitted: FittedFeatures
    layout: Layout

    def read(self, source: str, format: Any = "auto") -> Dataset:
        """Rows of a source as those that it was fitted to, with labels or without; InputError for other columns."""
        format, alike = manner(self.layout, format, labelled=False)
        raw = scan(source, format=format, alike=alike)
        one_based = self.layout.one_based if raw.first is not None else None
        return raw.dataset(features=self.fitted.inputs, one_based=one_based)

    def apply(self, data: Dataset) -> Dataset:
        """The rows that it makes."""
        X = self.fitted.apply(data.X)
        known = None if data.layout is None else data.layout.labels
        layout = Layout(features=int(X.shape[1]), names=tuple(self.fitted.names), labels=known)
        return replace(data, X=X, layout=layout)

    def write(self, path: str | PathLike[str]) -> None:
        """Write it, whole or not at all; InputError for text and categories, which are to be encoded before."""
        layout = self.layout
        if layout.encoding is not None or layout.text is not None:
            raise InputError("columns of text and categories are no features yet; expected rows of `bmrm convert`")
        header = {
            "version": VERSION,
            "features": self.fitted.header(),
            "input": layout.described(),
            "one_based": layout.one_based,
        }
        arrays: dict[str, NDArray[Any]] = {HEADER: np.array(json.dumps(header)), **self.fitted.members()}
        if layout.names is not None:
            arrays[NAMES] = np.array(layout.names, np.str_)
        with whole_file(path) as file:
            write_arrays(file, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Projection:
        """The inverse of `write`; InputError where it is no such file."""
        with open_bytes(Path(path)) as file, about(path):
            arrays = read_arrays(file)
            try:
                header = json.loads(str(arrays[HEADER]))
                version, features = header["version"], header["features"]
            except (KeyError, TypeError, ValueError) as error:
                raise InputError("not a map of `bmrm project`") from error
            if version != VERSION:
                raise InputError(f"a map of version {shown(version)}, expected {VERSION}")
            one_based = header.get("one_based")
            if not isinstance(one_based, (bool, NoneType)):
                raise InputError(f"one_based is {shown(one_based)}, expected true, false or null")
            fitted = FittedFeatures.from_file(features, arrays)
            names = tuple(arrays[NAMES].tolist()) if NAMES in arrays else None
            known: dict[str, Any] = {"features": fitted.inputs, "names": names, "one_based": one_based}
            layout = Layout.from_described(header.get("input"), **known)
        return cls(fitted, layout)


def fitted_to(
    source: str, *, method: str = "svd", components: int = 10, format: Any = "auto", scale: str = "none", seed: int = 0
) -> tuple[Projection, Dataset]:
    """The map of the rows of a source, and what it makes of them.

    Parameters
    ----------
    source, format : those of `bmrm.data.reading.scan`.
    method : "svd", the leading right singular vectors, or "random", normal directions.
    components : how many.
    scale : of the columns before: "none", "standardize" (principal components then), "max_abs".
    seed : of random directions.

    Raises
    ------
    InputError
        For what cannot be read, and other options.
    """
    if method not in METHODS:
        raise InputError(f"method is {shown(method)}, expected one of {', '.join(METHODS)}{nearest(method, METHODS)}")
    if scale not in SCALES:
        raise InputError(f"scale is {shown(scale)}, expected one of {', '.join(SCALES)}{nearest(scale, SCALES)}")
    checked_value("components", components, (int,), Range(least=1))
    name, draws = METHODS[method]
    features = FEATURES.make(name, {"rank": components, **({"seed": seed} if draws else {})})
    raw = scan(source, format=format)
    data = raw.dataset()
    one_based = from_one(raw.extent) if raw.first is not None else None
    layout = replace(data.layout or Layout(), one_based=one_based)
    featured = Featured.of(features, {"train": data}, scale, Alone())
    projection = Projection(featured.fitted, layout)
    made = featured.parts["train"]
    known = None if data.layout is None else data.layout.labels
    return projection, replace(made, layout=replace(made.layout or Layout(), labels=known))


def project(
    source: str,
    target: str | PathLike[str],
    *,
    method: str = "svd",
    components: int = 10,
    format: Any = "auto",
    scale: str = "none",
    seed: int = 0,
    save: str | PathLike[str] | None = None,
    load: str | PathLike[str] | None = None,
) -> Converted:
    """Write the rows of a source on few directions, targets and weights as they are.

    Parameters
    ----------
    source, format, method, components, scale, seed : those of `fitted_to`.
    target : the name says the format, as of `bmrm.app.convert.convert`.
    save : a file for the map.
    load : such a file: its map is taken, none is fitted.

    Raises
    ------
    InputError
        For what cannot be read or written, rows that the map does not fit, and other options.
    """
    checked_target(target)
    if load is not None:
        projection = Projection.load(load)
        made = projection.apply(projection.read(source, format))
    else:
        projection, made = fitted_to(
            source, method=method, components=components, format=format, scale=scale, seed=seed
        )
    if save is not None:
        projection.write(save)
    return write_as(target, made, str(source))
