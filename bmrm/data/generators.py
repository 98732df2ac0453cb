"""Generated data, `synthetic:NAME?option=value&option=value`, and that of scikit-learn, `sklearn:NAME`.

The same options give the same rows everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.layout import Layout
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets
from bmrm.registry import check_parameters, nearest, parameter

Objects = NDArray[np.int64]
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "numrows": {"rows": 1_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.0, "share": 0.5},
    "numatts": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.15, "share": 0.1},
    "sparse": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.0, "share": 0.1},
    "coupled": {"rows": 100_000, "features": 1_000, "sparsity": 0.01, "coupling": 0.05, "share": 0.1},
}
"""Table 5.2: what is fixed, and one value of what varies: the first for `rows` (to 1e6) and `features` (to 1e5), 0.01
for `sparsity` (1e-4 to 0.1), and for `coupling` (0 to 0.45) the first above 0, as at 0 the family would be `sparse`."""


@dataclass(frozen=True)
class Generator(ABC):
    """Options, and the rows that they make."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_parameters(self)

    @abstractmethod
    def make(self) -> Dataset:
        """The rows."""


@dataclass(frozen=True)
class SparseBinary(Generator):
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
class DenseRegression(Generator):
    """`y = X v + noise e` with standard normal `X` and `e`, `v` of length 1; a share `outliers` of `e` times 10."""

    name: ClassVar[str] = "dense_regression"
    rows: int = parameter(10_000, doc="examples", least=1, example=50)
    features: int = parameter(20, doc="columns", least=1, example=7)
    noise: float = parameter(0.1, doc="standard deviation of the noise", least=0.0, example=0.5)
    outliers: float = parameter(0.0, doc="share of rows with ten times the noise", least=0.0, most=1.0, example=0.3)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def make(self) -> Dataset:
        """`X` is a dense float64 array."""
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.rows, self.features))
        v = rng.standard_normal(self.features)
        error = self.noise * rng.standard_normal(self.rows)
        error[rng.random(self.rows) < self.outliers] *= 10.0
        return Dataset(X, Targets(X @ (v / np.linalg.norm(v)) + error))


@dataclass(frozen=True)
class Multiclass(Generator):
    """Normal clouds of unit variance around `classes` centres, themselves normal with deviation `spread`."""

    name: ClassVar[str] = "multiclass"
    rows: int = parameter(5_000, doc="examples", least=1, example=50)
    features: int = parameter(20, doc="columns", least=1, example=7)
    classes: int = parameter(5, doc="labels 0 to classes - 1, equally likely", least=2, example=3)
    spread: float = parameter(1.0, doc="standard deviation of the centres", above=0.0, example=2.0)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def make(self) -> Dataset:
        """`X` is a dense float64 array."""
        rng = np.random.default_rng(self.seed)
        centres = self.spread * rng.standard_normal((self.classes, self.features))
        y = rng.integers(self.classes, size=self.rows)
        return Dataset(centres[y] + rng.standard_normal((self.rows, self.features)), Targets(y.astype(np.float64)))


@dataclass(frozen=True)
class Ranking(Generator):
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
class Chains(Generator):
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


@dataclass(frozen=True)
class Thesis(Generator):
    """Rows of 0 and 1: attributes along a random tree, labels from a linear rule without noise.

    The root is 1 with probability `sparsity` s. A node whose parent is 1 is 1 with probability p = min(s + 2c, 1), c
    the `coupling`; one whose parent is 0 with probability s (1 - p) / (1 - s), so that every attribute is 1 with
    probability s. The thesis prints "set to 0 with probability max(s - 2c, 0)" in the second case. "Set to 0"
    contradicts its examples (c = 0 makes attributes independent, s = c = 1/2 makes rows all 0 or all 1); "set to 1" is
    our formula for s = 1/2 and for c = 0, but where s is small and c is not, it leaves nearly all rows empty.

    Labels are 1 for the `positives` rows of largest <b, x>, b uniform in [-1, 1], and 0 for the others: the classes
    can be separated.
    """

    name: ClassVar[str] = "thesis"
    family: str = parameter("numrows", doc="values of what is not given", choices=tuple(FAMILIES), example="coupled")
    rows: int | None = parameter(None, doc="examples", least=2, example=50)
    features: int | None = parameter(None, doc="attributes", least=1, example=20)
    sparsity: float | None = parameter(None, doc="s, the expected share of ones", least=0.0, most=1.0, example=0.3)
    coupling: float | None = parameter(None, doc="c, dependence along the tree", least=0.0, most=0.5, example=0.2)
    positives: int | None = parameter(None, doc="rows of label 1; null = half of them, or a tenth", least=1, example=7)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def make(self) -> Dataset:
        """Labels 0 and 1; `X` is a `Csr` without values."""
        table = FAMILIES[self.family]
        values = {key: table[key] if getattr(self, key, None) is None else getattr(self, key) for key in table}
        rows, features = int(values["rows"]), int(values["features"])
        positives = self.positives or max(1, round(values["share"] * rows))
        if positives >= rows:
            raise InputError(f"synthetic:thesis: positives is {positives}, expected fewer than the {rows} rows")
        rng = np.random.default_rng(self.seed)
        columns = _columns(rng, rows, features, float(values["sparsity"]), float(values["coupling"]))
        X = rows_of_columns(columns, rows)
        b = rng.uniform(-1.0, 1.0, features)
        scores = np.zeros(rows)
        for j, ones in enumerate(columns):
            scores[ones] += b[j]
        y = np.zeros(rows)
        y[np.argsort(-scores, kind="stable")[:positives]] = 1.0
        return Dataset(X, Targets(y))


def _columns(
    rng: np.random.Generator, rows: int, features: int, sparsity: float, coupling: float
) -> list[NDArray[np.int64]]:
    """For each attribute the rows where it is 1, ascending; attribute numbers are in random order along the tree."""
    after_one = min(sparsity + 2.0 * coupling, 1.0)
    after_zero = sparsity * (1.0 - after_one) / (1.0 - sparsity) if sparsity < 1.0 else 1.0
    place = rng.permutation(features)
    columns: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * features
    known = np.zeros(rows, bool)
    for k in range(features):
        if k == 0:
            columns[place[0]] = _chosen(rng, rows, sparsity)
            continue
        parent = columns[place[rng.integers(k)]]
        # every row by the chance of those whose parent is 0; rows whose parent is 1 are then drawn anew
        ones = _chosen(rng, rows, after_zero)
        known[parent] = True
        ones = np.concatenate((ones[~known[ones]], parent[rng.random(parent.size) < after_one]))
        known[parent] = False
        columns[place[k]] = np.sort(ones)
    return columns


def _chosen(rng: np.random.Generator, rows: int, chance: float) -> NDArray[np.int64]:
    """Rows, each with this probability; the cost is proportional to their number if they are few."""
    count = int(rng.binomial(rows, chance))
    return np.sort(rng.choice(rows, count, replace=False, shuffle=False))


def rows_of_columns(columns: Sequence[NDArray[np.int64]], rows: int) -> Csr:
    """A matrix of 0 and 1 without values; `columns` lists for each column the rows with a 1, ascending."""
    counts = np.fromiter((column.size for column in columns), np.int64, len(columns))
    row = np.concatenate(columns) if len(columns) else np.empty(0, np.int64)
    column = np.repeat(np.arange(len(columns), dtype=np.int32), counts)
    indptr = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=indptr[1:])
    return Csr(indptr, column[np.argsort(row, kind="stable")], None, len(columns))


@dataclass(frozen=True)
class Links(Generator):
    """Rows of 0 and 1: the objects that occur together in a link; label 1 where the target was among them.

    A link is a list of related objects, such as the authors of a paper (`citeseer`) or the cast of a film (`imdb`).
    Each of the `groups` relates `members` objects, drawn without replacement and with equal chances from the
    `features` ones; the target belongs besides to `target_groups` of the groups. A link is a group drawn with equal
    chances, less each of its objects with probability `omitted`, and with a number of unrelated objects that is
    Poisson distributed with mean `unrelated`. Both kinds of noise meet the target like any other object. Then it is
    taken out of the data, and the label says whether it was there: for a share of about
    `target_groups / groups (1 - omitted) + unrelated / (features + 1)` of the rows.
    """

    name: ClassVar[str] = "links"
    rows: int = parameter(20_000, doc="links", least=1, example=50)
    features: int = parameter(5_000, doc="objects without the target", least=1, example=20)
    groups: int = parameter(500, doc="sets of related objects", least=1, example=30)
    members: int = parameter(6, doc="objects of a group without the target", least=1, example=3)
    target_groups: int = parameter(10, doc="groups that the target belongs to", least=0, example=300)
    omitted: float = parameter(0.25, doc="share of related objects left out", least=0.0, most=1.0, example=0.5)
    unrelated: float = parameter(0.5, doc="mean number of unrelated objects", least=0.0, most=1e6, example=2.0)
    seed: int = parameter(0, doc="of the random numbers", least=0, example=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, limit in (("members", "features"), ("target_groups", "groups")):
            if getattr(self, option) > getattr(self, limit):
                raise InputError(
                    f"synthetic:links: {option} is {getattr(self, option)}, expected at most"
                    f" {limit} ({getattr(self, limit)})"
                )

    def make(self) -> Dataset:
        """Labels 0 and 1; `X` is a `Csr` without values. A link may be empty."""
        rng = np.random.default_rng(self.seed)
        row, thing = self._related(rng)
        count = rng.poisson(self.unrelated, self.rows)
        row = np.concatenate((row, np.repeat(np.arange(self.rows), count)))
        thing = np.concatenate((thing, rng.integers(self.features + 1, size=count.sum())))
        y = np.zeros(self.rows)
        y[row[thing == self.features]] = 1.0
        seen = thing < self.features
        row, column = np.divmod(np.unique(row[seen] * self.features + thing[seen]), self.features)
        starts = np.searchsorted(row, np.arange(self.rows + 1)).astype(np.int64)
        return Dataset(Csr(starts, column.astype(np.int32), None, self.features), Targets(y))

    def _related(self, rng: np.random.Generator) -> tuple[Objects, Objects]:
        """Rows and objects, pair by pair, of what remains of the groups; the target is the object `features`."""
        members = np.stack(
            [rng.choice(self.features, self.members, replace=False, shuffle=False) for _ in range(self.groups)]
        )
        has_target = np.zeros(self.groups, bool)
        has_target[rng.choice(self.groups, self.target_groups, replace=False)] = True
        group = rng.integers(self.groups, size=self.rows)
        there = rng.random((self.rows, self.members + 1)) >= self.omitted
        there[:, -1] &= has_target[group]
        row, place = np.nonzero(there)
        things = np.column_stack((members, np.full(self.groups, self.features)))
        return row, things[group[row], place]


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


BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


def bundled(name: str) -> Dataset:
    """The data set `name`, dense float64, with the names of its features.

    `breast_cancer` (2 classes), `iris`, `wine` (3), `digits` (10), `diabetes` (regression), `linnerud` (3 targets).
    """
    if name not in BUNDLED:
        raise InputError(f"sklearn:{name}: expected one of {', '.join(BUNDLED)}{nearest(name, BUNDLED)}")
    import sklearn.datasets

    found = getattr(sklearn.datasets, f"load_{name}")()
    data = Dataset.from_arrays(found.data, found.target)
    return replace(data, layout=Layout(features=data.features, names=tuple(map(str, found.feature_names))))
