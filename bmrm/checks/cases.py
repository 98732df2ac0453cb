"""A loss with targets: the rows that its laws are tried on, and the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.convex import Array, Function, Part
from bmrm.checks.laws import shown
from bmrm.data.labels import LabelSets
from bmrm.problem import Summary, Targets, facts_of
from bmrm.problem.loss import completed

Rows = NDArray[np.int64]
MOST_TERMS, MOST_POINTS = 10, 12
"""Most terms of the sum that are examined one by one, and points for each."""
FAR = 1000.0
"""Size of scores at which exponentials overflow and margins are negligible."""


@dataclass(frozen=True)
class Case:
    """A loss, targets that it takes, and generators of scores.

    Scores are arrays as `PreparedLoss.value_and_slope` takes them, with the parameters of the loss behind the rows
    where it has some.
    """

    loss: Any
    targets: Targets
    seed: int = 0
    bound_to: Summary | None = None
    """Of more rows than these, where these are only some."""
    numbers: Rows | None = None
    """What the rows are called in messages; None for 0, 1, ..."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.targets.rows

    @property
    def by_rows(self) -> bool:
        """Whether the loss is a sum over rows."""
        return bool(self.loss.decomposes == "rows")

    @property
    def decomposes(self) -> bool:
        """Whether the loss is a sum over rows, or over groups of rows."""
        return bool(self.loss.decomposes != "no")

    def chosen(self, rows: Any) -> Targets:
        """The targets of some rows, without weights."""
        return replace(self.targets.take(rows), weights=None)

    def weighing(self, weights: Array | None) -> Targets:
        """The targets with weights."""
        return replace(self.targets, weights=weights)

    def with_y(self, y: Any) -> Targets:
        """Other targets, the groups as they are."""
        return replace(self.targets, y=y, weights=None)

    @cached_property
    def _summary(self) -> Summary:
        return self.loss.summarise(self.targets) if self.bound_to is None else self.bound_to

    def summary(self) -> Summary:
        """What the loss must know of all rows."""
        return self._summary

    def prepare(self, targets: Targets | None = None, summary: Summary | None = None) -> Any:
        """The loss bound to its targets, or to others."""
        targets = self.targets if targets is None else targets
        return self.loss.prepare(targets, self.loss.summarise(targets) if summary is None else summary)

    @cached_property
    def given(self) -> Any:
        """The loss bound to all rows, as it prepares itself."""
        return self.prepare(summary=self.summary())

    @cached_property
    def whole(self) -> Any:
        """The loss bound to all rows, with all members of `PreparedLoss`."""
        return completed(self.given)

    def shape_of(self, rows: int) -> tuple[int, ...]:
        """Of the scores of so many rows."""
        width, extra = self.whole.scores_per_row, self.whole.extra_dim
        if extra:
            return (rows * width + extra,)
        return (rows,) if width == 1 else (rows, width)

    def shape(self) -> tuple[int, ...]:
        """Of the scores of all rows."""
        return self.shape_of(self.rows)

    def split(self, f: Array) -> tuple[Array, Array]:
        """The scores of rows, and the parameters of the loss that stand behind them."""
        width, extra = self.whole.scores_per_row, self.whole.extra_dim
        return (f[:-extra].reshape(-1, width), f[-extra:]) if extra else (f, np.empty(0))

    def rows_of(self, f: Array, rows: Any) -> Array:
        """The scores of some rows, with the parameters."""
        table, parameters = self.split(f)
        return np.concatenate((table[rows].ravel(), parameters)) if parameters.size else table[rows]

    @cached_property
    def _units(self) -> list[Rows]:
        groups = self.targets.groups
        if not facts_of(self.loss).by_group or groups is None:
            return [np.array([row]) for row in range(self.rows)]
        borders = np.flatnonzero(np.diff(groups)) + 1
        return np.split(np.arange(self.rows), borders)

    def units(self) -> list[Rows]:
        """What weights and permutations speak of: each row alone, or the rows of a sentence together."""
        return self._units

    def terms(self) -> list[Rows]:
        """The rows of the terms that the loss is a sum of, or all rows where it is none."""
        if self.loss.decomposes == "rows":
            return [np.array([row]) for row in range(self.rows)]
        groups = self.targets.groups
        if self.loss.decomposes != "groups" or groups is None:
            return [np.arange(self.rows)]
        return [np.flatnonzero(groups == name) for name in dict.fromkeys(groups.tolist())]

    def spread(self, draw: Callable[[int], Array]) -> Array:
        """Numbers for the rows, the same within a unit; `draw(n)` makes n of them."""
        units = self.units()
        return np.repeat(draw(len(units)), [len(unit) for unit in units])

    def copies(self, counts: Array) -> tuple[Rows, Targets]:
        """Rows such that each unit occurs so often, and their targets; `counts` as of `spread`."""
        pieces = [unit for unit in self.units() for _ in range(int(counts[unit[0]]))]
        rows = np.concatenate(pieces)
        targets = self.chosen(rows)
        if facts_of(self.loss).by_group and targets.groups is not None:
            targets = replace(targets, groups=np.repeat(np.arange(len(pieces)), list(map(len, pieces))))
        return rows, targets

    def predict(self, f: Array, labels: Any) -> Any:
        """What the loss makes of scores, given all that a model would keep."""
        table, parameters = self.split(f)
        arrays = self.whole.learned(f)
        if parameters.size:
            arrays |= self.loss.named_parameters(parameters, len(labels))
        if facts_of(self.loss).by_group:
            arrays["groups"] = self.targets.groups
        if facts_of(self.loss).by_structure:
            arrays["structure"] = self.targets.structure
        return self.loss.predict(table, labels, **arrays)

    def generic_scores(self, seed: int = 0) -> Array:
        """Random scores, on no kink and in no tie."""
        return np.random.default_rng(seed).normal(size=self.shape()) * 2.0

    def near_scores(self, seed: int = 1) -> list[Array]:
        """Random ones, and those at kinks and in ties: zeros, whole numbers and halves, the targets themselves."""
        rng, shape = np.random.default_rng(seed), self.shape()
        whole = rng.integers(-2, 3, size=shape).astype(float)
        scores = [self.generic_scores(seed), 0.1 * self.generic_scores(seed + 1), np.zeros(shape), whole, whole + 0.5]
        if self.loss.task in ("regression", "multivariate"):
            y = np.asarray(self.targets.y, float)
            if y.shape == shape:
                scores += [y, y + 0.5, y - 0.5]
        return scores

    def all_scores(self, seed: int = 1) -> list[Array]:
        """Those, and adversarial ones of 1000 and -1000."""
        rng, shape = np.random.default_rng(seed + 7), self.shape()
        far = [np.where(rng.random(shape) < 0.5, FAR, -FAR), np.full(shape, FAR), np.full(shape, -FAR)]
        return self.near_scores(seed) + far

    def function(self, rows: Rows | None = None, coarse: float = 0.0) -> Function:
        """The loss of some rows, a term of it, or of all, as a function of their scores."""
        if rows is None or len(rows) == self.rows:
            prepared, count, beside = self.whole, self.rows, ""
        else:
            prepared, count = self.prepare(self.chosen(rows), self.summary()), len(rows)
            beside = f", y = {self.target_text(rows)} ({self._named(rows)})"
        return Function(
            lambda f: prepared.value_and_slope(f),
            self.shape_of(count),
            "f",
            "slope",
            beside,
            float(prepared.infimum),
            terms=int(np.prod(self.shape_of(count))),
            coarse=coarse,
        )

    def target_text(self, rows: Rows) -> str:
        """The targets of some rows for a message."""
        y = self.targets.y[rows]
        if isinstance(y, LabelSets):
            return "; ".join("{" + ", ".join(f"{label:g}" for label in one) + "}" for one in y)
        return shown(y) if y.dtype.kind in "fiub" else ", ".join(map(str, y.tolist()))

    def _named(self, rows: Rows) -> str:
        called = rows if self.numbers is None else self.numbers[rows]
        return f"row {called[0]}" if len(rows) == 1 else f"rows {called[0]} to {called[-1]}"

    @property
    def smooth(self) -> bool:
        """Whether the loss says that it is smooth."""
        return bool(self.whole.smooth)

    def parts(self) -> Iterator[Part]:
        """The terms, then all rows together."""
        if self.decomposes:
            yield from self._terms()
        yield self.whole_part()

    def whole_part(self) -> Part:
        """All rows together."""
        return self.function(), self.all_scores(self.seed + 1)

    def _terms(self) -> Iterator[Part]:
        """Terms of the sum: of rows with one target one, at the scores of all of them."""
        scores = self.all_scores(self.seed + 1)
        if not self.by_rows:
            for rows in self.terms()[:MOST_TERMS]:
                yield self.function(rows), [self.rows_of(f, rows) for f in scores]
            return
        if self.whole.extra_dim:
            yield self.function(), scores
            return
        alike: dict[str, list[int]] = {}
        for row in range(self.rows):
            alike.setdefault(self.target_text(np.array([row])), []).append(row)
        for some in list(alike.values())[:MOST_TERMS]:
            unique = list({f[row].tobytes(): f[row : row + 1] for f in scores for row in some}.values())
            stride = max(1, len(unique) // MOST_POINTS)
            yield self.function(np.array(some[:1])), unique[::stride][:MOST_POINTS]
