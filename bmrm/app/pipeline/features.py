"""`data.features`: a map that is fitted to the training rows of all ranks, and rows that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.model import Model
from bmrm.app.pipeline.solve import Problem
from bmrm.data.dataset import Dataset
from bmrm.data.digest import digests
from bmrm.data.features import FEATURES
from bmrm.data.features._core.fitted import FittedFeatures, finite, scaled
from bmrm.data.features._core.rows import Features
from bmrm.data.features._core.transformer import OfTransformer, Transformer
from bmrm.data.layout import Layout
from bmrm.data.matrix import Csr, Matrix, part_of, rows_of
from bmrm.kernels.blas_threads import one_thread
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.group import Group, together
from bmrm.problem import InputError, Targets, Vector, shown
from bmrm.risk.room import refuse_too_many_numbers
from bmrm.risk.scaling import SCALINGS

MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
"""Of numbers that are drawn from digests of rows."""


def checked(given: Any) -> Features | None:
    """From a name, a mapping, options, a transformer of scikit-learn, or None for none; InputError for others."""
    if given is None or isinstance(given, (str, Mapping)):
        return None if given is None else FEATURES.instance(given)
    if isinstance(given, type):
        raise InputError(f"features is the class {given.__name__}, expected an instance: {given.__name__}()")
    if isinstance(given, Features):
        return given
    if isinstance(given, Transformer):
        return OfTransformer(given)
    names = ", ".join(entry.name for entry in FEATURES.all())
    raise InputError(
        f"features is {shown(given)}, expected one of {names}, a mapping or a transformer with fit, transform"
    )


def section_of(features: Features | None) -> dict[str, Any] | None:
    """As JSON, for headers and descriptions of problems."""
    if features is None:
        return None
    if isinstance(features, OfTransformer):
        return {"name": type(features.transformer).__name__}
    found = FEATURES.describe(features)
    return {key: value if isinstance(value, PLAIN) else str(value) for key, value in found.items()}


PLAIN = str, int, float, bool, type(None)


@dataclass(frozen=True)
class GroupRows:
    """As of `AllRows`.

    Parameters
    ----------
    X : of this rank.
    read : the same as they were read: what is scaled is rounded otherwise on other ranks.
    group : the ranks.
    """

    X: Matrix
    read: Matrix
    group: Group

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Numbers that depend on the content of each row alone."""
        return digests(Dataset(self.read, Targets(np.zeros(self.read.shape[0]))))

    @property
    def total(self) -> int:
        """As of `AllRows`."""
        return int(self.group.sum(np.array([float(self.X.shape[0])]))[0])

    def drawn(self, count: int, seed: int) -> Matrix:
        """As of `AllRows`: those of the least numbers that follow from their content and the seed."""
        group, mixed = self.group, (self.keys ^ np.uint64(seed)) * MIX
        mixed ^= mixed >> SHIFT
        own = np.argsort(mixed, kind="stable")[:count]
        candidates = Dataset(rows_of(self.X, own), Targets(np.zeros(len(own))))
        found, numbers = gather_rows(candidates, group), group.gather_array(mixed[own].view(np.int64))
        chosen = None
        if found is not None and numbers is not None:
            order = np.argsort(numbers.view(np.uint64), kind="stable")[:count]
            chosen = rows_of(found.X, order)
        return on_every_rank(chosen, isinstance(self.X, Csr), self.X.shape[1], self.X.dtype, group)

    def of_largest(self, values: Vector, beside: NDArray[np.float64]) -> tuple[float, Vector, NDArray[np.float64]]:
        """As of `AllRows`; of several the one with the least number."""
        group, mine, place = self.group, -np.inf, 0
        if len(values):
            mine = float(values.max())
            best = np.flatnonzero(values == mine)
            place = int(best[np.argmin(self.keys[best])])
        key = int(self.keys[place]) if len(values) else 0
        told = group.gather([mine, key])
        first = None
        if told is not None:
            first = min((-most, number, rank) for rank, (most, number) in enumerate(told))
        less, _, owner = group.broadcast(first)
        value = -float(less)
        found = np.zeros(self.X.shape[1] + beside.shape[0])
        if group.rank == owner and len(values):
            one = part_of(self.X, place, place + 1)
            found[: self.X.shape[1]] = one.to_dense()[0] if isinstance(one, Csr) else one[0]
            found[self.X.shape[1] :] = beside[:, place]
        found = group.sum(found)
        return value, found[: self.X.shape[1]], found[self.X.shape[1] :]

    def sum(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """As of `AllRows`."""
        return self.group.sum(array)


def on_every_rank(chosen: Matrix | None, sparse: bool, columns: int, dtype: Any, group: Group) -> Matrix:
    """Collective: the matrix of rank 0."""
    if group.size == 1:
        assert chosen is not None
        return chosen
    if not sparse:
        dense = None if chosen is None else np.asarray(chosen, np.float64)
        return np.ascontiguousarray(group.broadcast_array(dense), dtype)
    own = chosen.own if isinstance(chosen, Csr) else None
    values = None if own is None else np.ones(len(own.indices)) if own.values is None else own.values
    arrays = (None, None, None) if own is None else (own.indptr, own.indices, values)
    indptr, indices, numbers = (
        group.broadcast_array(None if array is None else np.asarray(array, np.float64)) for array in arrays
    )
    found = Csr(indptr.astype(np.int64), indices.astype(np.int32), numbers.astype(dtype), columns)
    return found.without_unit_values()


@dataclass(frozen=True)
class Featured:
    """A fitted map with the rows it makes.

    Attributes
    ----------
    fitted : for the model.
    parts : the rows by part.
    layout : of the files, for the model.
    row_scale : "unit_norm" where rows were divided by their norm before.
    """

    fitted: FittedFeatures
    parts: dict[str, Dataset]
    layout: Layout | None
    row_scale: str

    @classmethod
    def of(
        cls, features: Features, parts: Mapping[str, Dataset], scale: str, group: Group, threads: int | None = None
    ) -> Featured:
        """Collective: from rows with `data.scale: unit_norm` applied; scalings of columns come before the map, too.

        Raises
        ------
        InputError
            For rows that the map does not take.
        """
        train = parts["train"]
        columns = SCALINGS[scale].columns(train, group)
        by = (None, None) if columns is None else (columns.scale, columns.shift)
        with together(group):
            for part, data in parts.items():
                _refuse_too_many(features, part, data)
            X = scaled(train.X, *by)
        section = section_of(features)
        assert section is not None
        with one_thread(threads or group.cores_per_rank):
            map, made = features.fitted(GroupRows(X, train.X, group))
        fitted = FittedFeatures(section, map, train.features, *by)
        with together(group):
            finite(made, section["name"])
            found = {part: _with(data, fitted.apply(data.X), fitted) for part, data in parts.items() if part != "train"}
        all_parts = {"train": _with(train, made, fitted)} | found
        return cls(
            fitted, {part: all_parts[part] for part in parts}, train.layout, scale if scale == "unit_norm" else "none"
        )

    def problem(self, problem: Problem) -> Problem:
        """The same, of the rows that are made."""
        return replace(problem, scale="none", mapped=True)

    def model(self, model: Model) -> Model:
        """The model with the map, for raw rows."""
        return replace(model, features=self.fitted, layout=self.layout, row_scale=self.row_scale)


def _refuse_too_many(features: Features, part: str, data: Dataset) -> None:
    said = f"features: those that are made of the {data.rows} rows of data.{part}"
    refuse_too_many_numbers(features.numbers(data.X), said, "expected a smaller rank or degree")


def _with(data: Dataset, X: Matrix, fitted: FittedFeatures) -> Dataset:
    offset = None if data.layout is None else data.layout.offset
    layout = Layout(features=int(X.shape[1]), names=tuple(fitted.names), stated=True, offset=offset)
    return replace(data, X=X, layout=layout)
