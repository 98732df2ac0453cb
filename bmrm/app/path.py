"""Regularization paths from Python: models for many lambdas, each with its certificate, on data that are read once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.app.asked import check_choices, like, plug_in_of, refuse_unlabelled, rows_of, solver_of
from bmrm.app.defaults import default_bias, default_loss
from bmrm.app.measure import check_metrics, names_of_measures
from bmrm.app.model import Model
from bmrm.app.path_kept import KeptPoints
from bmrm.app.path_lambdas import Family, checked_lambdas, default_ratio, family_of, grid, lambda_max
from bmrm.app.pipeline.features import Featured
from bmrm.app.pipeline.features import checked as features_of_rows
from bmrm.app.pipeline.judge import judged
from bmrm.app.pipeline.several import loss_of_columns
from bmrm.app.pipeline.solve import BIASES, Prepared, Problem, prepared, with_threshold
from bmrm.app.shares import are_shares, rows_of_labels
from bmrm.checks import sample
from bmrm.data.class_weights import checked
from bmrm.data.dataset import Dataset
from bmrm.data.raw_columns import Coding
from bmrm.kernels.blas_threads import one_thread
from bmrm.losses import LOSSES
from bmrm.losses._core.per_column import PerColumn
from bmrm.mpi.group import Alone, Group
from bmrm.mpi.launch import say_alone
from bmrm.mpi.leading import lead
from bmrm.problem import (
    Callback,
    IncompatibleError,
    InputError,
    Loss,
    Risk,
    Solution,
    Solver,
    Status,
    bound,
    shown,
)
from bmrm.registry import Range, checked_value
from bmrm.risk.scaling import SCALINGS
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.walk import walk
from bmrm.vocabulary import other_words

__all__ = ["Path", "lambda_max", "path", "solve_path", "walk"]

Array = NDArray[np.float64]
STOPS: Mapping[str, tuple[tuple[type, ...], Range]] = {
    "nonzeros": ((int,), Range(least=0)),
    "explained": ((float,), Range(above=0.0, most=1.0)),
}
"""What may end a path, with its type and range."""
TOLERANCE = 1e-4
"""Gap of the first point where the solver has no tolerance."""
WORDS = {
    "lam": "lambdas",
    "alphas": "lambdas",
    "n_alphas": "n_lambdas",
    "nlambda": "n_lambdas",
    "n_lambda": "n_lambdas",
    "eps": "ratio",
    "lambda_min_ratio": "ratio",
    "min_ratio": "ratio",
}
"""Words of other programs for the arguments of a path."""


def _word_of(word: str, given: Mapping[str, Any]) -> str:
    name = WORDS.get(word.lower().replace(".", "_"), "")
    return f"; use {name}" if name else plug_in_of(word, given)


@dataclass(frozen=True)
class Path:
    """A regularization path: one entry for each lambda, from the largest on.

    Attributes
    ----------
    lambdas : (points,), decreasing.
    objectives, lower_bounds : (points,), J at the weights, and what was proved of its minimum.
    statuses : how the solver stopped.
    nonzeros : (points,), features with a weight other than 0.
    explained : (points,), the share of the loss that is explained, (R(0) - R(w)) / (R(0) - infimum), R(0) with the best
        intercept: R^2 for least squares; nan where the loss has no known infimum.
    seconds, passes : (points,), what each took after those before.
    models : a `Model` for each, such as `bmrm.fit` makes.
    largest : lambda_max; None where lambdas were given.
    exact : whether it is the least lambda with weights of 0, else that whose gap there meets the tolerance.
    measures : of the validation rows, (points,) by name.
    """

    lambdas: Array
    objectives: Array
    lower_bounds: Array
    statuses: tuple[Status, ...]
    nonzeros: NDArray[np.int64]
    explained: Array
    seconds: Array
    passes: Array
    models: tuple[Model, ...] = field(repr=False)
    largest: float | None = None
    exact: bool = False
    measures: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lambdas)

    @property
    def gaps(self) -> Array:
        """Relative ones, (objective - lower bound) / |objective|, (points,)."""
        return np.array([model.solution.relative_gap for model in self.models])

    @property
    def weights(self) -> Array:
        """Of the raw features, (points, features), or (points, features, scores)."""
        return np.stack([model.weights for model in self.models])

    @property
    def intercepts(self) -> Array:
        """(points, scores)."""
        return np.stack([model.intercept for model in self.models])

    def model(self, lam: float) -> Model:
        """That of the lambda that is nearest by its logarithm.

        Parameters
        ----------
        lam : above 0.
        """
        lam = checked_value("lam", lam, (float,), Range(above=0.0, below=math.inf))
        return self.models[int(np.argmin(np.abs(np.log(self.lambdas) - math.log(lam))))]

    def svg(self, title: str = "Regularization path") -> str:
        """Weights, features, explained share, measures and gaps against lambda, as the text of an SVG file.

        Parameters
        ----------
        title : above the charts.
        """
        from bmrm.app.path_charts import of_path, picture

        return picture(of_path(self), title)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.words())}</p>{self.svg()}"

    def words(self) -> str:
        """`100 points, lambda 2.1 to 0.0021, 0 to 57 features, relative gaps up to 8.1e-05`."""
        gap = float(self.gaps.max())
        parts = [f"{len(self)} point{'' if len(self) == 1 else 's'}"]
        parts.append(f"lambda {self.lambdas[0]:.4g} to {self.lambdas[-1]:.4g}")
        parts.append(f"{self.nonzeros[0]} to {self.nonzeros[-1]} features")
        parts.append(f"relative gaps up to {gap:.2g}" if math.isfinite(gap) else "some without a bound")
        return ", ".join(parts)

    def table(self) -> list[dict[str, Any]]:
        """A line for each point, of plain numbers; None where one is not finite."""
        gaps = self.gaps
        return [
            {
                "lambda": float(self.lambdas[k]),
                "objective": _plain(self.objectives[k]),
                "lower_bound": _plain(self.lower_bounds[k]),
                "relative_gap": _plain(gaps[k]),
                "status": self.statuses[k].name,
                "nonzeros": int(self.nonzeros[k]),
                "explained": _plain(self.explained[k]),
                "seconds": float(self.seconds[k]),
                "passes": float(self.passes[k]),
                **{name: _plain(values[k]) for name, values in self.measures.items()},
            }
            for k in range(len(self))
        ]


def _plain(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


@other_words("fit", more=_word_of)
def path(
    X: Any,
    y: Any = None,
    *,
    loss: str | Mapping[str, Any] | Loss | None = None,
    regularizer: Any = None,
    lambdas: Sequence[float] | NDArray[np.float64] | None = None,
    n_lambdas: int = 100,
    ratio: float | None = None,
    stop: Mapping[str, float] | None = None,
    solver: str | Mapping[str, Any] | Solver = "auto",
    tolerance: float | None = None,
    absolute_tolerance: float | None = None,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
    offset: Any = None,
    groups: Any = None,
    bias: Literal["free", "regularized", "none"] | None = None,
    scale: Literal["none", "standardize", "max_abs", "unit_norm"] = "none",
    positive_label: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    categorical: Sequence[str | int] | None = None,
    text: Mapping[str | int, str] | None = None,
    missing: Literal["refuse", "mean", "indicator", "zero"] = "refuse",
    drop_first: bool = False,
    rare: int | None = None,
    threads: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[int, int], Any] | None = None,
    validation: Any = None,
    metrics: Sequence[str] | None = None,
    features: Any = None,
) -> Path:
    """Train a linear model for each of many lambdas, from the largest down; each is certified as one of `bmrm.fit`.

    Rows are read, checked and scaled once. What does not depend on lambda is kept from point to point: all planes of
    the bundle methods, for least squares with l1 or elastic net the Gram matrix, and for smooth losses with l2 second
    derivatives. Smooth losses begin where the last three solutions lead to, others at the last one.

    Parameters
    ----------
    X, y : rows and targets, those of `bmrm.fit`.
    loss : those of `bmrm.fit`; None takes one by the kind of y.
    regularizer : a name, `{"name": ..., option: value}` without lambda, or a function of lambda, such as a class. None
        is `l2`.
    lambdas : decreasing numbers > 0; None for a grid from lambda_max down. For penalties with a kink at 0 (`l1`,
        `elastic_net`, groups) lambda_max is the least lambda for which all weights that are penalised are 0; for others
        that for which weights of 0 have a relative gap of `tolerance`.
    n_lambdas : points of that grid, in equal steps of log(lambda).
    ratio : of its last lambda to the first, in (0, 1). None for 1e-3, 1e-2 where there are fewer rows than features;
        without a kink at 0, `tolerance` times that.
    stop : ends the path at the first point of at least so many features, `{"nonzeros": 50}`, or of such a share of the
        loss explained, `{"explained": 0.999}`; None for the whole grid.
    solver, tolerance, absolute_tolerance : those of `bmrm.fit`, of each point.
    max_iterations, time_limit, seed, solver_options : those of `bmrm.fit`, of each point.
    sample_weight, offset, groups : those of `bmrm.fit`.
    bias, scale, positive_label, class_weight : those of `bmrm.fit`. Scales are those of all points.
    categorical, text, missing, drop_first, rare : those of `bmrm.fit`.
    threads : largest number of threads; None for the usable cores.
    callback : called with each `Iteration` of each point; returning True ends the path there.
    progress : called after each point with how many there were, and how many there are.
    validation : `(X, y)` or a Dataset: rows that every model is measured on.
    metrics : names of their measures; None for those that the loss names.
    features : a map of the rows to other features, see `bmrm.fit`; weights are then of those.

    Raises
    ------
    InputError
        As `bmrm.fit`; for lambdas that do not decrease, and where lambda_max is 0, so that there is no path.
    IncompatibleError
        The solver cannot serve this loss and regularizer, or there is a problem for each column of targets.
    """
    check_choices(bias=bias, scale=scale)
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {shown(callback)}, expected a function of an Iteration")
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {shown(progress)}, expected a function of two numbers")
    threads = checked_value("threads", threads, (int, NoneType), Range(least=1))
    asked, mapping = Asked.checked(regularizer, lambdas, n_lambdas, ratio, stop), features_of_rows(features)
    options = {"tolerance": tolerance, "absolute_tolerance": absolute_tolerance, "max_iterations": max_iterations}
    given = solver_of(solver, {**options, "time_limit": time_limit}, seed, solver_options)
    plain = rows_of(X, y, sample_weight, offset, groups, Coding.checked(categorical, text, missing, drop_first, rare))
    chosen: Any = LOSSES.instance(default_loss(plain)[0] if loss is None else loss)
    refuse_unlabelled(plain, chosen)
    if validation is None and metrics is not None:
        raise InputError("metrics measure validation rows, expected validation=(X, y)")
    check_metrics(metrics, chosen)
    problem = Problem(
        loss=loss_of_columns(chosen, None, None, plain, Alone()),
        regularizer=asked.family(1.0),
        solver=given,
        bias=default_bias(chosen) if bias is None else bias,
        scale=scale,
        positive_label=positive_label,
        class_weight=checked(class_weight),
        threads=threads,
        shares=are_shares(plain, chosen),
    )
    data = SCALINGS[scale].rows(rows_of_labels(plain, chosen) if problem.shares else plain)
    others = {}
    if validation is not None:
        rows = like(plain, validation)
        rows = rows_of_labels(rows, chosen, "validation") if problem.shares else rows
        others["validation"] = SCALINGS[scale].rows(rows)
    featured = None
    if mapping is not None:
        featured = Featured.of(mapping, {"train": data, **others}, scale, Alone(), threads)
        data, others = featured.parts["train"], {part: featured.parts[part] for part in others}
        problem = featured.problem(problem)
    say_alone("`bmrm.path`")
    solved = solve_path(data, problem, asked, Alone(), callback, others, progress=progress)
    found = measured(solved, problem, others, Alone(), metrics)
    assert found is not None
    return found if featured is None else of_raw_rows(found, featured)


def of_raw_rows(found: Path, featured: Featured) -> Path:
    """The path, whose models take rows before the map of their features."""
    return replace(found, models=tuple(map(featured.model, found.models)))


@dataclass(frozen=True)
class Asked:
    """What a path is to be of.

    Attributes
    ----------
    family : from lambda to a regularizer.
    lambdas : decreasing; None for a grid.
    n_lambdas, ratio : of the grid; a ratio of None follows from the data.
    stop : what ends it.
    """

    family: Family
    lambdas: Sequence[float] | NDArray[np.float64] | None = None
    n_lambdas: int = 100
    ratio: float | None = None
    stop: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def checked(cls, regularizer: Any, lambdas: Any, n_lambdas: Any, ratio: Any, stop: Any) -> Asked:
        """From arguments; InputError for what they may not be."""
        family, given = family_of(regularizer), checked_lambdas(lambdas)
        count = checked_value("n_lambdas", n_lambdas, (int,), Range(least=1))
        ratio = checked_value("ratio", ratio, (float, NoneType), Range(above=0.0, below=1.0))
        if given is not None and (ratio is not None or n_lambdas != cls.n_lambdas):
            raise InputError(f"{'n_lambdas' if ratio is None else 'ratio'} beside lambdas, expected one of the two")
        if stop is not None and not isinstance(stop, Mapping):
            raise InputError(f"stop is {shown(stop)}, expected a mapping such as {{'nonzeros': 50}}")
        for name in stop or {}:
            if name not in STOPS:
                raise InputError(f"stop has no {shown(name)}, expected {' or '.join(STOPS)}")
        limits = {name: checked_value(f"stop: {name}", value, *STOPS[name]) for name, value in (stop or {}).items()}
        return cls(family, given, count, ratio, limits)


def solve_path(
    data: Dataset,
    problem: Problem,
    asked: Asked,
    group: Group,
    callback: Callback | None = None,
    others: Mapping[str, Dataset] | None = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Path | None:
    """Collective: the path on the rows of all ranks; None but on rank 0.

    Parameters
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : the same on every rank; its regularizer is one of the family.
    asked : which lambdas.
    group : the ranks.
    callback : called on rank 0 with each `Iteration` of each point; returning True ends the path there.
    others : rows whose targets are checked before the work begins.
    kept : points that are done, of which rank 0 keeps others.
    progress : called on rank 0 after each point with how many there were, and how many there are.

    Raises
    ------
    InputError
        As of `solve`, and where lambda_max is 0.
    IncompatibleError
        For a problem for each column of targets.
    """
    if isinstance(problem.loss, PerColumn):
        raise IncompatibleError(f"{problem.loss.title}: a path is of one problem; fit each column by itself")
    ready = prepared(data, problem, group, others)
    with one_thread(ready.threads):
        found = lead(ready.risk, group, lambda whole: _Points(ready, asked, callback, kept, progress).on(whole))
    count = group.broadcast(None if found is None else len(found))
    models = [None] * count if found is None else list(found.models)
    judged = [with_threshold(one, data, problem.loss, ready.summary, group, ready.threads) for one in models]
    return None if found is None else replace(found, models=tuple(judged))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Points:
    """The work on the rank that leads."""

    ready: Prepared
    asked: Asked
    callback: Callback | None
    kept: KeptPoints | None
    progress: Callable[[int, int], Any] | None

    def on(self, whole: Risk) -> Path:
        """The path on the risk of all rows."""
        ready, asked = self.ready, self.asked
        solver: Any = ready.problem.solver
        minimised: Any = BIASES[ready.problem.bias].wrap(whole)
        sample.sample_regularizer(bound(ready.problem.regularizer, whole), whole.dim)
        largest, exact, lambdas = None, False, asked.lambdas
        if lambdas is None:
            tolerance = solver.tolerance if isinstance(solver, IterativeSolver) else TOLERANCE
            largest, exact = lambda_max(minimised, self._family, solver, tolerance)
            lambdas = grid(largest, self._ratio(tolerance, exact), asked.n_lambdas)
        zero = np.zeros(whole.dim) if ready.center is None else -ready.center.ravel()
        null = minimised.value_and_subgradient(zero)[0] - minimised.infimum
        lines = list(self._lines(minimised, lambdas, null))
        models = tuple(line[0] for line in lines)
        solutions = [model.solution for model in models]
        return Path(
            lambdas=np.array(lambdas[: len(lines)]),
            objectives=np.array([one.objective for one in solutions]),
            lower_bounds=np.array([one.lower_bound for one in solutions]),
            statuses=tuple(one.status for one in solutions),
            nonzeros=np.array([line[1] for line in lines], np.int64),
            explained=np.array([line[2] for line in lines]),
            seconds=np.array([one.seconds for one in solutions]),
            passes=np.array([one.passes for one in solutions]),
            models=models,
            largest=largest,
            exact=exact,
        )

    def _family(self, lam: float) -> Any:
        return self.ready.of_features(self.asked.family(lam))

    def _ratio(self, tolerance: float, exact: bool) -> float:
        if self.asked.ratio is not None:
            return self.asked.ratio
        rows = int(self.ready.summary.rows)
        ratio = default_ratio(rows, self.ready.data.features)
        return ratio if exact else ratio * tolerance

    def _lines(
        self, minimised: Any, lambdas: Sequence[float] | NDArray[np.float64], null: float
    ) -> Iterator[tuple[Model, int, float]]:
        """The model, its features and the share of the loss that it explains, point by point."""
        families = [self._family(lam) for lam in lambdas]
        omegas = [bound(one, minimised) for one in families]
        solutions = self._solutions(minimised, lambdas, omegas)
        for k, (family, omega, solution) in enumerate(zip(families, omegas, solutions)):
            model = self.ready.model(minimised, solution, family)
            nonzeros = int(np.count_nonzero(model.weights.reshape(len(model.weights), -1).any(axis=1)))
            left = solution.objective - omega.value(solution.w) - minimised.infimum
            explained = 1.0 - left / null if math.isfinite(null) and null > 0.0 else math.nan
            if self.progress is not None:
                self.progress(k + 1, len(omegas))
            yield model, nonzeros, explained
            if nonzeros >= self.asked.stop.get("nonzeros", math.inf):
                return
            if explained >= self.asked.stop.get("explained", math.inf):
                return

    def _solutions(
        self, minimised: Any, lambdas: Sequence[float] | NDArray[np.float64], omegas: Sequence[Any]
    ) -> Iterator[Solution]:
        """Points that are done, then the walk from the last of them."""
        kept, first = self.kept, list[Solution]()
        if kept is not None:
            for solution in kept.first([float(lam) for lam in lambdas], minimised.dim):
                first.append(solution)
                yield solution
        start, count = (first[-1].w if first else None), len(first)
        solver: Any = self.ready.problem.solver
        rest = walk(minimised, omegas[count:], solver, start=start, callback=self.callback)
        for lam, solution in zip(lambdas[count:], rest):
            if kept is not None:
                kept.put(float(lam), solution)
            yield solution


def measured(
    found: Path | None,
    problem: Problem,
    parts: Mapping[str, Dataset],
    group: Group,
    metrics: Sequence[str] | None = None,
) -> Path | None:
    """Collective: the path with the measures of each model on the validation rows, where there are some.

    Parameters
    ----------
    found : on rank 0 the path, None elsewhere.
    problem : its problem.
    parts : rows by name, scaled as for the models.
    group : the ranks.
    metrics : names of measures; None for those that the loss names.
    """
    if "validation" not in parts:
        return found
    data, names = parts["validation"], names_of_measures(problem.loss, None) if metrics is None else metrics
    count = group.broadcast(None if found is None else len(found))
    lines: list[dict[str, float | None]] = []
    for k in range(count):
        model = None if found is None else found.models[k]
        rows = judged(model, problem, data, group, "data.validation")
        if rows is not None:
            from bmrm.metrics import evaluate

            lines.append(evaluate(names, rows))
    if found is None:
        return None
    table = {name: np.array([math.nan if one[name] is None else one[name] for one in lines]) for name in names}
    return replace(found, measures=table)
