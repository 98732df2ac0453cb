"""Estimators that choose alpha by cross-validation, as scikit-learn's `...CV` do; each training has its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.estimators.base import estimator
from bmrm.estimators.classifier import Classifier
from bmrm.estimators.regressor import Regressor
from bmrm.problem import IncompatibleError, InputError, facts_of, shown

if TYPE_CHECKING:
    from bmrm.app.model import Model
    from bmrm.app.path import Path
    from bmrm.estimators.base import LinearEstimator as _Estimator
    from bmrm.search.cross_validation import CrossValidation
else:
    _Estimator = object  # fields of a base would come before those of the estimator that this is mixed into


PARAMETERS_CV = {
    "alphas": "values of alpha to choose from, or how many of them, from the least with weights of 0 down, the grid of "
    "`bmrm.path`; None for alpha alone, which is then only measured. Default 20.",
    "cv": "folds: how many (of classes stratified), a splitter of scikit-learn, the fold of each row, or pairs of "
    "arrays. Default 5.",
    "measure": "name of the measure that chooses (see `bmrm measures`); None for the first of the loss, such as "
    "accuracy or r2. Default None.",
    "choose": "`best`, or `one_standard_error` for the largest alpha whose mean is within one standard error of the "
    "best. Default `best`.",
}
"""Descriptions of the parameters that both estimators have."""
ATTRIBUTES_CV = {
    "alpha_": "the chosen one; also `lambda_`.",
    "alphas_": "(alphas,) those that were tried; also `lambdas_`.",
    "scores_": "(alphas, folds) the measure on the rows that each fold holds out.",
    "best_score_": "its mean over the folds, of the chosen alpha.",
    "measure_": "its name.",
    "cv_results_": "arrays by name, of a number for each alpha: mean, half-width of the t interval, pooled measure.",
    "cross_validation_": "the `bmrm.CrossValidation`: all measures, held-out scores, curves.",
}
"""Descriptions of their attributes."""


@dataclass(repr=False, eq=False, kw_only=True)
class CrossValidated(_Estimator):
    """What makes an estimator's model the one that a cross-validation has chosen, trained on all rows."""

    alphas: int | Sequence[float] | NDArray[np.float64] | None = 20
    cv: int | NDArray[Any] | Sequence[Any] | object = 5
    measure: str | None = None
    choose: Literal["best", "one_standard_error"] = "best"
    more_parameters: ClassVar[Mapping[str, str]] = PARAMETERS_CV
    more_attributes: ClassVar[Mapping[str, str]] = ATTRIBUTES_CV

    def _train(self, data: Dataset, loss: Any, free: bool, **more: Any) -> Model:
        """As of `LinearEstimator`, by `bmrm.cross_validate`."""
        self._check_ranges()
        from bmrm.search.cross_validation import cross_validate  # loads numba

        if self.warm_start:
            raise InputError(f"{self._title}: warm_start is True, but paths begin at the largest alpha; leave it out")
        bias: Literal["free", "none"] = "free" if free and not facts_of(loss).no_free_intercept else "none"
        solver, seed = self._solver(), None
        if isinstance(solver, Mapping):
            solver = dict(solver)
            seed = solver.pop("seed", self.random_state if isinstance(self.random_state, int) else None)
        try:
            found = cross_validate(
                data,
                loss=loss,
                **self._candidates(),
                folds=self.cv,
                measures=None if self.measure is None else [self.measure],
                choose=self.choose,
                solver=solver,
                seed=seed,
                bias=bias,
                threads=self._value("threads"),
                callback=self._printed(),
                features=self.features,
                **more,
            )
        except IncompatibleError as error:
            hint = "; or try fit_intercept=False" if bias == "free" else ""
            raise IncompatibleError(f"{self._title}: {error}{hint}") from error
        model = found.model
        assert model is not None
        self._judge(model.solution)
        self._keep(model)
        self._found(found)
        return model

    def _candidates(self) -> dict[str, Any]:
        """The arguments of `bmrm.cross_validate` about the regularizer and its lambdas."""
        given = self.alphas
        if given is not None and self.regularizer is None and not self._is_default("alpha"):
            raise InputError(
                f"{self._title}: alpha is {shown(self.alpha)} beside alphas, expected one of the two (alphas=None)"
            )
        regularizer, lam = self._omega()
        found: dict[str, Any] = {"regularizer": regularizer, "lam": lam}
        if given is None:
            return found
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            return found | {"n_lambdas": int(given)}
        return found | {"lambdas": given}

    def _found(self, found: CrossValidation) -> None:
        self.cross_validation_ = found
        self.alpha_ = self.lambda_ = found.lam
        self.alphas_ = self.lambdas_ = np.array([trial.lam for trial in found.trials])
        values = [trial.by_fold[found.measure] for trial in found.trials]
        self.scores_: NDArray[np.float64] = np.array(values, np.float64)
        self.best_score_ = float(np.mean(self.scores_[found.chosen]))
        self.measure_ = found.measure
        table = found.table()
        self.cv_results_ = {name: np.array([line[name] for line in table]) for name in table[0]}


@estimator
class ClassifierCV(CrossValidated, Classifier):
    """`Classifier` whose alpha is chosen by cross-validation; it is then trained on all rows.

    `calibrate` takes the held-out scores of the chosen alpha, at no more cost.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for two classes or more. Default
        `hinge`.
    calibrate : `sigmoid` or `isotonic`, for `predict_proba` of losses without probabilities. Default None.
    class_weight : factor of the weights of each class in training: a dict by label, "balanced" or None for 1. Measures
        do not count it. Default None.
    classes : "one_vs_rest": a loss of two classes for each class against all others; "together". Default "together".

    Attributes
    ----------
    coef_ : (1, features) for two classes, else (classes, features).
    intercept_ : (1,) or (classes,).
    classes_ : (classes,) the labels, sorted.
    """

    def _weights(self, y: NDArray[Any], sample_weight: Any) -> Any:
        return sample_weight

    def _train(self, data: Dataset, loss: Any, free: bool, **more: Any) -> Model:
        return super()._train(data, loss, free, **{"class_weight": self.class_weight, **more})

    def _walked(self, data: Dataset, loss: Any, **more: Any) -> Path:
        return super()._walked(data, loss, **{"class_weight": self.class_weight, **more})


@estimator
class RegressorCV(CrossValidated, Regressor):
    """`Regressor` whose alpha is chosen by cross-validation; it is then trained on all rows.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for numbers. Default `least_squares`,
        1/2 (f - y)^2.

    Attributes
    ----------
    coef_ : (features,), or (targets, features).
    intercept_ : a number, or (targets,).
    """
