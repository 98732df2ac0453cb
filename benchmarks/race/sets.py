"""The data sets of the race by name, loaded through `bmrm.data`, with targets as the losses want them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.harness import SHARED
from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.data.reading import read
from bmrm.problem import Targets

Array = NDArray[np.float64]
MAKERS: dict[str, Callable[[], Dataset]] = {}
"""By name; those of `GENERATED` need no files."""
GENERATED: set[str] = set()


def named(name: str, generated: bool = False) -> Callable[[Callable[[], Dataset]], Callable[[], Dataset]]:
    """Decorator: the function makes the data set `name`."""

    def keep(make: Callable[[], Dataset]) -> Callable[[], Dataset]:
        MAKERS[name] = make
        if generated:
            GENERATED.add(name)
        return make

    return keep


def available(name: str) -> bool:
    """Whether the set can be had here: generated, or beside the checkout."""
    return name in GENERATED or SHARED.is_dir()


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """The set of that name; the last two are kept."""
    return MAKERS[name]()


def shared(name: str) -> Dataset:
    """A svmlight file beside the checkout."""
    return read(SHARED / f"{name}.svm.xz")


def with_targets(X: Csr | Array, y: Array, groups: NDArray[np.int64] | None = None) -> Dataset:
    """The rows with other targets."""
    return Dataset(X, Targets(np.asarray(y, np.float64), None, groups))


def signs(y: Array, positive: NDArray[np.bool_]) -> Array:
    """1 where positive, else -1."""
    return np.where(positive, 1.0, -1.0) * np.ones_like(y, dtype=np.float64)


def _binary(name: str) -> None:
    @named(name)
    def make() -> Dataset:
        data = shared(name)
        y = data.targets.y
        return with_targets(data.X, signs(y, y == y.max()))


for _name in ("a9a", "w8a", "ijcnn1-cont", "farm-ads"):
    _binary(_name)


def unit_rows(X: Csr) -> Csr:
    """Rows of Euclidean length 1; empty rows stay."""
    assert X.values is not None
    row = np.repeat(np.arange(X.rows), np.diff(X.indptr))
    norms = np.sqrt(np.bincount(row, X.values**2, X.rows))
    return Csr(X.indptr, X.indices, X.values / np.maximum(norms, 1e-300)[row], X.columns)


def scaled_columns(X: Csr | Array) -> Csr | Array:
    """Columns divided by their largest absolute value."""
    if isinstance(X, Csr):
        assert X.values is not None
        largest = np.zeros(X.columns)
        np.maximum.at(largest, X.indices, np.abs(X.values))
        return Csr(X.indptr, X.indices, X.values / np.where(largest > 0.0, largest, 1.0)[X.indices], X.columns)
    largest = np.abs(X).max(axis=0)
    return np.ascontiguousarray(X / np.where(largest > 0.0, largest, 1.0))


def standardised(X: Array) -> Array:
    """Dense columns of mean 0 and variance 1, and a column of ones: the intercept of peers that have none."""
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return np.ascontiguousarray(np.hstack([scaled, np.ones((X.shape[0], 1))]))


@named("covtype-scaled")
def _covtype_scaled() -> Dataset:
    data = shared("covtype")
    return with_targets(scaled_columns(data.X), signs(data.targets.y, data.targets.y == 2.0))


@named("covtype-raw")
def _covtype_raw() -> Dataset:
    data = shared("covtype")
    return with_targets(data.X, signs(data.targets.y, data.targets.y == 2.0))


@named("news20-binary")
def _news20_binary() -> Dataset:
    data = shared("news20")
    return with_targets(unit_rows(data.X), signs(data.targets.y, data.targets.y > 10.0))  # type: ignore[arg-type]


@named("news20")
def _news20() -> Dataset:
    data = shared("news20")
    return with_targets(unit_rows(data.X), data.targets.y)  # type: ignore[arg-type]


@named("usps")
def _usps() -> Dataset:
    data = shared("usps.train")
    return with_targets(_dense(data.X), data.targets.y)


@named("usps-binary")
def _usps_binary() -> Dataset:
    data = load("usps")
    return with_targets(data.X, signs(data.targets.y, data.targets.y >= 5.0))


@named("dna")
def _dna() -> Dataset:
    return shared("dna")


@named("dna-binary")
def _dna_binary() -> Dataset:
    data = shared("dna")
    return with_targets(data.X, signs(data.targets.y, data.targets.y == 3.0))


@named("covtype")
def _covtype() -> Dataset:
    data = shared("covtype")
    return with_targets(scaled_columns(data.X), data.targets.y)


def _dense(X: Csr | Array) -> Array:
    return np.ascontiguousarray(X.to_dense() if isinstance(X, Csr) else X, np.float64)


def _regression(name: str) -> None:
    @named(name)
    def make() -> Dataset:
        data = shared(name)
        y = data.targets.y
        return with_targets(standardised(_dense(data.X)), (y - y.mean()) / y.std())


for _name in ("cpusmall", "fried", "space_ga"):
    _regression(_name)


def _csv_columns(name: str) -> dict[str, list[str]]:
    """Columns as text: for sets with nominal columns, which the reader of numbers refuses."""
    import csv
    import lzma

    with lzma.open(SHARED / f"{name}.csv.xz", "rt") as file:
        lines = list(csv.DictReader(file))
    return {column: [line[column] for line in lines] for column in lines[0]}


def _indicators(column: list[str]) -> Array:
    """A column of 0 and 1 for each value."""
    values, places = np.unique(column, return_inverse=True)
    return np.eye(values.size)[places]


@named("abalone")
def _abalone() -> Dataset:
    table = _csv_columns("abalone")
    y = np.array(table.pop("Class_Rings"), float)
    sex = _indicators(table.pop("Sex"))[:, 1:]
    X = np.column_stack([sex, *(np.array(column, float) for column in table.values())])
    return with_targets(standardised(X), (y - y.mean()) / y.std())


@named("bike")
def _bike() -> Dataset:
    """Hourly rentals in hundreds; date, and the two columns that add up to the target, left out."""
    table = _csv_columns("bike_hour")
    codes = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")
    numbers = np.column_stack([np.array(table[name], float) for name in ("temp", "atemp", "hum", "windspeed")])
    X = np.hstack([numbers, *(_indicators(table[name]) for name in codes)])
    return with_targets(np.ascontiguousarray(X), np.array(table["cnt"], float) / 100.0)


@named("mq2008")
def _mq2008() -> Dataset:
    return shared("mq2008.fold1.train")


@named("mq2008-binary")
def _mq2008_binary() -> Dataset:
    """Relevant or not."""
    data = shared("mq2008.fold1.train")
    return with_targets(data.X, (data.targets.y > 0.0).astype(float), data.targets.groups)


@named("conll2000")
def _conll2000() -> Dataset:
    from bmrm.data.readers.conll import read_conll

    return read_conll(SHARED / "conll2000.train.txt.xz")[0]


@named("conll2000-300")
def _conll2000_small() -> Dataset:
    """The first 300 sentences, with the features that occur in them."""
    data = load("conll2000")
    assert data.targets.groups is not None
    few = data.part(0, int(np.searchsorted(data.targets.groups, 300)))
    used, indices = np.unique(few.X.indices[: few.X.indptr[-1]], return_inverse=True)  # type: ignore[union-attr]
    X = Csr(few.X.indptr, indices.astype(np.int32), None, used.size)  # type: ignore[union-attr]
    return Dataset(X, few.targets)


def _from_generator(name: str, source: str) -> None:
    @named(name, generated=True)
    def make() -> Dataset:
        return read(f"synthetic:{source}")


_from_generator("rcv1-like", "sparse_binary?rows=20000&features=47000&words=90&noise=0.03")
_from_generator("tiny-binary", "sparse_binary?rows=300&features=40&words=8")
_from_generator("tiny-regression", "dense_regression?rows=200&features=5&noise=0.5")
_from_generator("tiny-multiclass", "multiclass?rows=200&features=5&classes=3")
_from_generator("tiny-ranking", "ranking?queries=20&rows_per_query=10&features=5&levels=2")
_from_generator("multiclass-like", "multiclass?rows=20000&features=60&classes=8")
_from_generator("ranking-like", "ranking?queries=1000&rows_per_query=40&features=40&levels=4")
_from_generator("chains-like", "chains?sentences=400&longest=30&features=60&labels=8&spread=0.3")
_from_generator("year-like", "dense_regression?rows=200000&features=90&noise=0.5&outliers=0.05")
_from_generator("lasso-like", "dense_regression?rows=50000&features=100&noise=0.5")
_from_generator("million", "dense_regression?rows=1000000&features=50&noise=0.5&outliers=0.05")


@named("rcv1-like-regression", generated=True)
def _rcv1_like_regression() -> Dataset:
    data = load("rcv1-like")
    rng = np.random.default_rng(1)
    X = data.X.to_scipy()  # type: ignore[union-attr]
    f = X @ rng.standard_normal(data.features)
    return with_targets(data.X, f / f.std() + 0.3 * rng.standard_normal(data.rows))


def _generated(name: str) -> Callable[[Callable[[np.random.Generator], Dataset]], None]:
    """Decorator: the function makes the set from random numbers, always the same."""

    def keep(make: Callable[[np.random.Generator], Dataset]) -> None:
        named(name, generated=True)(lambda: make(np.random.default_rng(zlib.crc32(name.encode()))))

    return keep


def _noisy(f: Array, noise: float, rng: np.random.Generator) -> Array:
    """Scores of variance 1 and what they do not explain."""
    return (f - f.mean()) / f.std() + noise * rng.standard_normal(f.size)


def _signed(f: Array, noise: float, rng: np.random.Generator) -> Array:
    return np.where(_noisy(f, noise, rng) > 0.0, 1.0, -1.0)


def _genes(rng: np.random.Generator) -> tuple[Array, Array]:
    """60 rows of 5,000 columns that follow 12 factors, and the scores of 20 of the columns."""
    X = rng.standard_normal((60, 12)) @ rng.standard_normal((12, 5000)) + 0.7 * rng.standard_normal((60, 5000))
    return X / X.std(axis=0), X[:, :20] @ rng.standard_normal(20)


@_generated("genes")
def _genes_binary(rng: np.random.Generator) -> Dataset:
    X, f = _genes(rng)
    return with_targets(X, _signed(f, 0.2, rng))


@_generated("genes-regression")
def _genes_regression(rng: np.random.Generator) -> Dataset:
    X, f = _genes(rng)
    return with_targets(X, _noisy(f, 0.2, rng))


def _texts(rows: int, words: int, mean: float, rng: np.random.Generator) -> tuple[Csr, Array]:
    """Counts of words by a power law, of which some 200 common ones carry the topic; rows by tf-idf, of length 1."""
    lengths = 1 + rng.poisson(mean * rng.lognormal(-0.125, 0.5, rows))
    chances = 1.0 / (np.arange(words) + 10.0)
    row = np.repeat(np.arange(rows), lengths)
    topic = rng.standard_normal(rows)
    common = rng.choice(200, row.size)
    told = rng.random(row.size) < 0.15
    shifted = np.where(topic[row] > 0.0, common, common + 200)
    column = np.where(told, shifted, rng.choice(words, row.size, p=chances / chances.sum()))
    X = sparse.csr_matrix((np.ones(row.size), (row, column)), shape=(rows, words))
    X.sum_duplicates()
    counts = np.bincount(X.indices, minlength=words)
    X = sparse.csr_matrix(X @ sparse.diags(np.log(1.0 + rows / np.maximum(counts, 1))))
    X.sort_indices()  # a product leaves them as they come
    return unit_rows(Csr(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, words)), topic


@_generated("short-texts")
def _short_texts(rng: np.random.Generator) -> Dataset:
    X, topic = _texts(9_000, 15_000, 9.0, rng)
    return with_targets(X, _signed(topic, 0.3, rng))


@_generated("long-texts")
def _long_texts(rng: np.random.Generator) -> Dataset:
    X, topic = _texts(2_500, 30_000, 350.0, rng)
    return with_targets(X, _signed(topic, 0.3, rng))


@_generated("long-texts-regression")
def _long_texts_regression(rng: np.random.Generator) -> Dataset:
    X, topic = _texts(2_500, 30_000, 350.0, rng)
    return with_targets(X, _noisy(topic, 0.3, rng))


def _classes(rows: int, features: int, classes: int, noise: float, rng: np.random.Generator) -> Dataset:
    """The largest of linear scores with noise, in correlated columns of mean 0 and variance 1, and a column of ones."""
    X = rng.standard_normal((rows, features)) @ rng.standard_normal((features, features))
    X = standardised(X + 0.3 * X.std() * rng.standard_normal((rows, 1)))
    f = X @ rng.standard_normal((features + 1, classes))
    return with_targets(X, np.argmax(f / f.std() + noise * rng.gumbel(size=f.shape), axis=1).astype(np.float64))


@_generated("apart-classes")
def _apart_classes(rng: np.random.Generator) -> Dataset:
    return _classes(5_000, 32, 7, 0.02, rng)


@_generated("noisy-classes")
def _noisy_classes(rng: np.random.Generator) -> Dataset:
    return _classes(30_000, 11, 6, 0.8, rng)


def _heavy(rng: np.random.Generator) -> Array:
    """Columns with the tails of a t distribution of 2.5 degrees, of sizes from 0.01 to 100, and a column of ones."""
    X = rng.standard_t(2.5, (15_000, 24)) * 10.0 ** rng.uniform(-2.0, 2.0, 24)
    return np.hstack([X, np.ones((15_000, 1))])


@_generated("heavy-tails")
def _heavy_tails(rng: np.random.Generator) -> Dataset:
    X = _heavy(rng)
    return with_targets(X, _signed((X / X.std(axis=0).clip(1e-9)) @ rng.standard_normal(25), 0.5, rng))


@_generated("heavy-tails-regression")
def _heavy_tails_regression(rng: np.random.Generator) -> Dataset:
    X = _heavy(rng)
    f = (X / X.std(axis=0).clip(1e-9)) @ rng.standard_normal(25)
    return with_targets(X, (f + rng.standard_t(3, f.size)) / f.std())


@_generated("noise")
def _noise(rng: np.random.Generator) -> Dataset:
    return with_targets(rng.standard_normal((1_800, 450)), rng.choice([-1.0, 1.0], 1_800))


@_generated("small")
def _small(rng: np.random.Generator) -> Dataset:
    X = standardised(rng.standard_normal((400, 20)) @ rng.standard_normal((20, 20)))
    return with_targets(X, _signed(X @ rng.standard_normal(21), 0.5, rng))


@_generated("small-regression")
def _small_regression(rng: np.random.Generator) -> Dataset:
    X = standardised(rng.standard_normal((300, 10)))
    return with_targets(X, _noisy(X @ rng.standard_normal(11), 0.5, rng))
