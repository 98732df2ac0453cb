"""The loss, and what it may know of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import InputError, Vector


@dataclass(frozen=True, eq=False)
class Targets:
    """All that a loss may know of the rows besides their scores.

    `y` has one entry per row: numbers, strings, or one row of several numbers. `weights` (rows,) float64 or None
    for all 1; `groups` (rows,) int64 or None. `dtype` names the type that the labels had where `y` has another ("bool",
    "int64", "datetime64[D]"; see `bmrm.data.label_types`).
    """

    y: NDArray[Any]
    weights: Vector | None = None
    groups: NDArray[np.int64] | None = None
    dtype: str = ""

    @property
    def rows(self) -> int:
        return int(self.y.shape[0])

    def part(self, start: int, stop: int) -> Targets:
        """The rows [start, stop), as views."""
        w, g = self.weights, self.groups
        return Targets(
            self.y[start:stop],
            None if w is None else w[start:stop],
            None if g is None else g[start:stop],
            self.dtype,
        )


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
    """A loss bound to the targets of some rows. Thread-safe: no state changes after `prepare`."""

    scores_per_row: int
    extra_dim: int
    """Parameters of the loss learned with w (cut points, transitions)."""
    mass: float
    """R = sum of values / sum of masses."""
    infimum: float
    """The sum over its rows never goes below this."""
    smooth: bool

    def value_and_slope(self, f: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The sum over its rows (weights inside) at scores `f`, and the slope, a new array like `f`.

        `f` is (rows,) where `scores_per_row` is 1, else (rows, scores_per_row). With `extra_dim` above 0 it is flat:
        the scores of the rows in C order, then the parameters of the loss.
        """
        ...


@runtime_checkable
class HasCurvature(Protocol):
    """A prepared loss, or a regularizer, with a second derivative."""

    def hessian_product(self, f: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """The second derivative at `f` times `step`, a new array."""
        ...


class Loss(Protocol):
    """A frozen dataclass of parameters: comparable, YAML-able."""

    decomposes: ClassVar[Literal["rows", "groups", "no"]]
    task: ClassVar[str]

    def summarise(self, targets: Targets) -> Summary: ...

    def prepare(self, targets: Targets, summary: Summary) -> PreparedLoss:
        """Bind to some rows, once; the one place for domain checks (raises InputError)."""
        ...
