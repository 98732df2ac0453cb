"""Measures by name: what they judge, their register, and how several are taken.

A measure is a function of `ScoredRows` under `@measure`, which states the tasks that it fits. Some take a number,
written behind their name: `ndcg@5`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import near_one
from bmrm.problem import InputError, Vector, facts_of, shown
from bmrm.registry import Range, nearest


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Some rows with a model's verdict on them.

    Attributes
    ----------
    y : (rows,) or (rows, outputs) numbers; for tasks with classes their codes 0..K-1 (of two, 1 is positive), and K
        or more for labels that the model does not know, which count as errors.
    scores : (rows,) or (rows, K).
    predicted : like `y`.
    weights : (rows,) or None.
    classes : K, or 0 for tasks without classes.
    parameters : of the loss, by field name.
    groups : (rows,) the query of each row, or None; measures of rankings are then means over the queries.
        Of sequences the sentence of each token.
    labels : the names of the codes, of sequences also of those that the model does not know.
    probabilities : (rows, classes) of a model that is calibrated; None where scores are log-odds, or none are known.
    """

    y: NDArray[Any]
    scores: NDArray[np.float64]
    predicted: NDArray[Any]
    weights: Vector | None
    classes: int
    parameters: Mapping[str, Any]
    groups: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()
    probabilities: NDArray[np.float64] | None = None

    def rows(self, chosen: NDArray[Any]) -> ScoredRows:
        """Some of the rows, by their numbers or by a truth value for each.

        Parameters
        ----------
        chosen : numbers of rows from 0, or (rows,) truth values.
        """
        weights = None if self.weights is None else self.weights[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        y, scores, predicted = self.y[chosen], self.scores[chosen], self.predicted[chosen]
        found = replace(self, y=y, scores=scores, predicted=predicted, weights=weights, groups=groups)
        p = self.probabilities
        return found if p is None else replace(found, probabilities=p[chosen])

    @property
    def near_one(self) -> ScoredRows:
        """The same rows, with weights in another unit where their sum is beyond float64, or has few digits."""
        if self.weights is None or _SUMS[0] < self.weights.max(initial=0.0) < _SUMS[1]:
            return self
        return replace(self, weights=near_one(self.weights))

    @cached_property
    def present(self) -> ScoredRows:
        """The rows of weight above 0."""
        return self if self.weights is None or np.all(self.weights > 0.0) else self.rows(self.weights > 0.0)

    def mean(self, values: NDArray[Any]) -> float:
        """The mean of a number of each row, by weight.

        Parameters
        ----------
        values : (rows,).
        """
        if self.weights is None:
            return float(np.mean(values))
        return float(self.weights @ values / self.weights.sum())

    @cached_property
    def above(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weight of the negative, and of the positive rows at and above each score that occurs, highest first."""
        s = self.present
        if np.any(s.scores[1:] < s.scores[:-1]):
            s = s.rows(np.argsort(s.scores))
        positive, f = s.y[::-1] == 1, s.scores[::-1]
        last = np.append(np.flatnonzero(f[1:] != f[:-1]), f.size - 1)
        if s.weights is None:
            true = np.cumsum(positive)[last].astype(np.float64)
            return last + 1.0 - true, true
        mass = s.weights[::-1]
        return np.cumsum(np.where(positive, 0.0, mass))[last], np.cumsum(np.where(positive, mass, 0.0))[last]

    @property
    def ordered(self) -> ScoredRows:
        """The rows by score, then by target, of several by the first: the same whatever rows each rank had."""
        scores, targets = (table.reshape(len(table), -1)[:, 0] for table in (self.scores, self.y))
        if np.all(scores[1:] > scores[:-1]):
            return self
        order = np.argsort(scores)  # fast, but no order among equal scores
        if np.any(scores[order[1:]] == scores[order[:-1]]):
            order = np.lexsort((targets, scores))
        return self.rows(order)


_SUMS = 1e-100, 1e100
"""Range of weights within which their sums, and products of two sums, lose no digits."""
Function = Callable[..., "float | None"]
"""(scored), or (scored, number) where the measure takes one -> the value; None where it is not defined."""


@dataclass(frozen=True)
class Number:
    """The number that a measure takes.

    Attributes
    ----------
    name : of the number.
    range : its values; its `doc` says what it is.
    default : where none is written and the loss has none; None means no limit.
    required : whether there is no default.
    whole : whether only whole numbers will do.
    of_loss : whether it is the loss's parameter of this name where none is written.
    gap : bounds of an open interval in the range without values.
    """

    name: str
    range: Range
    default: float | None = None
    required: bool = False
    whole: bool = False
    of_loss: bool = True
    gap: tuple[float, float] | None = None

    def read(self, text: str) -> float:
        """The number that is written; ValueError with what was expected."""
        expected = f"a {'whole ' if self.whole else ''}number {self.range}"
        if self.gap is not None:
            expected += f", not between {self.gap[0]:g} and {self.gap[1]:g}"
        try:
            value = int(text) if self.whole else float(text)
        except ValueError as error:
            raise ValueError(expected) from error
        inside = self.gap is not None and self.gap[0] < value < self.gap[1]
        if not np.isfinite(value) or value not in self.range or inside:
            raise ValueError(expected)
        return value


SHARE, AMOUNT, CORRELATION, SKILL = (0.0, 1.0), (0.0, math.inf), (-1.0, 1.0), (-math.inf, 1.0)
"""Ranges of values: of shares, of errors, of correlations, and of skills, whose best is 1 and whose 0 is no better than
a guess."""


@dataclass(frozen=True)
class Measure:
    """A registered measure.

    Attributes
    ----------
    name : as losses and `evaluate` name it.
    tasks : the tasks of losses that it fits.
    source : the function of scikit-learn that it is, or the paper or custom that defines it.
    of : what it judges; losses that only rank have "scores" but no "predictions".
    weighted : what weights do: they weigh "rows", are whole numbers of "copies", or the measure has "none".
    number : what may be written behind the name; None where nothing may.
    stem : what is written before the @.
    within : the least and the largest value there can be.
    wanted : whether the "most" or the "least" of it is the best, or there is "none", as of a share that should be near
        another one; "" for the least of amounts, which have no largest value, and the most of others.
    """

    name: str
    function: Function
    tasks: tuple[str, ...]
    source: str
    of: Literal["scores", "predictions"] = "scores"
    weighted: Literal["rows", "copies", "none"] = "rows"
    number: Number | None = None
    stem: str = ""
    within: tuple[float, float] = SHARE
    wanted: Literal["", "most", "least", "none"] = ""

    @property
    def sign(self) -> int:
        """1 where the most of it is the best, -1 where the least is, 0 where neither."""
        known = {"most": 1, "least": -1, "none": 0}
        return known[self.wanted] if self.wanted else -1 if self.within == AMOUNT else 1

    @property
    def formula(self) -> str:
        """What it is, in words and symbols."""
        return " ".join((self.function.__doc__ or "").split())

    @property
    def spelling(self) -> str:
        """How it may be written: `auc`, `ndcg[@k]`, `precision@k`."""
        if self.number is None:
            return self.name
        optional = self.stem == self.name and not self.number.required
        return f"{self.stem}[@{self.number.name}]" if optional else f"{self.stem}@{self.number.name}"

    def fits(self, loss: Any) -> bool:
        """Whether models of this loss can be judged by it: for the task, or because the loss names it."""
        facts = facts_of(loss)
        with suppress(InputError):  # a loss of a user's may name what there is not
            if any(chosen(name)[0] is self for name in facts.metrics):
                return True
        return facts.task in self.tasks and (self.of == "scores" or not facts.only_ranks)

    def needs_number(self, loss: Any) -> bool:
        """Whether a number must be written, for models of this loss."""
        number = self.number
        return number is not None and number.required and number.name not in {f.name for f in fields(loss)}

    def value(self, scored: ScoredRows, number: float | None = None) -> float | None:
        """The measure of these rows; `number` is None where none was written."""
        if self.number is None:
            return self.function(scored)
        if number is None:
            number = self.number.default
            if self.number.of_loss:
                number = scored.parameters.get(self.number.name, number)
        return self.function(scored, number)


MEASURES: dict[str, Measure] = {}
TASKS = (
    "binary",
    "multiclass",
    "multilabel",
    "ontology",
    "sequence",
    "ranking",
    "ordinal",
    "regression",
    "multivariate",
    "novelty",
)
"""Tasks in the order of tables."""


def measure(*tasks: str, **facts: Any) -> Callable[[Function], Function]:
    """Make a measure known under the name of its function; `facts` as of `Measure`."""

    def keep(function: Function) -> Function:
        name = function.__name__
        MEASURES[name] = Measure(name, function, tasks, **{"stem": name, **facts})
        return function

    return keep


def chosen(name: str) -> tuple[Measure, float | None]:
    """The measure that a name means, with the number written behind it, if any.

    Raises
    ------
    InputError
        For an unknown name, or a number that is missing, wrong or not wanted.
    """
    stem, at, text = name.partition("@")
    if not at:
        if stem not in MEASURES:
            raise InputError(f"{name!r} is unknown{nearest(name, MEASURES)}")
        return MEASURES[stem], None
    found = next((one for one in MEASURES.values() if one.number is not None and one.stem == stem), None)
    if found is None or found.number is None:
        if stem in MEASURES:
            raise InputError(f"{name!r}: {stem} takes no number")
        raise InputError(f"{name!r} is unknown{nearest(stem, [one.stem for one in MEASURES.values()])}")
    try:
        return found, found.number.read(text)
    except ValueError as error:
        raise InputError(f"{name!r}: {found.number.name} is {text[:20]!r}, expected {error}") from error


def check_metrics(names: Iterable[str], loss: Any) -> None:
    """Raise one InputError for names of measures that are unknown or do not fit the loss, with those that do fit."""
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(f"metrics is {shown(names)}, expected a list of names of measures")
    facts, cls = facts_of(loss), loss if isinstance(loss, type) else type(loss)
    title = facts.name or cls.__name__
    wrong = []
    for name in dict.fromkeys(names):
        try:
            found, number = chosen(name)
        except InputError as error:
            wrong.append(str(error))
            continue
        if not found.fits(loss):
            wrong.append(f"{name!r} does not fit {title}")
        elif number is None and found.needs_number(loss):
            wrong.append(f"{name!r} needs a number: {found.spelling}")
    if wrong:
        task = f" ({facts.task})" if facts.task else ""
        known = ", ".join(dict.fromkeys(one.spelling for one in fitting(loss))) or "none"
        raise InputError(f"metrics: {'; '.join(wrong)}; those that fit {title}{task}: {known}")


def fitting(loss: Any) -> list[Measure]:
    """The measures that fit a loss, as they are spelled in sort order."""
    return sorted((one for one in MEASURES.values() if one.fits(loss)), key=lambda one: one.spelling)


def evaluate(names: Iterable[str], scored: ScoredRows) -> dict[str, float | None]:
    """The measures `names`; None where a measure is not defined (ROC area with one class only).

    Parameters
    ----------
    names : as `bmrm measures` lists them.
    scored : the rows: scores, targets, predictions, weights, groups.
    """
    return {name: value_of(name, scored) for name in names}


def value_of(name: str, scored: ScoredRows) -> float | None:
    """One measure; None where it is not defined, as without rows of weight above 0."""
    try:
        found, number = chosen(name)
    except InputError as error:
        raise InputError(f"metric {error}") from error
    if not len(scored.y) or (scored.weights is not None and not scored.weights.any()):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        value = found.value(scored.near_one if found.weighted == "rows" else scored, number)
    return None if value is None or not np.isfinite(value) else float(value)


def both_classes(s: ScoredRows) -> bool:
    """Whether there are positive and negative rows of weight > 0."""
    y = s.present.y
    return bool(np.any(y == 1) and np.any(y != 1))


def known_labels(s: ScoredRows) -> bool:
    """Whether the model knows the label of every row of weight > 0."""
    return bool(np.all(s.present.y < s.classes))
