"""Generated data: `synthetic:NAME?option=value&option=value`. The same options give the same rows everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol
from urllib.parse import parse_qsl

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.generators.links import Links
from bmrm.data.generators.thesis import Thesis
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets
from bmrm.registry import check_parameters, nearest, parameter


class Generator(Protocol):
    """A frozen dataclass of options."""

    name: ClassVar[str]

    def make(self) -> Dataset: ...


@dataclass(frozen=True)
class SparseBinary:
    """Rows like tf-idf of texts, two classes.

    Columns are drawn by Zipf's law (column j with probability proportional to 1 / (j + 1)); an entry is
    (1 + log count) (1 + log((1 + rows) / (1 + rows with this column))), rows have unit norm. The label is the sign of
    `x . v - median` with a normal `v`, flipped for a share `noise` of the rows.
    """

    name: ClassVar[str] = "sparse_binary"
    rows: int = parameter(20_000, doc="examples", least=1, example=50)
    features: int = parameter(5_000, doc="columns", least=2, example=20)
    words: int = parameter(60, doc="draws per row; entries per row are somewhat fewer", least=1, example=5)
    noise: float = parameter(0.05, doc="share of flipped labels", least=0.0, most=0.5, example=0.2)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """Labels -1 and 1; `X` is a float64 `Csr`."""
        rng = np.random.default_rng(self.seed)
        share = 1.0 / np.arange(1, self.features + 1)
        share /= share.sum()
        draws = np.searchsorted(np.cumsum(share)[:-1], rng.random((self.rows, self.words)), side="right")
        keys, counts = np.unique(draws + np.arange(self.rows)[:, None] * self.features, return_counts=True)
        row, column = np.divmod(keys, self.features)
        frequency = np.bincount(column, minlength=self.features)
        values = (1.0 + np.log(counts)) * (1.0 + np.log((1 + self.rows) / (1 + frequency)))[column]
        values /= np.sqrt(np.bincount(row, values**2, self.rows))[row]
        indptr = np.searchsorted(row, np.arange(self.rows + 1)).astype(np.int64)
        scores = np.bincount(row, values * rng.standard_normal(self.features)[column], self.rows)
        y = np.where(scores > np.median(scores), 1.0, -1.0)
        y[rng.random(self.rows) < self.noise] *= -1.0
        return Dataset(Csr(indptr, column.astype(np.int32), values, self.features), Targets(y))


@dataclass(frozen=True)
class DenseRegression:
    """`y = X v + noise e` with standard normal `X` and `e`, `v` of length 1; a share `outliers` of `e` times 10."""

    name: ClassVar[str] = "dense_regression"
    rows: int = parameter(10_000, doc="examples", least=1, example=50)
    features: int = parameter(20, doc="columns", least=1, example=7)
    noise: float = parameter(0.1, doc="standard deviation of the noise", least=0.0, example=0.5)
    outliers: float = parameter(0.0, doc="share of rows with ten times the noise", least=0.0, most=1.0, example=0.3)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """`X` is a dense float64 array."""
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.rows, self.features))
        v = rng.standard_normal(self.features)
        error = self.noise * rng.standard_normal(self.rows)
        error[rng.random(self.rows) < self.outliers] *= 10.0
        return Dataset(X, Targets(X @ (v / np.linalg.norm(v)) + error))


@dataclass(frozen=True)
class Multiclass:
    """Normal clouds of unit variance around `classes` centres, themselves normal with deviation `spread`."""

    name: ClassVar[str] = "multiclass"
    rows: int = parameter(5_000, doc="examples", least=1, example=50)
    features: int = parameter(20, doc="columns", least=1, example=7)
    classes: int = parameter(5, doc="labels 0 to classes - 1, equally likely", least=2, example=3)
    spread: float = parameter(1.0, doc="standard deviation of the centres", above=0.0, example=2.0)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """`X` is a dense float64 array."""
        rng = np.random.default_rng(self.seed)
        centres = self.spread * rng.standard_normal((self.classes, self.features))
        y = rng.integers(self.classes, size=self.rows)
        return Dataset(centres[y] + rng.standard_normal((self.rows, self.features)), Targets(y.astype(np.float64)))


@dataclass(frozen=True)
class Ranking:
    """Queries with graded rows: the level of a row is its rank within the query by `x . v + noise e`, in equal steps.

    Queries shift all their rows by a random vector, so that scores compare only within a query.
    """

    name: ClassVar[str] = "ranking"
    queries: int = parameter(200, doc="groups", least=1, example=6)
    rows_per_query: int = parameter(20, doc="rows of each group", least=1, example=5)
    features: int = parameter(20, doc="columns", least=1, example=7)
    levels: int = parameter(3, doc="labels 0 to levels - 1", least=2, example=2)
    noise: float = parameter(0.5, doc="standard deviation of the noise", least=0.0, example=0.1)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """`X` is a dense float64 array; groups count from 1."""
        rng = np.random.default_rng(self.seed)
        shape = (self.queries, self.rows_per_query)
        X = rng.standard_normal((*shape, self.features))
        v = rng.standard_normal(self.features)
        scores = X @ (v / np.linalg.norm(v)) + self.noise * rng.standard_normal(shape)
        rank = scores.argsort(axis=1).argsort(axis=1)
        y = (rank * self.levels // self.rows_per_query).astype(np.float64)
        X += rng.standard_normal((self.queries, 1, self.features))
        groups = np.repeat(np.arange(1, self.queries + 1), self.rows_per_query)
        return Dataset(X.reshape(-1, self.features), Targets(y.ravel(), None, groups))


@dataclass(frozen=True)
class Chains:
    """Sentences of 1 to `longest` tokens: labels of a Markov chain, each token in a cloud around its label's centre.

    A label is followed by the next one, in a circle, with probability `follow`, and else by any, equally likely. The
    clouds have unit variance, their centres are normal with deviation `spread`.
    """

    name: ClassVar[str] = "chains"
    sentences: int = parameter(200, doc="groups", least=1, example=6)
    longest: int = parameter(10, doc="most tokens of a sentence", least=1, example=4)
    features: int = parameter(5, doc="columns", least=1, example=7)
    labels: int = parameter(4, doc="labels 0 to labels - 1", least=2, example=3)
    follow: float = parameter(0.6, doc="probability of the next label", least=0.0, most=1.0, example=0.9)
    spread: float = parameter(1.0, doc="standard deviation of the centres", above=0.0, example=2.0)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def make(self) -> Dataset:
        """`X` is a dense float64 array; groups count from 1."""
        rng = np.random.default_rng(self.seed)
        centres = self.spread * rng.standard_normal((self.labels, self.features))
        lengths = rng.integers(1, self.longest + 1, self.sentences)
        starts = np.cumsum(lengths) - lengths
        y = rng.integers(self.labels, size=lengths.sum())
        follows = rng.random(y.size) < self.follow
        follows[starts] = False
        for t in np.flatnonzero(follows):
            y[t] = (y[t - 1] + 1) % self.labels
        X = centres[y] + rng.standard_normal((y.size, self.features))
        return Dataset(X, Targets(y.astype(np.float64), None, np.repeat(np.arange(1, self.sentences + 1), lengths)))


GENERATORS: dict[str, type[Generator]] = {
    cls.name: cls for cls in (SparseBinary, DenseRegression, Multiclass, Ranking, Chains, Thesis, Links)
}
CONVERT: dict[str, Callable[[str], int | float | str]] = {"int": int, "float": float, "str": str}
"""Conversion of the text of an option, by its type."""


def load(name: str) -> Dataset:
    """The rows of `NAME?option=value&...`; InputError names an unknown name or option, and a value out of range."""
    kind, _, query = name.partition("?")
    if kind not in GENERATORS:
        raise InputError(f"synthetic:{kind}: expected one of {', '.join(GENERATORS)}{nearest(kind, GENERATORS)}")
    cls: Any = GENERATORS[kind]
    types = {field.name: field.type for field in fields(cls)}
    options: dict[str, int | float | str] = {}
    for option, text in parse_qsl(query, keep_blank_values=True):
        if option not in types:
            raise InputError(f"synthetic:{kind} has no option {option!r}{nearest(option, types)}")
        type_name = str(types[option]).removesuffix(" | None")
        try:
            options[option] = CONVERT[type_name](text)
        except ValueError as error:
            raise InputError(f"synthetic:{kind}: {option} is {text!r}, expected {type_name}") from error
    generator: Generator = cls(**options)
    return generator.make()
