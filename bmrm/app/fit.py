"""Train from Python: arrays in, a model with its certificate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from bmrm.app.asked import check_choices, like, plug_in_of, refuse_unlabelled, regularizer_of, rows_of, solver_of
from bmrm.app.calibration.asked import checked as calibration_of
from bmrm.app.defaults import default_bias, default_loss
from bmrm.app.model import Model
from bmrm.app.pipeline import fingerprint
from bmrm.app.pipeline.beginning import start_of_file
from bmrm.app.pipeline.calibrate import Calibrating
from bmrm.app.pipeline.features import Featured, section_of
from bmrm.app.pipeline.features import checked as features_of_rows
from bmrm.app.pipeline.follow import Follow
from bmrm.app.pipeline.several import CLASSES, LABELS, TOGETHER, loss_of_columns, solve_any
from bmrm.app.pipeline.solve import Problem, solved
from bmrm.app.shares import are_shares, rows_of_labels
from bmrm.app.stopping import checked as stopping_of
from bmrm.checks import sample
from bmrm.data.class_weights import checked, pairs_of
from bmrm.data.dataset import Dataset
from bmrm.data.features._core.rows import Features
from bmrm.data.features._core.transformer import Transformer
from bmrm.data.raw_columns import Coding
from bmrm.losses import LOSSES
from bmrm.losses._core.per_column import PerColumn
from bmrm.mpi.group import Alone
from bmrm.mpi.launch import say_alone
from bmrm.problem import (
    Callback,
    InputError,
    Loss,
    Regularizer,
    Risk,
    Solution,
    Solver,
    Start,
    Vector,
    bound,
    shown,
)
from bmrm.registry import Range, checked_value
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.linear import LinearRisk
from bmrm.risk.scaling import SCALINGS
from bmrm.risk.structured import StructuredRisk
from bmrm.vocabulary import other_words


@other_words("fit", more=plug_in_of)
def fit(
    X: Any,
    y: Any = None,
    *,
    loss: str | Mapping[str, Any] | Loss | None = None,
    regularizer: str | Mapping[str, Any] | Regularizer | None = None,
    lam: float | None = None,
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
    classes: Literal["together", "one_vs_rest"] = "together",
    labels: Literal["together", "each"] = "together",
    categorical: Sequence[str | int] | None = None,
    text: Mapping[str | int, str] | None = None,
    missing: Literal["refuse", "mean", "indicator", "zero"] = "refuse",
    drop_first: bool = False,
    rare: int | None = None,
    threads: int | None = None,
    callback: Callback | None = None,
    start: Any = None,
    validation: Any = None,
    follow: Sequence[str] = (),
    follow_every: int = 10,
    stop: Mapping[str, Any] | None = None,
    calibrate: str | Mapping[str, Any] | None = None,
    features: str | Mapping[str, Any] | Features | Transformer | None = None,
) -> Model:
    """Train a linear model: minimise Omega(w) + R(w), R the (weighted) mean loss of the rows.

    Parameters
    ----------
    X : array, scipy.sparse matrix, `Csr` or data frame of pandas or polars, (rows, features), finite; float32 stays
        float32. Not changed. The names of a frame's columns are stored in the model, which finds them in other frames.
        Its columns of text and of categories are one-hot encoded: each level is a feature, such as `town=Oslo`. Or a
        `Dataset`, which brings y, weights, offset and groups. Or chunks, of which one at a time is in memory: a list of
        `(X, y)`, `(X, y, sample_weight)`, `Dataset`s or record batches of Arrow, or a function without arguments that
        returns an iterator of these, the same each time; they go into a temporary store.
    y : (rows,) labels or numbers, as the loss requires: numbers of any type, text, truth values, times. Predicted
        labels have the same type. For `logistic` also shares of the positive class (more than two different numbers in
        [0, 1], not all whole) or successes and trials, (rows, 2), and for `softmax` a share for each class, (rows,
        classes). Of record batches the name of a column, as are `sample_weight`, `offset` and `groups`.
    loss : a name (see `bmrm losses`), `{"name": ..., option: value}`, or an instance. None takes one by the kind of y:
        `hinge` for two classes, `multiclass_hinge` for more, `least_squares` for numbers (floats, unless they are two
        whole ones), `multilabel_hinge` for sets of labels. The model says which.
    regularizer : a name, a mapping or an instance, for example `bmrm.L2(1e-4)`. None is `l2`.
    lam : lambda > 0 of a regularizer that is named or left out; None for 1 / m, m the rows of positive weight.
    solver : a name (see `bmrm solvers`), a mapping or an instance, which has all that follows up to `solver_options`.
    tolerance : relative gap to reach, (objective - lower bound) / |objective|; None for 1e-4, as at every door.
    absolute_tolerance : gap to reach, in units of J; None for 0. Either ends the run.
    max_iterations : iterations at most; None for 10,000.
    time_limit : seconds at most, without compiling kernels; None for no limit.
    seed : of a solver that draws random numbers (`pegasos`, `dual_coordinate`, ...); None for a fixed one. `auto` draws
        always the same.
    solver_options : the other options of the solver, such as `{"memory": 5}` for `lbfgs`.
    sample_weight : (rows,), >= 0; None for 1 each.
    offset : (rows,), or (rows, scores) for several scores per row: added to the scores, outside the weights, such as
        the logarithm of an exposure; or the name of a column of X, which is no feature then. `predict` needs it, too.
        None for 0.
    groups : (rows,) integers, for losses over groups of rows.
    bias : "free": an intercept that the regularizer does not touch; "regularized": a constant feature 1; "none". None
        is "free" where the loss has one, else "none"; "none" for sequences, whose transitions take its place.
    scale : "none", "standardize", "max_abs" (folded back into the weights), or "unit_norm" (per row).
    positive_label : of two labels the positive one; None for the last in sort order.
    class_weight : factors of the weights of rows by their class, a dict by label, 1 where none is given; "balanced":
        all classes weigh the same, with the weights of their rows; None for 1. Neither `lam` nor `scale` depends on it.
    classes : "one_vs_rest": a loss of two classes for each class against all others, and the class of the largest
        score is predicted; J and its bound are sums over the classes. "together": one loss of all classes.
    labels : "each": a loss of two classes for each label of rows that may have several (a list of sets, or a matrix of
        0 and 1). "together": one loss of all labels.
    categorical : columns of numbers that are categories all the same, by name, or by number from 0; None for none.
    text : columns whose words are features, `{name: "hashed"}` (scikit-learn's `HashingVectorizer`) or `"counted"`
        (`CountVectorizer`, whose words the model keeps); None for none.
    missing : "refuse", or what stands in place of a missing number: the "mean" of the column, the mean with a feature
        that is 1 there ("indicator"), or "zero". A missing category is a level, `town=missing`, or has only zeros.
    drop_first : whether the first level of each category has no feature.
    rare : levels with fewer rows are one, `town=(rare)`; None for none.
    threads : largest number of threads; None for the usable cores.
    callback : called with the `Iteration` after each; returning True stops the run with INTERRUPTED.
    start : starting point: a `Model` or the path of its file, of any problem with these features and labels; the path
        of a checkpoint of this problem, whose bound is used; a vector in the units of the solver (scaled features, a
        constant feature last, all less the `center` of `l2`), as `solution.w` is; None for zero.
    validation : `(X, y)` or a Dataset: the rows that are followed, or whose scores are calibrated.
    follow : measures of them that are taken while the solver runs, such as `["map"]`; see `bmrm measures`. The solution
        has them as `details["validation"]`: arrays by name, nan where a measure is not defined, and `iteration`.
    follow_every : iterations between two measurements, of the best point so far or, with `probe` and `pegasos`, of w_t;
        the last line is the result of the solver.
    stop : `{"measure": "map", "patience": 5}`: the solver ends after so many such measurements without a better one of
        the validation rows, and the model of the best is kept, with its own objective; None: it ends by its gap.
    calibrate : "sigmoid" or "isotonic": probabilities (`predict_proba`) of any loss of classes, by a curve from scores
        to shares of true labels. It is fitted to the validation rows, without them to rows left out in turn, in 5 folds
        or as many as `{"method": ..., "folds": ...}` says: so many more trainings, with the same limits each. Labels
        stay those of the scores. None for the probabilities of the loss, if it has some.
    features : a map to other features, in which the model is linear: "incomplete_cholesky", "nystroem",
        "random_fourier", "polynomial", "svd" or "random_projection", `{"name": ..., option: value}` (a `kernel` may be
        a function), or a transformer of scikit-learn, which is copied and fitted to X. `scale` comes before it. The
        model takes raw rows. None for the features as they are.

    Returns
    -------
    Model
        Its `solution` has status, objective, lower bound and history.

    Raises
    ------
    InputError
        Wrong arrays, labels, names or options.
    IncompatibleError
        The solver cannot serve this loss and regularizer.
    """
    check_choices(bias=bias, scale=scale, classes=classes, labels=labels)
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {shown(callback)}, expected a function of an Iteration")
    threads = checked_value("threads", threads, (int, NoneType), Range(least=1))
    options = {"tolerance": tolerance, "absolute_tolerance": absolute_tolerance, "max_iterations": max_iterations}
    asked, mapping = calibration_of(calibrate), features_of_rows(features)
    given = solver_of(solver, {**options, "time_limit": time_limit}, seed, solver_options)
    coding = Coding.checked(categorical, text, missing, drop_first, rare)
    plain = rows_of(X, y, sample_weight, offset, groups, coding)
    loss = "hinge" if loss is None and (classes, labels) != (TOGETHER, TOGETHER) else loss
    choice = _Choice.of(plain, loss, regularizer, lam)
    weights, followed = checked(class_weight), _follow(validation, follow, follow_every, stop)
    refuse_unlabelled(plain, choice.loss)
    loss = loss_of_columns(choice.loss, classes, labels, plain, Alone())
    shares = are_shares(plain, loss)
    problem = Problem(
        loss=loss,
        regularizer=choice.regularizer,
        solver=given,
        bias=default_bias(choice.loss) if bias is None else bias,
        scale=scale,
        positive_label=positive_label,
        class_weight=weights,
        shares=shares,
        threads=threads,
        follow=followed,
    )
    data, featured = SCALINGS[scale].rows(rows_of_labels(plain, problem.loss) if shares else plain), None
    if isinstance(start, (str, PathLike)):
        start = start_of_file(Path(start), _facts(problem, plain, section_of(mapping)))
    others = {}
    if validation is not None and (problem.follow is not None or (asked is not None and asked.folds is None)):
        rows = like(plain, validation)
        rows = rows_of_labels(rows, problem.loss, "validation") if shares else rows
        others["validation"] = SCALINGS[scale].rows(rows)
    calibrating = None
    if asked is not None:
        calibrating = Calibrating.prepared(asked, data, others.get("validation"), problem, Alone())
    if mapping is not None:
        featured = Featured.of(mapping, {"train": data, **others}, scale, Alone(), threads)
        data, others = featured.parts["train"], {part: featured.parts[part] for part in others}
        problem = featured.problem(problem)
        calibrating = None if calibrating is None else calibrating.of_features(featured.parts)
    say_alone("`bmrm.fit`")
    model = solve_any(data, problem, Alone(), lambda model_of: nullcontext(callback), others=others, start=start)
    model = model if calibrating is None else calibrating.of(model, problem)
    assert model is not None
    model = model if featured is None else featured.model(model)
    return replace(model, header={**model.header, "chosen": choice.words}) if choice.words else model


@dataclass(frozen=True)
class _Choice:
    """Loss and regularizer for some rows, and in words what of them was not given."""

    loss: Any
    regularizer: Any
    words: dict[str, str]

    @classmethod
    def of(cls, data: Dataset, loss: Any, regularizer: Any, lam: float | None) -> _Choice:
        words = {}
        if loss is None:
            loss, found = default_loss(data)
            words["loss"] = f"{loss} for {found}"
        loss = LOSSES.instance(loss)
        regularizer, own = regularizer_of(data, regularizer, lam)
        return cls(loss, regularizer, words | ({"lambda": "1 / m"} if own else {}))


def _follow(validation: Any, metrics: Sequence[str], every: int, stop: Any) -> Follow | None:
    """What is followed; InputError where it is not clear."""
    if not isinstance(metrics, (list, tuple)) and (isinstance(metrics, str) or not isinstance(metrics, Sequence)):
        raise InputError(f"follow is {shown(metrics)}, expected a list of names of measures")
    stopping = stopping_of(stop)
    if not metrics and stopping is None:
        return None
    if validation is None:
        name = "follow" if metrics else "stop"
        raise InputError(f"{name} measures validation rows, expected validation=(X, y)")
    return Follow.of(metrics, checked_value("follow_every", every, (int,), Range(least=1)), stopping)


def _facts(problem: Problem, data: Dataset, features: Mapping[str, Any] | None) -> fingerprint.Facts:
    """A description of the problem, as in a config."""
    several = problem.loss if isinstance(problem.loss, PerColumn) else None
    loss = problem.loss if several is None else several.loss
    described = {"loss": LOSSES.describe(loss), "regularizer": REGULARIZERS.describe(problem.regularizer)}
    section: dict[str, Any] = {"bias": problem.bias, "scale": problem.scale, "positive_label": problem.positive_label}
    section |= {"class_weight": pairs_of(problem.class_weight), "features": features}
    kind = None if several is None else several.kind
    section |= {"classes": kind if kind in CLASSES else TOGETHER, "labels": kind if kind in LABELS else TOGETHER}
    facts = fingerprint.of_settings({**described, "search": None, "calibrate": None, "data": section})
    return facts | {"data": fingerprint.of_rows(data, Alone())}


@other_words("fit", more=plug_in_of)
def minimize(
    risk: Risk,
    regularizer: Regularizer,
    solver: str | Mapping[str, Any] | Solver = "auto",
    *,
    tolerance: float | None = None,
    absolute_tolerance: float | None = None,
    max_iterations: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    start: Vector | Start | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimise J(w) = regularizer + risk for any convex risk.

    Parameters
    ----------
    risk : anything with `dim`, `infimum` (a lower bound of R; -inf if unknown) and `value_and_subgradient(w) -> (float,
        array of shape (dim,))`.
    regularizer : an instance, for example `bmrm.L2(1e-4)`.
    solver : a name (see `bmrm solvers`), `{"name": ..., option: value}`, or an instance.
    tolerance : relative gap to reach, (objective - lower bound) / |objective|; None for 1e-4, as at every door.
    absolute_tolerance : gap to reach, in units of J; None for 0. Either ends the run.
    max_iterations : iterations at most; None for 10,000.
    time_limit : seconds at most; None for no limit.
    seed : of a solver that draws random numbers (`pegasos`, `dual_coordinate`, ...); None for a fixed one.
    solver_options : the other options of the solver, such as `{"memory": 5}` for `lbfgs`.
    start : (dim,); a `Start` from an earlier run on the same problem; None for zero. Not changed.
    callback : called with the `Iteration` after each; returning True stops the run with INTERRUPTED.

    Raises
    ------
    InputError
        Wrong names or options.
    IncompatibleError
        The solver needs an ability that risk or regularizer does not have.
    """
    options = {"tolerance": tolerance, "absolute_tolerance": absolute_tolerance, "max_iterations": max_iterations}
    chosen = solver_of(solver, {**options, "time_limit": time_limit}, seed, solver_options)
    if isinstance(risk, LinearRisk):
        sample.sample_loss(risk.loss, risk.data.targets, risk.summary)
    w = start.w if isinstance(start, Start) else start
    sample.sample_risk(risk, w, always=isinstance(risk, StructuredRisk))
    return solved(chosen, risk, bound(regularizer, risk), start, callback)
