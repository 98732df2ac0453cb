"""The loss, and what it may know of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import InputError, Vector
from bmrm.problem.facts import Hessian

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Targets:
    """All that a loss may know of the rows besides their scores.

    `y` has one entry per row: numbers, strings, or one row of several numbers. `weights` (rows,) float64 or None
    for all 1; `groups` (rows,) int64 or None. `structure` (rows, numbers) int64 or None is what a loss over structures
    must know of each row besides its label, such as which row of its group is the parent of a node; rows of a group are
    counted from 0, so that groups may be moved. `dtype` names the type that the labels had where `y` has another
    ("bool", "int64", "datetime64[D]"; see `bmrm.data.label_types`). `classes` are labels, as in `y`, that count though
    all their rows weigh 0; others without a row of positive weight do not. `offset`, (rows,) or (rows, scores) float64
    or None, is added to the scores of the rows before a loss sees them; losses do not look at it.
    """

    y: NDArray[Any]
    weights: Vector | None = None
    groups: NDArray[np.int64] | None = None
    dtype: str = ""
    classes: tuple[float | str, ...] = ()
    structure: NDArray[np.int64] | None = None
    offset: Array | None = None

    @property
    def rows(self) -> int:
        return int(self.y.shape[0])

    def part(self, start: int, stop: int) -> Targets:
        """The rows [start, stop), as views."""
        return self.take(slice(start, stop))

    def take(self, rows: slice | Sequence[int] | NDArray[np.integer[Any]]) -> Targets:
        """The chosen rows, in the order given, repetition allowed; a copy but for a slice."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows) if len(rows) else np.empty(0, np.int64)
        each = self.weights, self.groups, self.structure, self.offset
        beside: list[Any] = [None if one is None else one[rows] for one in each]
        return Targets(self.y[rows], beside[0], beside[1], self.dtype, structure=beside[2], offset=beside[3])


@dataclass(frozen=True)
class Summary:
    """What a loss must know of all rows, over all ranks, before it can prepare some of them.

    `labels` are the distinct classes in score order (of two, the second is positive), empty for tasks without
    classes; `counts` the rows of each; `outputs` the targets per row where that is more than a label or a number, 0
    where it is not asked for; `dtype` as of `Targets`; `form` what sets of labels came in ("sets", "matrix", "sparse").
    JSON-able, so that ranks can exchange it.
    """

    rows: int
    weight: float
    labels: tuple[float | str, ...] = ()
    counts: tuple[int, ...] = ()
    outputs: int = 0
    dtype: str = ""
    form: str = ""

    def merge(self, other: Summary) -> Summary:
        """The summary of both sets of rows; labels in sort order."""
        table = dict(zip(self.labels, self.counts, strict=True))
        for label, count in zip(other.labels, other.counts, strict=True):
            table[label] = table.get(label, 0) + count
        if len({isinstance(label, str) for label in table}) > 1:
            raise InputError("labels are numbers in one part of the data and text in another")
        if self.outputs != other.outputs and self.outputs and other.outputs:
            raise InputError(f"{self.outputs} targets per row in one part of the data, {other.outputs} in another")
        labels = tuple(sorted(table, key=lambda label: (label,)))
        counts = tuple(table[label] for label in labels)
        outputs = max(self.outputs, other.outputs)
        dtype = common_type(self.dtype, other.dtype) if self.labels and other.labels else self.dtype or other.dtype
        if self.form != other.form and self.form and other.form:
            raise InputError("labels are sets in one part of the data and a matrix in another")
        rows, weight, form = self.rows + other.rows, self.weight + other.weight, self.form or other.form
        return Summary(rows, weight, labels, counts, outputs, dtype, form)


def common_type(one: str, other: str) -> str:
    """The type of the labels of two parts of the data; InputError where they do not go together."""
    if one == other:
        return one
    kinds = [np.dtype(name or "float64") for name in (one, other)]
    if {kind.kind for kind in kinds} <= set("iuf"):
        common: np.dtype[Any] = np.result_type(*kinds)
        return "" if common.kind == "f" else common.name
    raise InputError(f"labels are {one or 'numbers'} in one part of the data and {other or 'numbers'} in another")


class PreparedLoss(Protocol):
    """A loss bound to the targets of some rows. Thread-safe: no state changes after `prepare`.

    To be derived from, or written out: what is not required has a default here (`completed`).
    """

    scores_per_row: int
    extra_dim: int = 0
    """Parameters of the loss learned with w (cut points, transitions)."""
    mass: float
    """R = sum of values / sum of masses."""
    infimum: float
    """The sum over its rows never goes below this."""
    smooth: bool
    hessian: Hessian = "none"
    """Whether `hessian_product` is there, and `hessian_diagonal`, and `hessian_shares`."""
    totals: bool = False
    """Whether `hessian_total` is there."""
    prox: bool = False
    """Whether `moreau` and `moreau_along` are there."""
    structured_max: bool = False
    """Whether it is a single maximum over labelings of the whole sample."""
    piecewise_linear: bool = False
    """Whether `breakpoints` is there."""
    nothing: str = "the examples have total weight 0, expected at least one row of positive weight"
    """The message where `mass` is 0 over all ranks."""

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum over its rows (weights inside) at scores `f`, and the slope, a new array like `f`.

        `f` is (rows,) where `scores_per_row` is 1, else (rows, scores_per_row). With `extra_dim` above 0 it is flat:
        the scores of the rows in C order, then the parameters of the loss.
        """
        ...

    def along(self, f: Array, step: Array) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (the sum at f + t step, its derivative in t), for a vector of t."""
        f, step = np.ascontiguousarray(f), np.ascontiguousarray(step)

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            values, derivatives = np.empty(len(ts)), np.empty(len(ts))
            for k, t in enumerate(ts):
                values[k], slope = self.value_and_slope(f + t * step)
                derivatives[k] = np.vdot(slope, step)
            return values, derivatives

        return curve

    def breakpoints(self, f: Array, step: Array) -> tuple[float, Array]:
        """As of `ScoreFunction`, of the sum, where `piecewise_linear`."""
        raise TypeError(f"{type(self).__name__} is not piecewise linear in one score per row")

    def hessian_product(self, f: Array, step: Array) -> Array:
        """The second derivative at `f` times `step`, a new array, unless `hessian` is "none"."""
        raise TypeError(f"{type(self).__name__} has no second derivative")

    def hessian_diagonal(self, f: Array) -> Array:
        """The diagonal of the second derivative, like `f`, where `hessian` is "diagonal" or "shares"."""
        raise TypeError(f"{type(self).__name__} has no second derivative row by row")

    def hessian_shares(self, f: Array) -> Array:
        """As of `ScoreFunction`, of the sum, where `hessian` is "shares"."""
        raise TypeError(f"{type(self).__name__} has no second derivative by shares")

    def hessian_total(self, f: Array) -> Array:
        """As of `ScoreFunction`, of the sum, where `totals`."""
        raise TypeError(f"{type(self).__name__} has no second derivative in constants")

    def moreau(self, z: Array, sigma: float) -> tuple[tuple[float, float, float], Array, Array]:
        """Where f minimises loss(f) + sigma/2 ||f - z||^2: sums, slope sigma (z - f), and its derivative in z.

        The sums are those of the loss at f, of slope * f, and of (f - z)^2. Where `prox`.
        """
        raise TypeError(f"{type(self).__name__} has no proximal map")

    def moreau_along(self, z: Array, step: Array, sigma: float) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (sum of the envelopes at z + t step, its derivative in t), for a vector of t."""
        raise TypeError(f"{type(self).__name__} has no proximal map")

    def part(self, start: int, stop: int) -> PreparedLoss | None:
        """The rows [start, stop), which part no group; None where they are to be prepared anew."""
        return None

    def take(self, rows: NDArray[np.int64]) -> PreparedLoss | None:
        """The chosen rows, repetition allowed; None where they are to be prepared anew."""
        return None

    def learned(self, f: Array) -> dict[str, Array]:
        """What is minimised out at some scores, by name (cut points); {} for most losses."""
        return {}


class _Completed(PreparedLoss):
    """A prepared loss of a user's, with the members that it does not have."""

    scores_per_row = 1
    mass = infimum = 0.0
    smooth = False

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """As of `PreparedLoss`."""
        found: tuple[float, Array] = self._given.value_and_slope(f)
        return found

    def __init__(self, given: Any) -> None:
        self._given = given
        members = [name for name in dir(PreparedLoss) if not name.startswith("_")]
        for name in members:
            if hasattr(given, name):
                setattr(self, name, getattr(given, name))
        if hasattr(given, "hessian_product"):
            self.hessian = "diagonal" if hasattr(given, "hessian_diagonal") else "product"
        self.prox = hasattr(given, "moreau")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


def completed(prepared: Any) -> PreparedLoss:
    """A prepared loss with all members of the contract, those that it does not have by default."""
    return prepared if PreparedLoss in type(prepared).__mro__ else _Completed(prepared)


@runtime_checkable
class HasCurvature(Protocol):
    """A prepared loss, or a regularizer, with a second derivative."""

    def hessian_product(self, f: Array, step: Array) -> Array:
        """The second derivative at `f` times `step`, a new array."""
        ...


@runtime_checkable
class HasRowHessian(Protocol):
    """A loss of rows with products of the second derivative of each."""

    def hessian_product(self, f: Array, y: Any, step: Array) -> Array:
        """Each row's second derivative times its part of `step`."""
        ...


@runtime_checkable
class HasRowCurvature(Protocol):
    """A loss of rows with the diagonal of the second derivative of each."""

    def curvature(self, f: Array, y: Any) -> Array:
        """Like `f`."""
        ...


@runtime_checkable
class HasRowShares(Protocol):
    """A loss of rows with the second derivative of each as shares of its scores."""

    def shares(self, f: Array, y: Any) -> Array:
        """c, not negative, with diag(c) - c c' / sum(c) in each row; (rows, K)."""
        ...


@runtime_checkable
class HasTotalHessian(Protocol):
    """A loss of rows that knows the sum of their second derivatives in one pass."""

    def hessian_total(self, f: Array, weights: Vector) -> Array:
        """That of rows with these weights, (rows,), at scores `f`; (K, K)."""
        ...


@runtime_checkable
class HasProxShares(Protocol):
    """A loss of rows of several scores that knows the derivative of its proximal map."""

    def prox_shares(self, moves: Array, step: Array, y: Any) -> Array:
        """c, not negative: diag(c) - c c' / sum(c) is the derivative of each row's `moves` = z - f; (rows, K)."""
        ...


@runtime_checkable
class HasRowProx(Protocol):
    """A loss of rows with the proximal map of each."""

    def prox(self, z: Array, step: Any, y: Any) -> tuple[Array, Array]:
        """The minimiser f of step * loss(f) + 1/2 (f - z)^2, and its derivative in z."""
        ...


class Loss(Protocol):
    """A frozen dataclass of parameters: comparable, YAML-able."""

    decomposes: ClassVar[Literal["rows", "groups", "no"]]
    task: ClassVar[str]

    def summarise(self, targets: Targets) -> Summary:
        """What `prepare` needs to know of all rows; summaries of ranks are added up.

        Parameters
        ----------
        targets : of the rows of this rank.
        """
        ...

    def prepare(self, targets: Targets, summary: Summary) -> PreparedLoss:
        """Bind to some rows, once; the one place for domain checks.

        Parameters
        ----------
        targets : of the rows of this rank.
        summary : of all rows.

        Raises
        ------
        InputError
            For targets, weights or groups that the loss does not take.
        """
        ...


@runtime_checkable
class HasMeanTarget(Protocol):
    """A loss whose targets have a mean to start from (IRLS, CG-MLE)."""

    def targets01(self, y: Array) -> Array:
        """The targets of rows as numbers: 1.0 for the positive of two labels, 0.0 for the other; (rows,)."""
        ...


@runtime_checkable
class HasVariant(Protocol):
    """A loss that can be changed within limits (IRLS, CG-MLE)."""

    def variant(self, margin: float, modelmin: float, modelmax: float, wmargin: float) -> Loss:
        """The changed loss; see `bmrm.losses.logistic`."""
        ...


@runtime_checkable
class HasThreshold(Protocol):
    """A loss over sets of labels, which predicts those whose score is above a threshold."""

    def moments(self, f: Array, targets: Targets, labels: Sequence[float | str]) -> Array:
        """Sums over these rows from which the threshold follows."""
        ...

    def threshold(self, moments: Array) -> Array:
        """The threshold that the moments of all rows give."""
        ...


@runtime_checkable
class HasProbabilities(Protocol):
    """A loss that is a negative log likelihood of labels."""

    def probabilities(self, f: Array, **learned: Any) -> Array:
        """Of each label in score order, (rows, labels); `learned` and `groups` as of `predict`."""
        ...


@runtime_checkable
class HasClassScores(Protocol):
    """A loss whose classes are some of its labels, or have scores that are sums of those of the model."""

    def class_labels(self, labels: Sequence[Any]) -> Sequence[Any]:
        """Of the labels in score order those that may be predicted."""
        ...

    def class_scores(self, f: Array) -> Array:
        """Of each of them, (rows, classes), largest for the predicted one; linear in `f`, (rows, labels)."""
        ...


@runtime_checkable
class HasMeasured(Protocol):
    """A loss that says what measures compare its predictions with."""

    def measured(self, targets: Targets, labels: Sequence[float | str], part: str) -> Array:
        """A number or several per row; InputError for what does not fit, naming the `part`."""
        ...


@runtime_checkable
class HasParameters(Protocol):
    """A loss with parameters of its own at the end of w."""

    def extra_parameters(self, labels: int) -> int:
        """How many, for so many labels."""
        ...

    def named_parameters(self, parameters: Array, labels: int) -> dict[str, Array]:
        """The parameters by name."""
        ...
