"""The F-measure by cost-sensitive hinge: BM-ls-CS, "F-measure with bundle line search"; costs of Parambath et al. 2014.

Of all classifiers the one of largest F-beta minimises, for some t, the cost of `1 + beta^2 - t` for each missed
positive and `t` for each false alarm (Parambath, Usunier & Grandvalet, NIPS 2014, proposition 4). So the costs are
tried over a grid of t, each convex problem started from the solution of the last, and F-beta itself decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.defaults import default_bias
from bmrm.app.measure import prepared_targets, scores_of
from bmrm.app.model import Model
from bmrm.app.pipeline.follow import refuse_stop
from bmrm.app.pipeline.solve import Problem, Watch, solve, unwatched
from bmrm.data.dataset import Dataset
from bmrm.losses.cost_sensitive_hinge import CostSensitiveHinge
from bmrm.losses.hinge import Hinge
from bmrm.mpi.dealing import gather_rows
from bmrm.mpi.group import Alone, Group
from bmrm.problem import InputError, Regularizer, Solver, Targets, Vector, facts_of
from bmrm.registry import check_parameters, parameter
from bmrm.search import register
from bmrm.solvers.line_search_bundle import LineSearchBundle

Judged = tuple[Vector, Vector, Vector | None]
"""Targets (1 for positive), scores and weights of rows, over all ranks; empty but on rank 0."""


@register("f_measure", needs="two classes", source="BM-ls-CS; Parambath, Usunier & Grandvalet 2014")
@dataclass(frozen=True)
class FMeasure:
    """Train `cost_sensitive_hinge` over a grid of costs and keep the model of largest F-beta.

    Judged on the validation data, else on rows left out in turn, pooled; then the chosen costs are trained on all
    rows. The threshold is moved to where F-beta is largest on the same scores, and goes into the intercept.
    `summary.json` has the table under `search`.

    Parameters
    ----------
    beta : weight of recall against precision.
    costs : how many t, equally spaced inside (0, 1 + beta^2).
    folds : parts that are left out in turn where there are no validation data.
    tune_threshold : whether to move the threshold; else rows of positive score are called positive.
    seed : of the folds; null = that of the config, 0 from Python.

    Raises
    ------
    InputError
        Another loss than `hinge` (the default) or `cost_sensitive_hinge`, which this search replaces; fewer rows than
        folds.
    """

    beta: float = parameter(1.0, above=0.0, below=math.inf, doc="weight of recall", example=2.0)
    costs: int = parameter(9, least=1, doc="points of the grid", example=3)
    folds: int = parameter(5, least=2, doc="parts left out in turn, without validation data", example=3)
    tune_threshold: bool = parameter(True, doc="move the threshold", example=False)
    seed: int | None = parameter(None, least=0, doc="of the folds; null = the config's", example=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    def grid(self) -> list[CostSensitiveHinge]:
        """The losses, from the dearest false alarm to the dearest missed positive."""
        whole = 1.0 + self.beta**2
        ts = whole * np.arange(self.costs, 0, -1) / (self.costs + 1)
        return [CostSensitiveHinge(float(whole - t), float(t)) for t in ts]

    def fit(
        self, parts: Mapping[str, Dataset], problem: Problem, group: Group, watch: Watch
    ) -> tuple[Model | None, dict[str, Any]]:
        """The model of the best costs, None but on rank 0, and the table of the search.

        Parameters
        ----------
        parts : `train`, and `validation` and `test` where the config names them.
        problem : loss, regularizer, solver and the rest of the config.
        group : all ranks.
        watch : gives each fit its callback.
        """
        if not isinstance(problem.loss, (Hinge, CostSensitiveHinge)):
            name = facts_of(problem.loss).title
            raise InputError(f"search: f_measure trains cost_sensitive_hinge, not {name}; leave loss out")
        refuse_stop(problem.follow, "a search")
        run = _Run(self, parts, problem, group, watch)
        return run.on_validation() if "validation" in parts else run.on_folds()


@dataclass
class _Run:
    """One search."""

    options: FMeasure
    parts: Mapping[str, Dataset]
    problem: Problem
    group: Group
    watch: Watch

    def on_validation(self) -> tuple[Model | None, dict[str, Any]]:
        """Every model is trained on all rows and judged on the validation data."""
        start: Vector | None = None
        table: list[dict[str, Any]] = []
        best: Model | None = None
        for loss in self.options.grid():
            model = self._train(self.parts["train"], loss, start)
            line = self._judge(loss, self._scored(model, loss, self.parts["validation"]), model)
            if model is not None and line is not None:
                start = _weights(model)
                if best is None or line["f_beta"] > max(row["f_beta"] for row in table):
                    best = _moved(model, line["threshold"])
                table.append(line)
        return best, self._report(table, "validation")

    def on_folds(self) -> tuple[Model | None, dict[str, Any]]:
        """Every cost is judged on the rows left out; the best is trained on all of them."""
        train, folds = self.parts["train"], self.options.folds
        fold = self._fold_of_rows()
        starts: list[Vector | None] = [None] * folds
        table: list[dict[str, Any]] = []
        for loss in self.options.grid():
            judged: list[Judged] = []
            model = None
            for k in range(folds):
                model = self._train(train.select(np.flatnonzero(fold != k)), loss, starts[k])
                starts[k] = None if model is None else _weights(model)
                judged.append(self._scored(model, loss, train.select(np.flatnonzero(fold == k))))
            line = self._judge(loss, _pooled(judged), model)
            if line is not None:
                table.append(line)
        values = [line["f_beta"] for line in table]
        chosen = self.group.broadcast(int(np.argmax(values)) if values else None)
        final = self._train(train, self.options.grid()[chosen], starts[0])
        if final is None:
            return None, {}
        return _moved(final, table[chosen]["threshold"]), self._report(table, f"{folds} folds")

    def _train(self, rows: Dataset, loss: CostSensitiveHinge, start: Vector | None) -> Model | None:
        problem = replace(self.problem, loss=loss)
        return solve(rows, problem, self.group, self.watch, others=self.parts, start=start)

    def _scored(self, model: Model | None, loss: CostSensitiveHinge, rows: Dataset) -> Judged:
        """Collective: what the model says of rows that it has not seen."""
        group = self.group
        labels = group.broadcast(None if model is None else model.label_codes)
        weights = group.broadcast_array(None if model is None else model.weights)
        intercept = group.broadcast_array(None if model is None else model.intercept)
        y = prepared_targets(loss, rows.targets, labels, "data.validation")
        threads = self.problem.threads or group.cores_per_rank
        scores = scores_of(rows, weights, intercept, threads)
        found = gather_rows(Dataset(scores[:, None], Targets(y, rows.targets.weights)), group)
        if found is None:
            return np.empty(0), np.empty(0), None
        return found.targets.y, np.asarray(found.X)[:, 0], found.targets.weights

    def _judge(self, loss: CostSensitiveHinge, judged: Judged, model: Model | None) -> dict[str, Any] | None:
        """A line of the table; None but on rank 0."""
        if model is None:
            return None
        beta, solution = self.options.beta, model.solution
        threshold, value = 0.0, f_beta_at(*judged, beta, 0.0)
        if self.options.tune_threshold:
            threshold, value = best_threshold(*judged, beta)
        return {
            "cost_positive": loss.cost_positive,
            "cost_negative": loss.cost_negative,
            "f_beta": value,
            "threshold": threshold,
            "objective": solution.objective,
            "status": solution.status.name,
            "iterations": solution.iterations,
            "passes": solution.passes,
        }

    def _report(self, table: list[dict[str, Any]], judged_on: str) -> dict[str, Any]:
        if not table:
            return {}
        chosen = int(np.argmax([line["f_beta"] for line in table]))
        options = {"name": "f_measure", "beta": self.options.beta, "judged_on": judged_on}
        return options | {"chosen": chosen, "table": table}

    def _fold_of_rows(self) -> NDArray[np.int64]:
        """This rank's rows' folds, which do not depend on how the rows are shared out."""
        rows = self.parts["train"].rows
        counts = self.group.broadcast(self.group.gather(rows))
        if sum(counts) < self.options.folds:
            raise InputError(f"search.folds is {self.options.folds}, expected at most the {sum(counts)} rows")
        folds = np.random.default_rng(self.options.seed or 0).permutation(sum(counts)) % self.options.folds
        before = sum(counts[: self.group.rank])
        return folds[before : before + rows]


def _weights(model: Model) -> Vector:
    return model.solution.w


def _moved(model: Model, threshold: float) -> Model:
    """The same model with its threshold at 0."""
    return replace(model, intercept=model.intercept - threshold)


def _pooled(judged: list[Judged]) -> Judged:
    weights = [part[2] for part in judged if part[2] is not None]
    y, f = (np.concatenate([part[k] for part in judged]) for k in (0, 1))
    return y, f, np.concatenate(weights) if weights else None


def fit(
    X: Any,
    y: Any,
    *,
    regularizer: Regularizer,
    search: FMeasure | None = None,
    validation: tuple[Any, Any] | None = None,
    solver: Solver | None = None,
    bias: str | None = None,
    scale: str = "none",
    positive_label: float | str | None = None,
) -> tuple[Model, dict[str, Any]]:
    """Search from Python: the model, and the table of the search.

    Parameters
    ----------
    X, y : (rows, features) array, sparse matrix or data frame, and (rows,) labels.
    regularizer, solver : instances; `line_search_bundle` where no solver is given.
    search : its options.
    validation : `(X, y)` that decide; None for rows left out in turn.
    bias : "regularized" (a constant feature 1), "free" or "none".
    scale : "none", "standardize", "max_abs" or "unit_norm".
    positive_label : of two labels the positive one; None for the last in sort order.
    """
    from bmrm.risk.scaling import SCALINGS

    bias = default_bias(Hinge()) if bias is None else bias
    problem = Problem(Hinge(), regularizer, solver or LineSearchBundle(), bias, scale, positive_label)
    parts = {"train": Dataset.from_arrays(X, y)}
    if validation is not None:
        parts["validation"] = Dataset.from_arrays(*validation)
    scaled = {part: SCALINGS[scale].rows(data) for part, data in parts.items()}
    model, table = (search or FMeasure()).fit(scaled, problem, Alone(), unwatched)
    assert model is not None
    return model, table


def f_beta_at(y: Vector, f: Vector, weights: Vector | None, beta: float, threshold: float) -> float:
    """F-beta of calling rows positive whose score exceeds `threshold`; 0 where there is no true positive."""
    w = np.ones(len(y)) if weights is None else weights
    called = f > threshold
    hits, alarms, positives = w[called & (y == 1)].sum(), w[called].sum(), w[y == 1].sum()
    return float((1.0 + beta**2) * hits / (beta**2 * positives + alarms)) if hits > 0.0 else 0.0


def best_threshold(y: Vector, f: Vector, weights: Vector | None, beta: float) -> tuple[float, float]:
    """The threshold of largest F-beta, and that F-beta; of several such the one nearest to 0.

    Parameters
    ----------
    y : (rows,) 1 for positive rows, else 0.
    f : (rows,) scores.
    weights : (rows,) or None.
    beta : of `(1 + beta^2) precision recall / (beta^2 precision + recall)`.

    Notes
    -----
    Thresholds lie midway between neighbouring scores, so that rows of one score stay together; and below all.
    """
    w = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(-f, kind="stable")
    scores, hits = f[order], np.cumsum((w * (y == 1))[order])
    alarms = np.cumsum(w[order])
    last = np.append(scores[1:] < scores[:-1], True)
    values = (1.0 + beta**2) * hits[last] / np.maximum(beta**2 * hits[-1] + alarms[last], np.finfo(np.float64).tiny)
    edges = scores[last]
    # a score that has no neighbour below: any threshold further down does
    below = np.append(edges[1:], edges[-1] - 2.0 * max(1.0, abs(edges[-1])))
    middles = below + 0.5 * (edges - below)
    # where two scores are neighbours among floats the middle is one of them
    middles = np.where(middles < edges, middles, below)
    inside = (below <= 0.0) & (edges > 0.0)
    thresholds = np.where(inside, 0.0, middles)
    equal = np.flatnonzero(values >= values.max() * (1.0 - 1e-12))
    chosen = equal[np.argmin(np.abs(thresholds[equal]))]
    return float(thresholds[chosen]), float(values[chosen])
