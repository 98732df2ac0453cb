"""Cross-validation of some candidates on rows that were read: trials, choice, and the model of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

from bmrm.app.calibration.asked import Calibrate, refuse_without_classes
from bmrm.app.calibration.curves import Calibration
from bmrm.app.measure import check_metrics, names_of_measures
from bmrm.app.model import Model
from bmrm.app.path import TOLERANCE
from bmrm.app.path_lambdas import default_ratio, grid, lambda_max
from bmrm.app.pipeline.calibrate import uncalibrated
from bmrm.app.pipeline.features import Featured
from bmrm.app.pipeline.several import solve_any
from bmrm.app.pipeline.solve import BIASES, Problem, Watch, lambda_of_rows, prepared, unwatched
from bmrm.app.progress import Told
from bmrm.app.shares import rows_of_labels
from bmrm.data.dataset import Dataset
from bmrm.data.features._core.rows import Features
from bmrm.kernels.blas_threads import one_thread
from bmrm.losses._core.per_column import PerColumn
from bmrm.metrics import MEASURES, ScoredRows, evaluate
from bmrm.mpi.group import Alone, Group, together
from bmrm.mpi.leading import lead
from bmrm.problem import InputError, Risk
from bmrm.registry import Range, checked_value
from bmrm.search._core.candidates import LAMBDA, Candidate, Values, candidates_of
from bmrm.search._core.choice import check_rule, choose, sign_of
from bmrm.search._core.folds import AskedFolds, Folds
from bmrm.search._core.held_out import joined
from bmrm.search._core.record import CrossValidation, HeldOut
from bmrm.search._core.trials import Source, Trial, Trials, sources_of
from bmrm.solvers._core.monitor import IterativeSolver


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a cross-validation.

    Attributes
    ----------
    folds : which rows are held out.
    measures : names; None for those of the loss.
    measure : by which one is chosen; None for the first of them.
    choose : "best" or "one_standard_error".
    refit : whether the chosen candidate is trained on all rows.
    confidence : of the intervals.
    each_label : whether each label is also measured against all others.
    n_lambdas : values of lambda to choose from, a grid from lambda_max of all rows down; None where they are given.
    calibrate : how the held-out scores of the chosen candidate become probabilities; None for not at all.
    """

    folds: AskedFolds
    measures: Sequence[str] | None = None
    measure: str | None = None
    choose: str = "best"
    refit: bool = True
    confidence: float = 0.95
    each_label: bool = False
    n_lambdas: int | None = None
    calibrate: Calibrate | None = None

    def __post_init__(self) -> None:
        check_rule(self.choose)
        checked_value("n_lambdas", self.n_lambdas, (int, NoneType), Range(least=1))
        checked_value("confidence", self.confidence, (float,), Range(above=0.0, below=1.0))
        if self.calibrate is not None and (self.calibrate.folds is not None or not self.refit):
            raise InputError("calibrate: it takes the folds of the cross-validation, and needs refit")

    def names(self, loss: Any) -> tuple[str, ...]:
        """The measures, of which the first chooses; InputError for one that does not fit or has no best value."""
        names = self.measures if self.measures is not None else names_of_measures(loss, None)
        check_metrics([*names, *filter(None, [self.measure])], loss)
        names = tuple(dict.fromkeys([*filter(None, [self.measure]), *names]))
        if not names:
            raise InputError("measures is empty, expected at least one name")
        sign_of(names[0])
        return names

    def names_of(self, candidates: Sequence[Candidate]) -> tuple[str, ...]:
        """As `names`, of candidates that may have several losses: where none are given, those that all of them name."""
        found = [self.names(one.problem.loss) for one in candidates]
        common = tuple(name for name in found[0] if all(name in names for names in found))
        if not common:
            raise InputError("measures: the losses that are tried name none in common, expected some to be given")
        return common

    def judged(
        self, problem: Problem, tried: Sequence[Values], group: Group
    ) -> tuple[Sequence[Candidate], tuple[str, ...]]:
        """Collective: the candidates with their problems, and the measures of all of them."""
        candidates: list[Candidate] = []
        names: tuple[str, ...] = ()
        with together(group):
            candidates = candidates_of(problem, tried)
            names = self.names_of(candidates)
            for one in candidates if self.calibrate is not None else ():
                refuse_without_classes(one.problem.loss)
        return candidates, names

    def chosen(self, found: Sequence[Trial], measure: str, sources: Sequence[Source], group: Group) -> int:
        """Collective: the number of the candidate that is kept; rank 0 has the trials."""
        number = None
        with together(group):
            if found:
                number = choose(found, measure, self.choose, [one.name for one in sources])
        agreed: int = group.broadcast(number)
        return agreed


def cross_validated(
    data: Dataset,
    problem: Problem,
    tried: Sequence[Values],
    wanted: Wanted,
    group: Group,
    *,
    features: Features | None = None,
    across: Group | None = None,
    watch: Watch = unwatched,
    told: Told | None = None,
) -> CrossValidation | None:
    """Collective: the result, on rank 0; None elsewhere.

    Parameters
    ----------
    data : this rank's rows; `data.scale: unit_norm` has been applied to them.
    problem : that the candidates vary; `shares` as for these rows.
    tried : values of the candidates' fields.
    wanted : folds, measures, choice.
    group : the ranks.
    features : a map of the rows to other features, fitted in each fold to those that are trained on; for lambda_max,
        and for the model, to all.
    across : ranks that share out the folds, each of which has all rows; `group` is then one process.
    watch : surrounds each training.
    told : hears of progress, on rank 0.
    """
    ranks = across or Alone()
    with together(ranks):
        if across is not None:
            problem = replace(problem, threads=problem.threads or across.cores_per_rank)
        ready = _Ready.of(data, problem, tried, wanted, group, features)
    trials = Trials(ready.sources, group, ready.names, watch, told, across=across)
    found = trials.of(ready.candidates)
    result = None
    with together(ranks):
        if ranks.rank == 0:
            result = ready.finished(found, trials, wanted, group, watch)
    return result


@dataclass(frozen=True)
class _Ready:
    """What trainings need, and what is made of them.

    Attributes
    ----------
    data, problem : all rows, by the map of all rows where there is one.
    featured : this map.
    candidates : with their problems.
    names : of the measures; the first chooses.
    folds, sources : of the rows as they were read.
    """

    data: Dataset
    problem: Problem
    featured: Featured | None
    candidates: Sequence[Candidate]
    names: tuple[str, ...]
    folds: Folds
    sources: Sequence[Source]

    @classmethod
    def of(
        cls,
        data: Dataset,
        problem: Problem,
        tried: Sequence[Values],
        wanted: Wanted,
        group: Group,
        features: Features | None,
    ) -> _Ready:
        """Collective: arguments as of `cross_validated`."""
        read, mapped, featured = data, None, None
        if features is not None:
            mapped = partial(_mapped, features, problem, group)
            featured = Featured.of(features, {"train": data}, problem.scale, group, problem.threads)
            data, problem = featured.parts["train"], featured.problem(problem)
        problem = with_own_lambda(problem, data, group)
        if wanted.n_lambdas is not None:
            lambdas = lambdas_of(data, problem, wanted.n_lambdas, group)
            tried = [{**values, LAMBDA: lam} for values in tried or [{}] for lam in lambdas]
        candidates, names = wanted.judged(problem, tried or [{}], group)
        folds, sources = sources_of(wanted.folds, read, problem, group, mapped)
        return cls(data, problem, featured, candidates, names, folds, sources)

    def finished(
        self, found: Sequence[Trial], trials: Trials, wanted: Wanted, group: Group, watch: Watch
    ) -> CrossValidation | None:
        """Collective: the choice, and the model of all rows; None but on rank 0."""
        folds, names, problem = self.folds, self.names, self.problem
        splits = tuple(split.name for split in folds.splits)
        chosen = wanted.chosen(found, names[0], self.sources, group)
        numbers = group.gather_array(folds.numbers.astype(np.float64))
        model: Model | None = None
        if wanted.refit:
            rows = rows_of_labels(self.data, problem.loss) if problem.shares else self.data
            model = solve_any(rows, self.candidates[chosen].problem, group, watch)
            if model is not None and self.featured is not None:
                model = self.featured.model(model)
        if numbers is None:
            return None
        whole = numbers.astype(np.int64)
        held = _held_out(trials.held[chosen], whole, splits, problem.shares)
        tried, rule, confidence = tuple(found), wanted.choose, wanted.confidence
        result = CrossValidation(
            tried, names[0], names, rule, chosen, folds.words, splits, whole, held, confidence, model
        )
        if wanted.calibrate is not None:
            result = calibrated(result, wanted.calibrate.method)
        return replace(result, each_label=each_label(held)) if wanted.each_label else result


def _mapped(
    features: Features, problem: Problem, group: Group, train: Dataset, held: Dataset
) -> tuple[Dataset, Dataset]:
    """Collective: the rows of a fold by a map, and scales before it, of those that are trained on."""
    found = Featured.of(features, {"train": train, "held": held}, problem.scale, group, problem.threads).parts
    return found["train"], found["held"]


def calibrated(found: CrossValidation, method: str) -> CrossValidation:
    """The result, its model with curves that are fitted to the held-out scores of the first repeat."""
    model, repeats = found.model, found.fold_numbers.shape[1]
    assert model is not None
    whole = joined([one.scored for one in found.held_out[: len(found.held_out) // repeats]])
    if whole is None:
        return replace(found, model=uncalibrated(model, "not calibrated: not all folds are trained on the same labels"))
    y = whole.y.astype(np.int64)
    curves = Calibration.fitted(method, whole.scores, y, whole.weights, len(model.labels), found.folds)
    return replace(found, model=replace(model, calibration=curves))


def with_own_lambda(problem: Problem, data: Dataset, group: Group) -> Problem:
    """Collective: the problem with the lambda that follows from all rows, so that it is the same in every fold."""
    if problem.relative is None:
        return problem
    lam = lambda_of_rows(problem, data, group)
    return replace(problem, relative=None, regularizer=replace(problem.regularizer, lam=lam))  # type: ignore[type-var]


def lambdas_of(data: Dataset, problem: Problem, count: int, group: Group) -> list[float]:
    """Collective: `count` numbers from lambda_max of all rows down, as `bmrm.path` has them.

    Raises
    ------
    InputError
        For a regularizer without lambda; where lambda_max is 0.
    """
    with together(group):
        if isinstance(problem.loss, PerColumn) or not any(f.name == "lam" for f in fields(problem.regularizer)):  # type: ignore[arg-type]
            what = "several columns of targets" if isinstance(problem.loss, PerColumn) else "no lambda"
            raise InputError(f"n_lambdas: the problem has {what}, so that there is no lambda_max; expected lambdas")
    rows = rows_of_labels(data, problem.loss) if problem.shares else data
    ready = prepared(rows, problem, group)

    def family(lam: float) -> Any:
        return ready.of_features(replace(problem.regularizer, lam=lam))  # type: ignore[type-var]

    def work(whole: Risk) -> list[float]:
        solver = ready.problem.solver
        assert solver is not None
        tolerance = solver.tolerance if isinstance(solver, IterativeSolver) else TOLERANCE
        largest, exact = lambda_max(BIASES[problem.bias].wrap(whole), family, solver, tolerance)
        ratio = default_ratio(ready.summary.rows, rows.features)
        return grid(largest, ratio if exact else ratio * tolerance, count)

    with one_thread(ready.threads):
        found: list[float] = group.broadcast(lead(ready.risk, group, work))
    return found


def _held_out(
    parts: Sequence[ScoredRows | None], numbers: Any, names: Sequence[str], shares: bool
) -> tuple[HeldOut, ...]:
    """The held-out rows with their numbers; those of given pairs may overlap, and are then numbered as they stand."""
    found = []
    each = len(names) // numbers.shape[1]
    for k, (name, part) in enumerate(zip(names, parts)):
        if part is None:
            continue
        rows = np.flatnonzero(numbers[:, k // each] == k % each + 1)
        if shares or len(rows) != len(part.y):
            rows = np.arange(len(part.y))
        found.append(HeldOut(name, rows, part))
    return tuple(found)


def each_label(held: Sequence[HeldOut]) -> dict[str, dict[str, tuple[float | None, ...]]]:
    """By label the measures of two classes, in each fold, of the label against all others.

    Raises
    ------
    InputError
        For models without a score for each label.
    """
    if not held or held[0].scored.scores.ndim != 2 or not held[0].scored.classes:
        raise InputError("each label needs a score for each of several labels, such as of labels: each, or softmax")
    names = [name for name in ("auc", "average_precision") if name in MEASURES]
    found: dict[str, dict[str, tuple[float | None, ...]]] = {}
    for k, label in enumerate(held[0].scored.labels[: held[0].scored.classes]):
        values = [evaluate(names, _against_others(one.scored, k)) for one in held]
        found[label] = {name: tuple(one[name] for one in values) for name in names}
    return found


def _against_others(s: ScoredRows, k: int) -> ScoredRows:
    """Two classes: label k, which is positive, and all others."""
    y = (s.y[:, k] > 0 if s.y.ndim == 2 else s.y == k).astype(np.int64)
    scores = np.ascontiguousarray(s.scores[:, k])
    return replace(s, y=y, scores=scores, predicted=(scores > 0.0).astype(np.int64), classes=2, labels=("other", "own"))
