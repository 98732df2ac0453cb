"""Regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from bmrm.estimators.base import LinearEstimator, estimator
from bmrm.problem import facts_of

if TYPE_CHECKING:
    from bmrm.problem import Loss


@estimator
class Regressor(RegressorMixin, LinearEstimator):
    """Linear regression by any convex loss: least squares, quantiles, Huber's, Poisson and others.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for numbers; for several targets a row
        `multivariate_least_squares`. Default `least_squares`, 1/2 (f - y)^2.
    alpha : lambda > 0 of alpha ((1 - l1_ratio)/2 ||w||^2 + l1_ratio ||w||_1), as in `ElasticNet`; 1/m of that
        of `Ridge`, and that of `Lasso`, for m rows. Default 1e-4.

    Attributes
    ----------
    coef_ : (features,), or (targets, features).
    intercept_ : a number, or (targets,).
    """

    tasks: ClassVar[tuple[str, ...]] = ("regression", "multivariate")

    loss: str | Mapping[str, Any] | Loss = field(default="least_squares", kw_only=False)
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Regressor:
        """Train.

        Parameters
        ----------
        y : (rows,) numbers, or (rows, targets) for a loss of several.

        Raises
        ------
        InputError
            Wrong parameters, or targets that the loss does not take.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        loss = self._prepared_loss()
        several = facts_of(loss).task == "multivariate"
        X, y = self._training_rows(X, y, y_numeric=True, multi_output=several)
        model = self._train(self._dataset(X, y, sample_weight), loss, self.fit_intercept)
        self._table = y.ndim == 2
        self.coef_ = np.atleast_2d(model.weights.T) if self._table else model.weights.reshape(-1)
        self.intercept_ = model.intercept if self._table else float(model.intercept[0])
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Numbers, (rows,) or (rows, targets): the scores, or their exponentials for losses with a logarithmic link."""
        scores = self._scores(X)
        predicted: NDArray[np.float64] = self.model_.predict_scores(scores)
        return predicted.reshape(len(predicted), -1) if self._table else predicted.reshape(-1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        facts = self._loss_facts()
        tags.target_tags.multi_output = facts.task == "multivariate"
        tags.target_tags.positive_only = bool(facts.targets_from)
        return tags
