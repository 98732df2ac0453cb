"""Cross-validation from Python: arrays in, the measures of each candidate and the chosen model out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import NoneType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.app.asked import check_choices, plug_in_of, refuse_unlabelled, regularizer_of, rows_of, solver_of
from bmrm.app.calibration.asked import checked as calibration_of
from bmrm.app.defaults import default_bias, default_loss
from bmrm.app.pipeline.features import checked as features_of_rows
from bmrm.app.pipeline.several import TOGETHER, loss_of_columns
from bmrm.app.pipeline.solve import Problem
from bmrm.app.shares import are_shares
from bmrm.data.class_weights import checked
from bmrm.data.raw_columns import Coding
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.mpi.launch import say_alone
from bmrm.problem import Callback, InputError, Loss, Regularizer, Solver, shown
from bmrm.registry import Range, checked_value
from bmrm.risk.scaling import SCALINGS
from bmrm.search._core.candidates import LAMBDA, Values, checked_fields, grid
from bmrm.search._core.crossing import Wanted, cross_validated
from bmrm.search._core.folds import AskedFolds
from bmrm.search._core.record import CrossValidation, HeldOut
from bmrm.search._core.trials import Trial
from bmrm.vocabulary import other_words

__all__ = ["CrossValidation", "HeldOut", "Trial", "cross_validate"]

WORDS = {
    "cv": "folds",
    "nfolds": "folds",
    "n_folds": "folds",
    "n_splits": "folds",
    "n_repeats": "repeats",
    "scoring": "measures",
    "metrics": "measures",
    "alphas": "lambdas",
    "n_alphas": "n_lambdas",
    "nlambda": "n_lambdas",
    "cs": "lambdas",
    "param_grid": "search",
    "param_distributions": "search",
}
"""Words of other programs for the arguments of a cross-validation."""


def _word_of(word: str, given: Mapping[str, Any]) -> str:
    name = WORDS.get(word.lower(), "")
    return f"; use {name}" if name else plug_in_of(word, given)


@other_words("fit", more=_word_of)
def cross_validate(
    X: Any,
    y: Any = None,
    *,
    folds: int | str | NDArray[Any] | Sequence[Any] | object = 10,
    split: Literal["auto", "stratified", "random", "grouped", "time"] = "auto",
    repeats: int = 1,
    measures: Sequence[str] | None = None,
    measure: str | None = None,
    lambdas: Sequence[float] | NDArray[np.float64] | None = None,
    n_lambdas: int | None = None,
    search: Mapping[str, Sequence[Any]] | None = None,
    choose: Literal["best", "one_standard_error"] = "best",
    refit: bool = True,
    confidence: float = 0.95,
    each_label: bool = False,
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
    progress: Callable[[int, int], None] | None = None,
    calibrate: str | None = None,
    features: Any = None,
) -> CrossValidation:
    """Measure a training, or several candidates, on rows that were held out, and train the chosen one on all rows.

    Every training has its certificate, as those of `bmrm.fit` have. Candidates that differ in lambda alone are walked
    from the largest down on rows that are read and scaled once for each fold, each from what was found before. Lambda
    is the factor beside a mean, and so means the same for the rows of a fold and for all; left out it is 1 / m, m all
    rows.

    Parameters
    ----------
    X : (rows, features) array, scipy.sparse matrix or data frame; or a `Dataset`, which brings y, weights and groups.
    y : (rows,) labels or numbers, (rows, columns), or sets of labels, as the loss requires.
    folds : how many; or a fold for each row, an array of whole numbers (-1: never held out) or a file of them, a
        splitter of scikit-learn, or pairs of arrays (rows that are trained on, rows that are held out).
    split : "stratified" (each fold has the shares of the classes), "random", "grouped" (rows of one of `groups` stay
        together) or "time" (rows are in the order of time, those before a fold are trained on). "auto" is "grouped"
        where the loss is of groups, else "stratified" where rows have classes.
    repeats : times that rows are divided anew.
    measures : names of measures that fit the loss, see `bmrm measures`; None for those that the loss names.
    measure : the one that chooses; None for the first of them.
    lambdas : values of lambda to choose from; None for that of the regularizer.
    n_lambdas : so many values instead, the grid of `bmrm.path` for all rows, from lambda_max down.
    search : fields of a config with the values to choose from, all combinations: `{"loss.delta": [0.5, 1.0],
        "regularizer.lambda": [1e-4, 1e-3]}`.
    choose : "best" mean over the folds, or "one_standard_error": the largest lambda whose mean is within one standard
        error of that.
    refit : whether the chosen candidate is trained on all rows.
    confidence : of the t intervals of means over folds, in (0, 1).
    each_label : whether each of several labels or classes is measured against all others, too.
    loss : those of `bmrm.fit`; None takes one by the kind of y.
    regularizer, lam : those of `bmrm.fit`; an instance brings its own lambda.
    solver, tolerance, absolute_tolerance : those of `bmrm.fit`, of each training.
    max_iterations, time_limit, solver_options : those of `bmrm.fit`, of each training.
    seed : of the folds, and of a solver that draws random numbers; None for 0.
    sample_weight : those of `bmrm.fit`. Measures count held-out rows by their weights.
    offset : those of `bmrm.fit`.
    groups : those of `bmrm.fit`, or text; "grouped" folds keep them whole.
    bias, positive_label, class_weight, classes, labels : those of `bmrm.fit`.
    scale : those of `bmrm.fit`, by the rows that are trained on.
    categorical, text, missing, drop_first, rare : those of `bmrm.fit`, by all rows.
    threads : largest number of threads; None for the usable cores.
    callback : called with each `Iteration` of each training; returning True ends all.
    progress : called after each training with how many there were, and how many there are.
    calibrate : "sigmoid" or "isotonic": probabilities of the model by the held-out scores of the chosen candidate.
    features : a map of the rows to other features, see `bmrm.fit`; it, and the scales before it, are of the rows that
        are trained on.

    Returns
    -------
    CrossValidation
        Its `table()` has a line for each candidate, `best` the chosen one, and `model` that of all rows.

    Raises
    ------
    InputError
        Wrong arrays, labels, names or options; more folds than rows, groups, or rows of a class; folds for another
        number of rows; a measure that does not fit the loss, or is not defined in a fold; no candidates, unknown
        fields.
    IncompatibleError
        The solver cannot serve this loss and regularizer.
    """
    check_choices(bias=bias, scale=scale, classes=classes, labels=labels)
    for name, function in (("callback", callback), ("progress", progress)):
        if function is not None and not callable(function):
            raise InputError(f"{name} is {shown(function)}, expected a function")
    threads = checked_value("threads", threads, (int, NoneType), Range(least=1))
    mapping = features_of_rows(features)
    tried = tried_values(lambdas, search)
    if n_lambdas is not None and any(LAMBDA in values for values in tried):
        raise InputError("n_lambdas beside lambdas, expected one of the two")
    options = {"tolerance": tolerance, "absolute_tolerance": absolute_tolerance, "max_iterations": max_iterations}
    given = solver_of(solver, {**options, "time_limit": time_limit}, seed, solver_options)
    divided = AskedFolds(folds, split, repeats, seed or 0)
    held_out = calibration_of(calibrate)
    wanted = Wanted(divided, measures, measure, choose, refit, confidence, each_label, n_lambdas, held_out)
    plain = rows_of(X, y, sample_weight, offset, groups, Coding.checked(categorical, text, missing, drop_first, rare))
    if loss is None:
        loss = "hinge" if (classes, labels) != (TOGETHER, TOGETHER) else default_loss(plain)[0]
    made: Any = LOSSES.instance(loss)
    refuse_unlabelled(plain, made)
    problem = Problem(
        loss=loss_of_columns(made, classes, labels, plain, Alone()),
        regularizer=regularizer_of(plain, regularizer, lam)[0],
        solver=given,
        bias=default_bias(made) if bias is None else bias,
        scale=scale,
        positive_label=positive_label,
        class_weight=checked(class_weight),
        threads=threads,
    )
    problem = replace(problem, shares=are_shares(plain, problem.loss))
    say_alone("`bmrm.cross_validate`")
    found = cross_validated(
        SCALINGS[scale].rows(plain),
        problem,
        tried,
        wanted,
        Alone(),
        features=mapping,
        watch=lambda model_of: nullcontext(callback),
        told=progress,
    )
    assert found is not None
    return found


def tried_values(lambdas: Any, search: Any) -> list[Values]:
    """The candidates of the arguments `lambdas` and `search`; [] where neither is given.

    Raises
    ------
    InputError
        For no values, lambdas that are not above 0, unknown fields, and lambdas that are given twice.
    """
    fields: dict[str, Any] = {}
    if search is not None:
        fields = checked_fields(search)
    if lambdas is not None:
        if LAMBDA in fields:
            raise InputError("lambdas and regularizer.lambda of search are the same setting, expected one of them")
        if isinstance(lambdas, (str, bytes)) or np.ndim(lambdas) != 1:
            raise InputError(f"lambdas is {shown(lambdas)}, expected a list of numbers > 0")
        if not len(lambdas):
            raise InputError("lambdas is empty, expected at least one number > 0")
        limits = Range(above=0.0, below=float("inf"))
        fields[LAMBDA] = [checked_value("lambdas", one, (float,), limits) for one in lambdas]
    return list(grid(fields)) if fields else []
