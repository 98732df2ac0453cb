"""Curves from scores to probabilities, one for each class against the others; arrays in the model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.app.calibration.platt import fitted_line, on_line
from bmrm.problem import InputError, Vector

Table = NDArray[np.float64]
PREFIX = "calibration_"
"""Of the arrays in the model file."""


class Curves(Protocol):
    """A method's curves; a frozen dataclass of arrays."""

    @classmethod
    def fitted(cls, f: Table, positive: NDArray[np.bool_], weights: Vector) -> Curves:
        """From scores and who is of the class, (rows, curves) each, and weights, (rows,)."""
        ...

    def probability(self, f: Table) -> Table:
        """Of each class against the others, (rows, curves)."""
        ...

    def wrong(self, count: int) -> str:
        """What of the arrays cannot be, for so many curves; "" where all is well."""
        ...


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """1 / (1 + exp(-(a f + b))); `lines` has a and b of each curve, (curves, 2)."""

    lines: Table

    @classmethod
    def fitted(cls, f: Table, positive: NDArray[np.bool_], weights: Vector) -> Sigmoid:
        """As of `Curves`; see `platt`."""
        return cls(np.array([fitted_line(column, of, weights) for column, of in zip(f.T, positive.T, strict=True)]))

    def probability(self, f: Table) -> Table:
        """As of `Curves`."""
        return np.column_stack([on_line(line, column) for line, column in zip(self.lines, f.T, strict=True)])

    def wrong(self, count: int) -> str:
        """As of `Curves`."""
        return "" if self.lines.shape == (count, 2) else f"lines have shape {self.lines.shape}, expected ({count}, 2)"


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Piecewise linear through (`x`, `y`), constant outside; `sizes` says how many points are of each curve."""

    x: Vector
    y: Vector
    sizes: Vector

    @classmethod
    def fitted(cls, f: Table, positive: NDArray[np.bool_], weights: Vector) -> Isotonic:
        """As of `Curves`; by scikit-learn's `IsotonicRegression`."""
        from sklearn.isotonic import IsotonicRegression

        fits = [
            IsotonicRegression(out_of_bounds="clip").fit(column, of.astype(np.float64), weights)
            for column, of in zip(f.T, positive.T, strict=True)
        ]
        x, y = ([np.asarray(getattr(fit, name), np.float64) for fit in fits] for name in THRESHOLDS)
        return cls(np.concatenate(x), np.concatenate(y), np.array([float(len(part)) for part in x]))

    def probability(self, f: Table) -> Table:
        """As of `Curves`."""
        ends = np.cumsum(self.sizes).astype(np.int64)
        parts = zip(np.split(self.x, ends[:-1]), np.split(self.y, ends[:-1]), f.T, strict=True)
        return np.column_stack([np.interp(column, x, y) for x, y, column in parts])

    def wrong(self, count: int) -> str:
        """As of `Curves`."""
        sizes = self.sizes
        if sizes.shape != (count,) or not np.all((sizes >= 1.0) & (sizes == np.round(sizes))):
            return f"sizes are not those of {count} curves"
        if not self.x.shape == self.y.shape == (int(sizes.sum()),):
            return f"{self.x.shape} points, expected ({int(sizes.sum())},)"
        ends = np.cumsum(sizes).astype(np.int64)[:-1]
        rising = all(np.all(np.diff(part) >= 0.0) for values in (self.x, self.y) for part in np.split(values, ends))
        inside = np.all((self.y >= 0.0) & (self.y <= 1.0))
        return "" if rising and inside else "points that are no rising curve of probabilities"


THRESHOLDS = "X_thresholds_", "y_thresholds_"
METHODS: Mapping[str, Any] = {"sigmoid": Sigmoid, "isotonic": Isotonic}
"""Classes of curves by method."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What a model keeps.

    Attributes
    ----------
    method : a name in `METHODS`.
    curves : of two classes one, of the second; of more one each.
    rows : whose scores they are fitted to, in words.
    """

    method: str
    curves: Curves
    rows: str

    @classmethod
    def fitted(
        cls, method: str, scores: Table, y: NDArray[np.int64], weights: Vector | None, classes: int, rows: str
    ) -> Calibration:
        """From scores, (rows,) or (rows, classes), the places of the true labels, and weights."""
        f = one_against_others(scores)
        positive = (y == 1)[:, None] if classes == 2 else y[:, None] == np.arange(classes)
        mass = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
        kept = mass > 0.0
        return cls(method, METHODS[method].fitted(f[kept], positive[kept], mass[kept]), rows)

    def probabilities(self, scores: Table) -> Table:
        """Of the labels in their order, (rows, labels); those of more than two add up to 1 by division.

        As scikit-learn's `CalibratedClassifierCV` has them: where each class has the probability 0, all are equal.
        """
        found = self.curves.probability(one_against_others(scores))
        if found.shape[1] == 1:
            return np.column_stack((1.0 - found, found))
        total = found.sum(axis=1, keepdims=True)
        shares: Table = np.divide(found, total, out=np.full_like(found, 1.0 / found.shape[1]), where=total > 0.0)
        return shares

    def header(self) -> dict[str, str]:
        """For the header of the model file."""
        return {"method": self.method, "rows": self.rows}

    def arrays(self) -> dict[str, Table]:
        """For the model file."""
        return {PREFIX + name: array for name, array in vars(self.curves).items()}

    @classmethod
    def from_file(cls, header: Any, members: Mapping[str, NDArray[Any]], labels: int) -> Calibration:
        """The inverse of `header` and `arrays`, for so many labels; InputError where they are damaged."""
        known = isinstance(header, Mapping) and isinstance(header.get("rows"), str)
        if not known or header.get("method") not in METHODS:
            raise InputError("its calibration is of no known method")
        kind = METHODS[header["method"]]
        names = list(kind.__dataclass_fields__)
        for name in names:
            array = members.get(PREFIX + name)
            if array is None or array.dtype != np.float64 or not np.isfinite(array).all():
                raise InputError(f"{PREFIX}{name} is missing, or no finite float64 numbers")
        curves: Curves = kind(**{name: members[PREFIX + name] for name in names})
        wrong = curves.wrong(1 if labels == 2 else labels)
        if wrong or labels < 2:
            raise InputError(f"its calibration does not fit {labels} labels: {wrong}")
        return cls(header["method"], curves, header["rows"])


def one_against_others(scores: Table) -> Table:
    """(rows, curves): of two classes the one score, or the second less the first; of more all."""
    if scores.ndim == 1:
        return scores[:, None]
    return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
