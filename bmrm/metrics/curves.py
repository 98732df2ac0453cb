"""What a measure sums up, as short tables that can be drawn: ROC, precision and recall, confusion, reliability, ...

A curve is a function of `ScoredRows` under `@curve`, which states the tasks that it fits; it returns lists of at most
`POINTS` numbers, whatever the number of rows, or None where it is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics import ranked
from bmrm.metrics.core import ScoredRows, both_classes, known_labels
from bmrm.metrics.intervals import folds_of, interval_over_folds, parts_of
from bmrm.problem import InputError, facts_of

POINTS = 200
"""Most points of a line."""
CLASSES = 30
"""Most classes of a confusion matrix; of more the `PAIRS` largest errors are listed."""
PAIRS = 20
BINS = 10
"""Bins of a reliability diagram."""
FOLDS = 10
"""Parts of the rows from which an interval is computed."""
LEAST = 5
"""Fewest rows, or queries, of a part or bin."""

AT_A_TIME = 1 << 18
"""Rows of a block."""

Table = dict[str, Any]
"""Lists and numbers by name, as JSON has them."""
Function = Callable[[ScoredRows], "Table | None"]


@dataclass(frozen=True)
class Curve:
    """A registered curve.

    Attributes
    ----------
    name : of its function.
    tasks : the tasks of losses that it fits.
    predicts : whether it needs predictions, which losses that only rank do not have.
    probabilities : whether it needs scores that are log-odds: of losses whose measures have `log_loss`.
    in_weights : whether it has sums of weights, whose unit would matter.
    """

    name: str
    function: Function
    tasks: tuple[str, ...]
    predicts: bool = False
    probabilities: bool = False
    in_weights: bool = False

    def fits(self, loss: Any, calibrated: bool = False) -> bool:
        """Whether models of this loss have such a curve, where they are calibrated or not."""
        facts = facts_of(loss)
        without = self.probabilities and not calibrated and "log_loss" not in facts.metrics
        return facts.task in self.tasks and not (self.predicts and facts.only_ranks) and not without


CURVES: dict[str, Curve] = {}


def curve(*tasks: str, **facts: bool) -> Callable[[Function], Function]:
    """Make a curve known under the name of its function; `facts` as of `Curve`."""

    def keep(function: Function) -> Function:
        CURVES[function.__name__] = Curve(function.__name__, function, tasks, **facts)
        return function

    return keep


def curves_of(scored: ScoredRows, loss: Any) -> dict[str, Table]:
    """The curves that fit the loss and are defined for these rows, by name."""
    rows = scored.present
    if not len(rows.y):
        return {}
    calibrated = rows.probabilities is not None
    found = {
        one.name: one.function(rows if one.in_weights else rows.near_one)
        for one in CURVES.values()
        if one.fits(loss, calibrated)
    }
    return {name: table for name, table in found.items() if table is not None and _finite(table)}


def intervals_of(scored: ScoredRows, names: Sequence[str]) -> dict[str, Table]:
    """95 % intervals of measures over `FOLDS` random parts of the rows (see `interval_over_folds`), by name.

    A measure that is not defined in some part, or of too few rows, has none. The parts are those of the rows in the
    order of their scores and targets: the same whatever rows each rank had.
    """
    units = len(scored.y) if scored.groups is None else len(np.unique(scored.groups))
    if units < LEAST * FOLDS:
        return {}
    rows = scored if scored.groups is not None else scored.ordered
    parts = parts_of(rows, folds_of(len(rows.y), FOLDS, rows.groups))
    found = {}
    for name in names:
        try:
            interval = interval_over_folds(parts, name)
        except InputError:
            continue
        found[name] = {"mean": interval.mean, "low": interval.low, "high": interval.high, "folds": FOLDS}
    return found


def profile_of(scored: ScoredRows) -> Table:
    """Rows, the labels with how many rows each has (or quantiles of the numbers), queries, and the sum of weights."""
    table: Table = {"rows": len(scored.y)}
    if scored.classes and scored.y.ndim == 1:
        counts = np.bincount(scored.y.astype(np.int64), minlength=scored.classes)
        order = np.argsort(-counts[: scored.classes], kind="stable")[:CLASSES]
        table["labels"] = [[_plain(scored.labels[k]), int(counts[k])] for k in order]
        table["classes"] = scored.classes
        table["unknown"] = int(counts[scored.classes :].sum())
    elif scored.y.ndim == 1 and np.any(scored.y != scored.y[:1]):
        quantiles = np.quantile(scored.y.astype(np.float64), [0.0, 0.25, 0.5, 0.75, 1.0])
        table["quantiles"] = quantiles.tolist()
    if scored.groups is not None:
        table["groups"] = len(np.unique(scored.groups))
    if scored.weights is not None:
        with np.errstate(over="ignore"):
            table["weight"] = float(scored.weights.sum())
    return table


def drawn(scored: ScoredRows, loss: Any, metrics: Sequence[str]) -> dict[str, Table]:
    """`intervals` of these measures and `curves`, as of `intervals_of` and `curves_of`."""
    return {"intervals": intervals_of(scored, metrics), "curves": curves_of(scored, loss)}


@curve("binary")
def roc(s: ScoredRows) -> Table | None:
    """Share of the positive rows (`tpr`) against share of the negative rows (`fpr`) above each threshold."""
    if not both_classes(s):
        return None
    false, true = s.above
    kept = _spread(len(true) + 1, lambda k: _share(false, k) + _share(true, k))
    fpr, tpr = _share(false, kept), _share(true, kept)
    corner = (np.diff(fpr, 2) != 0.0) | (np.diff(tpr, 2) != 0.0)
    fpr, tpr = (line[np.concatenate(([True], corner, [True]))] for line in (fpr, tpr))
    return {"fpr": fpr.tolist(), "tpr": tpr.tolist()}


@curve("binary")
def precision_recall(s: ScoredRows) -> Table | None:
    """Precision against recall of the rows above each threshold; `base` is the share of positive rows."""
    if not both_classes(s):
        return None
    false, true = s.above
    count = len(true)
    kept = _spread(count + 1, lambda k: k / (count + 1) - _share(true, count - k))
    recall, last = _share(true, count - kept), np.maximum(count - kept - 1, 0)
    precision = np.where(kept < count, true[last] / (false[last] + true[last]), 1.0)
    return {"recall": recall.tolist(), "precision": precision.tolist(), "base": s.mean(s.y == 1)}


def _share(mass: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of all mass, that of the first k places; `mass` is summed up."""
    found: NDArray[np.float64] = np.where(k > 0, mass[np.maximum(k - 1, 0)], 0.0) / mass[-1]
    return found


@curve("binary", "multiclass", predicts=True, probabilities=True)
def reliability(s: ScoredRows) -> Table | None:
    """By bins of the predicted probability, `LEAST` rows in each: its mean, the share that came true, and rows.

    Of two classes the probability of the positive one, of more that of the class predicted.
    """
    if not known_labels(s):
        return None
    rows, mass, predicted, observed = np.zeros(BINS, np.int64), np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for some in _blocks(len(s.y)):
        probability, true = _confidence(s, some)
        weights = None if s.weights is None else s.weights[some]
        place = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
        rows += np.bincount(place, minlength=BINS)
        mass += np.bincount(place, weights, BINS)
        predicted += np.bincount(place, probability if weights is None else weights * probability, BINS)
        observed += np.bincount(place, true if weights is None else weights * true, BINS)
    bins = _joined(rows)
    if bins is None:
        return None
    whole = np.bincount(bins, mass)
    shares = (np.bincount(bins, sums) / whole for sums in (predicted, observed))
    names = dict(zip(("predicted", "observed"), (line.tolist() for line in shares)))
    return {**names, "rows": np.bincount(bins, rows).astype(np.int64).tolist()}


def _confidence(s: ScoredRows, some: slice) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Of some rows the probability that is judged, and whether it came true."""
    y, predicted, scores = s.y[some], s.predicted[some], s.scores[some]
    if s.probabilities is not None:
        two = s.probabilities.shape[1] == 2
        judged = 1 if two else predicted
        return s.probabilities[some][np.arange(len(y)), judged], y == judged
    if scores.ndim == 1:
        return 0.5 * (1.0 + np.tanh(0.5 * scores)), y == 1
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return 1.0 / shifted.sum(axis=1), y == predicted


def _blocks(rows: int) -> Iterator[slice]:
    """All rows, `AT_A_TIME` of them together: what is computed of each takes no memory for all."""
    return (slice(first, min(first + AT_A_TIME, rows)) for first in range(0, rows, AT_A_TIME))


def _joined(rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """A number for each bin, from 0: bins of fewer than `LEAST` rows are one with their neighbours; None for so few."""
    if rows.sum() < LEAST:
        return None
    found = np.zeros(len(rows), np.int64)
    current, inside = 0, 0
    for k, count in enumerate(rows.tolist()):
        if inside >= LEAST and count:
            current, inside = current + 1, 0
        found[k], inside = current, inside + count
    return np.where(found == current, max(0, current - 1), found) if inside < LEAST else found


@curve("binary", "multiclass", "ontology", "ordinal", "sequence", predicts=True, in_weights=True)
def confusion(s: ScoredRows) -> Table | None:
    """Weight of rows by true (rows) and predicted class (columns); of many classes the largest errors only.

    Labels that the model does not know are one more class, the last of the rows.
    """
    if s.y.ndim != 1 or not s.classes:
        return None
    names = [*map(_plain, s.labels[: s.classes]), "(unknown)"]
    if s.classes > CLASSES:
        true = np.minimum(s.y.astype(np.int64), s.classes)
        return {"errors": _largest_errors(true, s.predicted.astype(np.int64), s.weights, names)}
    matrix = np.zeros((s.classes + 1, s.classes))
    for some in _blocks(len(s.y)):
        places = np.minimum(s.y[some].astype(np.int64), s.classes) * s.classes + s.predicted[some].astype(np.int64)
        weights = None if s.weights is None else s.weights[some]
        matrix += np.bincount(places, weights, matrix.size).reshape(matrix.shape)
    rows = s.classes + bool(matrix[-1].any())
    return {"labels": names[:rows], "matrix": matrix[:rows].tolist()}


def _plain(label: str) -> str:
    """Whole numbers without a point."""
    whole = label.removesuffix(".0")
    return whole if whole.removeprefix("-").isdigit() else label


def _largest_errors(
    true: NDArray[np.int64], predicted: NDArray[np.int64], weights: NDArray[np.float64] | None, names: Sequence[str]
) -> list[list[Any]]:
    """[true, predicted, weight] of the pairs of most weight."""
    wrong = true != predicted
    pairs, place = np.unique(np.column_stack((true[wrong], predicted[wrong])), axis=0, return_inverse=True)
    mass = np.bincount(place.reshape(-1), None if weights is None else weights[wrong], len(pairs))
    order = np.argsort(-mass, kind="stable")[:PAIRS]
    return [[names[pairs[k, 0]], names[pairs[k, 1]], float(mass[k])] for k in order]


@curve("ranking")
def ndcg_by_query(s: ScoredRows) -> Table | None:
    """NDCG of each query that has one, in ascending order; of many queries their quantiles."""
    if s.groups is None or s.scores.ndim != 1:
        return None
    order = np.argsort(s.groups, kind="stable")
    borders = np.flatnonzero(np.diff(s.groups[order])) + 1
    y, f = s.y.astype(np.float64), s.scores
    found = [ranked.ndcg(y[query], f[query]) for query in np.split(order, borders)]
    values = np.sort([value for value in found if value is not None])
    if not len(values):
        return None
    shares = np.linspace(0.0, 1.0, min(len(values), POINTS))
    return {"queries": len(values), "values": np.quantile(values, shares).tolist()}


@curve("regression", predicts=True)
def calibration(s: ScoredRows) -> Table | None:
    """By bins of equally many rows in the order of the predictions: mean prediction, mean and 10 % and 90 % of y."""
    if s.y.ndim != 1 or s.predicted.ndim != 1 or len(s.y) < LEAST:
        return None
    order = np.argsort(s.predicted, kind="stable")
    bins = np.array_split(order, min(2 * BINS, len(order) // LEAST))
    y = s.y.astype(np.float64)
    low, high = ([float(np.quantile(y[rows], q)) for rows in bins] for q in (0.1, 0.9))
    weights = np.ones(len(y)) if s.weights is None else s.weights
    predicted = [float(np.average(s.predicted[rows], weights=weights[rows])) for rows in bins]
    observed = [float(np.average(y[rows], weights=weights[rows])) for rows in bins]
    return {"predicted": predicted, "observed": observed, "low": low, "high": high, "rows": len(y)}


def _spread(count: int, along: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> NDArray[np.int64]:
    """At most `POINTS` of so many places of a line, evenly by a coordinate that grows along it, its ends among them.

    By bisection, so that no more is computed of many rows than of few.
    """
    if count <= POINTS:
        return np.arange(count)
    ends = along(np.array([0, count - 1]))
    wanted = np.linspace(ends[0], ends[1], POINTS)
    low, high = np.zeros(POINTS, np.int64), np.full(POINTS, count - 1)
    while np.any(low < high):
        middle = (low + high) // 2
        before = along(middle) < wanted
        low, high = np.where(before, np.minimum(middle + 1, high), low), np.where(before, high, middle)
    return np.unique(low)


def _finite(value: Any) -> bool:
    """Whether JSON can hold it: no number in it is nan or infinite."""
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    return not isinstance(value, float) or bool(np.isfinite(value))
