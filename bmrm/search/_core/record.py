"""What a cross-validation has found: the candidates with their measures, the chosen one, and its model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from bmrm.app.model import Model
from bmrm.app.tables import lines
from bmrm.metrics import ScoredRows
from bmrm.metrics.core import chosen
from bmrm.metrics.curves import precision_recall, roc
from bmrm.metrics.intervals import Interval, t_interval
from bmrm.search._core.candidates import LAMBDA
from bmrm.search._core.trials import Trial, mean

GRID = 201
"""Points of an averaged curve."""
SHOWN = 30
"""Most candidates that a table of text shows."""


@dataclass(frozen=True)
class HeldOut:
    """The rows of a fold with what the chosen candidate's model says of them, without having seen them.

    Attributes
    ----------
    fold : its name: `3`, or `2.3` for the third fold of the second repeat.
    rows : their numbers in the training data, from 0; of shares once for each label that has one.
    scored : targets, scores, predictions, weights.
    """

    fold: str
    rows: NDArray[np.int64]
    scored: ScoredRows


@dataclass(frozen=True, repr=False, eq=False)
class CrossValidation:
    """The result of `cross_validate`.

    Attributes
    ----------
    trials : the candidates, with their measures in each fold.
    measure : by which one was chosen.
    measures : all that were taken.
    rule : "best" or "one_standard_error".
    chosen : the number of the chosen candidate in `trials`.
    folds : what the folds are, in words.
    fold_names : of the folds, in the order of the values of a measure.
    fold_numbers : (rows, repeats): the fold that each row is held out in, from 1; 0 for none.
    held_out : the held-out rows of the chosen candidate, by fold.
    confidence : of the intervals.
    model : the chosen candidate trained on all rows; None where `refit` is False.
    each_label : where it was asked for, by label the measures of each fold of the label against all others.
    """

    trials: tuple[Trial, ...]
    measure: str
    measures: tuple[str, ...]
    rule: str
    chosen: int
    folds: str
    fold_names: tuple[str, ...]
    fold_numbers: NDArray[np.int64]
    held_out: tuple[HeldOut, ...] = ()
    confidence: float = 0.95
    model: Model | None = None
    each_label: Mapping[str, Mapping[str, tuple[float | None, ...]]] = field(default_factory=dict)

    @property
    def best(self) -> Trial:
        """The chosen candidate."""
        return self.trials[self.chosen]

    @property
    def lam(self) -> float:
        """Its lambda; 0 where its regularizer has none."""
        return self.best.lam

    def interval(self, measure: str | None = None, trial: int | None = None) -> Interval | None:
        """The mean of a measure over the folds with its t interval; None where it is not defined in some fold.

        The folds share training rows, so that their values are not independent, and the interval is a rough one.

        Parameters
        ----------
        measure : its name; None for the one that chose.
        trial : the number of a candidate; None for the chosen one.
        """
        name = self.measure if measure is None else measure
        return interval_of(self.trials[self.chosen if trial is None else trial].by_fold[name], name, self.confidence)

    def table(self) -> list[dict[str, Any]]:
        """A line for each candidate: its values, mean and half-width of each measure, pooled measures, passes.

        Returns
        -------
        list of dict
            As `pandas.DataFrame` takes it. `mean_auc`, `half_auc` (of the t interval) and `pooled_auc` for the measure
            `auc`; `passes` over the rows of the folds; `converged` of all trainings; `chosen`.
        """
        return [self._line(k) for k in range(len(self.trials))]

    def _line(self, k: int) -> dict[str, Any]:
        trial = self.trials[k]
        line: dict[str, Any] = {**trial.values} or {LAMBDA: trial.lam}
        for name in self.measures:
            line[f"mean_{name}"] = mean(trial.by_fold[name])
            line[f"half_{name}"] = half_width(trial.by_fold[name], self.confidence)
            line[f"pooled_{name}"] = trial.pooled[name]
        return line | {"passes": trial.passes, "converged": trial.converged, "chosen": k == self.chosen}

    def plain(self) -> dict[str, Any]:
        """All but rows and model, as JSON has it."""
        trials = [
            {
                "values": dict(trial.values),
                "lambda": trial.lam,
                "folds": {name: list(values) for name, values in trial.by_fold.items()},
                "pooled": dict(trial.pooled),
                "trainings": [_finite(one) for one in trial.facts],
            }
            for trial in self.trials
        ]
        found = {
            "measure": self.measure,
            "measures": list(self.measures),
            "choose": self.rule,
            "chosen": self.chosen,
            "folds": self.folds,
            "fold_names": list(self.fold_names),
            "confidence": self.confidence,
            "table": self.table(),
            "trials": trials,
        }
        if self.each_label:
            found["each_label"] = {label: dict(values) for label, values in self.each_label.items()}
        return found

    @cached_property
    def roc(self) -> dict[str, Any]:
        """ROC curves of two classes: `folds`, each with `fpr` and `tpr`, and `average` of tpr at equal fpr; or {}."""
        return _averaged([(one.fold, roc(one.scored.present)) for one in self._two_classes()], "fpr", "tpr", _between)

    @cached_property
    def precision_recall(self) -> dict[str, Any]:
        """As `roc`: `recall` and `precision`; {} where there are not two classes.

        The average is that of the largest precision at each recall or beyond it.
        """
        found = [(one.fold, precision_recall(one.scored.present)) for one in self._two_classes()]
        return _averaged(found, "recall", "precision", _at_least)

    def _two_classes(self) -> Sequence[HeldOut]:
        return [one for one in self.held_out if one.scored.classes == 2 and one.scored.scores.ndim == 1]

    def text(self) -> list[str]:
        """The lines of a table for people: at most `SHOWN` candidates, the chosen one among them."""
        fields = list(dict.fromkeys(name for trial in self.trials for name in trial.values)) or [LAMBDA]
        head = ["", *fields]
        for name in self.measures:
            head += [name, "pooled"]
        rows = [self._cells(k, fields) for k in self._shown()]
        left = len(self.trials) - len(rows)
        return lines([*head, "passes"], rows, None) + ([f"... and {left} more"] if left else [])

    def _shown(self) -> list[int]:
        if len(self.trials) <= SHOWN:
            return list(range(len(self.trials)))
        sign = chosen(self.measure)[0].sign
        means = [mean(trial.by_fold[self.measure]) for trial in self.trials]
        order = sorted(range(len(means)), key=lambda k: math.inf if means[k] is None else -sign * means[k])  # type: ignore[operator]
        return sorted({self.chosen, *order[: SHOWN - 1]})

    def _cells(self, k: int, fields: Sequence[str]) -> list[str]:
        trial = self.trials[k]
        cells = ["*" if k == self.chosen else ""]
        cells += [_value(trial.values.get(name, trial.lam if name == LAMBDA else None)) for name in fields]
        for name in self.measures:
            half, plain = half_width(trial.by_fold[name], self.confidence), mean(trial.by_fold[name])
            told = "" if half is None else f" +- {half:.2g}"
            cells += ["-" if plain is None else f"{plain:.5g}{told}", _value(trial.pooled[name])]
        return [*cells, f"{trial.passes:.4g}"]

    def words(self) -> str:
        """What was done and chosen, in a sentence or two."""
        found = self.interval()
        value = mean(self.best.by_fold[self.measure])
        said = "-" if value is None else f"{value:.5g}"
        said += "" if found is None else f" ({found.low:.5g} to {found.high:.5g})"
        count = len(self.trials)
        settings = ", ".join(f"{name} {_value(v)}" for name, v in self.best.values.items())
        which = f"{settings or f'lambda {self.lam:.6g}'}"
        how = {"best": "the best mean", "one_standard_error": "within one standard error of the best"}[self.rule]
        told = f"{self.folds}: {self.measure} {said} with {which}"
        return told if count == 1 else f"{told}, {how} of {count} candidates"

    def __repr__(self) -> str:
        return "\n".join([self.words(), *self.text()])

    def _repr_html_(self) -> str:
        return str(Markup("<p>{}</p><pre>{}</pre>").format(self.words(), "\n".join(self.text())))


def interval_of(values: Sequence[float | None], measure: str, confidence: float) -> Interval | None:
    """Mean and t interval, less what the measure cannot be; None where one is not defined, or there is one fold."""
    found = _whole_interval(values, confidence)
    if found is None:
        return None
    least, most = chosen(measure)[0].within
    return replace(found, low=max(least, found.low), high=min(most, found.high))


def half_width(values: Sequence[float | None], confidence: float) -> float | None:
    """Of the t interval; None where there is none."""
    found = _whole_interval(values, confidence)
    return None if found is None else found.high - found.mean


def _whole_interval(values: Sequence[float | None], confidence: float) -> Interval | None:
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) or len(known) < 2 else t_interval(known, confidence)


def _finite(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in facts.items()
    }


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        options = ", ".join(f"{key}: {_value(one)}" for key, one in value.items() if key != "name")
        return f"{value.get('name', '')}{f' ({options})' if options else ''}"
    return "-" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


Heights = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""From places, and the points of a curve in the order of its thresholds, to heights there."""


def _averaged(
    found: Sequence[tuple[str, Mapping[str, Any] | None]], across: str, up: str, heights: Heights
) -> dict[str, Any]:
    """The curves of the folds, and the mean of their heights over equal places."""
    known = [(name, curve) for name, curve in found if curve is not None]
    if not known:
        return {}
    places = np.linspace(0.0, 1.0, GRID)
    lines = [heights(places, np.asarray(curve[across]), np.asarray(curve[up])) for _, curve in known]
    folds = [{"fold": name, across: list(curve[across]), up: list(curve[up])} for name, curve in known]
    return {"folds": folds, "average": {across: places.tolist(), up: np.mean(lines, axis=0).tolist()}}


def _between(places: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along the lines between points; where x stays the same, the last of them."""
    return np.interp(places, x, y)


def _at_least(places: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest y of points at or beyond each place: the interpolated precision of information retrieval."""
    order = np.argsort(x, kind="stable")
    most = np.maximum.accumulate(y[order][::-1])[::-1]
    return most[np.minimum(np.searchsorted(x[order], places), len(most) - 1)]
