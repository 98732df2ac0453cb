"""Estimators that answer with a number for each row: regression, ranking within queries, detection of novel rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from bmrm.data.dataset import Dataset, plain_labels
from bmrm.data.frames import categories_of
from bmrm.estimators.base import estimator, places_in
from bmrm.estimators.paths import PathEstimator
from bmrm.estimators.rows import RowEstimator, given_in_chunks
from bmrm.problem import InputError, Loss, LossFacts, facts_of

if TYPE_CHECKING:
    from typing_extensions import Self

TIMES = "datetime64", "timedelta64"
"""How the names of types begin that are stored as numbers and are none."""


@estimator
class Regressor(RegressorMixin, PathEstimator):
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : (rows, features) array, sparse matrix or data frame of finite numbers; float32 stays float32. Or chunks as
            `bmrm.fit` takes them, such as a list of `(X, y)`.
        y : (rows,) numbers, or (rows, targets), each with a regression of its own but for `multivariate_least_squares`.
            None beside chunks, which bring their own; of record batches the name of a column, as are the others.

        Raises
        ------
        InputError
            Wrong parameters, or targets that the loss does not take.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        data, loss, more = self._prepared(X, y, sample_weight, offset)
        model, y = self._train(data, loss, self.fit_intercept, **more), data.targets.y
        self._table = y.ndim == 2 and (y.shape[1] > 1 or facts_of(loss).task == "multivariate")
        self.coef_ = np.atleast_2d(model.weights.T) if self._table else model.weights.reshape(-1)
        self.intercept_ = model.intercept if self._table else float(model.intercept[0])
        return self

    def _prepared(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Dataset, Any, dict[str, Any]]:
        """As of `PathEstimator`."""
        loss = self._prepared_loss()
        if given_in_chunks(X):
            data = self._rows_of_chunks(X, y, sample_weight, offset)
            found, kind = data.targets.y, data.targets.dtype
            if not isinstance(found, np.ndarray) or found.dtype.kind == "U" or kind.startswith(TIMES):
                raise InputError(f"{self._title}: y holds {kind or 'labels'}, expected numbers")
            return data, loss, {}
        X, y = self._training_rows(X, y, y_numeric=True, multi_output=True)
        return self._dataset(X, y, sample_weight, offset=offset), loss, {}

    def predict(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Numbers, (rows,) or (rows, targets): the scores, or their exponentials for losses with a logarithmic link."""
        scores = self._scores(X, offset)
        predicted: NDArray[np.float64] = self.model_.predict_scores(scores)
        return predicted.reshape(len(predicted), -1) if self._table else predicted.reshape(-1)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """R2, by weight; of several targets the mean.

        Parameters
        ----------
        y : (rows,) numbers, or (rows, targets).
        """
        return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        facts = self._loss_facts()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = bool(facts.targets_from)
        return tags


@estimator
class Ranker(RowEstimator):
    """Linear ranking: rows of a higher grade are to score higher than others of their query.

    `groups` says the query of each row; it is needed for `fit` and `score`, not for `predict`. There is no intercept:
    it would shift all scores of a query alike.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for rankings; `ordinal` ranks all rows
        together and takes no groups. Default `rank_hinge`, the ranking support vector machine.

    Attributes
    ----------
    coef_ : (features,).
    """

    tasks: ClassVar[tuple[str, ...]] = ("ranking", "ordinal")

    loss: str | Mapping[str, Any] | Loss = field(default="rank_hinge", kw_only=False)

    if TYPE_CHECKING:  # made by scikit-learn, whose types say None

        def set_fit_request(
            self, *, groups: bool | str | None = None, sample_weight: bool | str | None = None
        ) -> Ranker: ...

        def set_score_request(
            self, *, groups: bool | str | None = None, sample_weight: bool | str | None = None
        ) -> Ranker: ...

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Ranker:
        """Train.

        Parameters
        ----------
        y : (rows,) grades: numbers, the higher the better, or ordered categories.
        groups : (rows,) the query of each row, integers or text, in any order.
        sample_weight : (rows,), >= 0, where the loss gives weights a meaning; None for 1 each.

        Raises
        ------
        InputError
            Wrong parameters; no groups where the loss needs them; no query with rows of different grades.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        loss = self._prepared_loss()
        if groups is not None and facts_of(loss).decomposes != "groups":
            raise InputError(f"{self._title}: loss {facts_of(loss).title} ranks all rows together, expected no groups")
        X, y = self._training_rows(X, _numbers(y), y_numeric=True)
        self.coef_ = self._train(self._dataset(X, y, sample_weight, groups), loss, free=False).weights
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores, (rows,): the higher, the earlier in the ranking of the row's query."""
        return self._scores(X)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG over the queries with a grade above 0; all rows are one query without `groups`.

        Weights are whole numbers, of copies.

        Parameters
        ----------
        y : (rows,) grades: numbers, the higher the better, or ordered categories.
        groups : (rows,) the query of each row, integers or text, in any order; None for one query.

        Raises
        ------
        InputError
            Where it is not defined: grades below 0, or none above 0.
        """
        scores = self._scores(X)
        queries = np.zeros(len(scores), np.int64) if groups is None else groups
        given = {"sample_weight": sample_weight, "groups": queries}
        found = self.model_.evaluate_scores(scores, _numbers(y), metrics=["ndcg"], **given)["ndcg"]
        if found is None:
            raise InputError(f"{self._title}: NDCG is not defined here, expected grades >= 0, above 0 in some query")
        return found

    def _fits(self, facts: LossFacts) -> bool:
        return super()._fits(facts) and facts.only_ranks

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _numbers(y: Any) -> Any:
    """Grades as numbers: of ordered categories their places."""
    order = categories_of(y)
    return y if order is None else places_in(plain_labels(y).ravel(), plain_labels(order))


@estimator
class NoveltyDetector(OutlierMixin, RowEstimator):
    """One-class support vector machine, linear: normal rows score at least rho, novel ones less.

    The origin must be separable from the rows (features >= 0, rows of norm 1), which every linear one needs: else all
    weights are 0 and all rows are novel. There is no intercept: it could reach rho alone.

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance. Default `novelty`, whose option `rho` (1) sets the scale.
    alpha : lambda > 0 of alpha ((1 - l1_ratio)/2 ||w||^2 + l1_ratio ||w||_1); a larger one calls more rows
        novel. Default 1e-4.

    Attributes
    ----------
    coef_ : (1, features).
    offset_ : rho; `decision_function` is `score_samples` minus this.
    """

    tasks: ClassVar[tuple[str, ...]] = ("novelty",)

    loss: str | Mapping[str, Any] | Loss = field(default="novelty", kw_only=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> NoveltyDetector:
        """Train.

        Parameters
        ----------
        X : (rows, features) array, sparse matrix or data frame of normal rows; float32 stays float32.
        y : not looked at; there for pipelines.

        Raises
        ------
        InputError
            Wrong parameters.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        loss = self._prepared_loss()
        X = self._training_rows(X)
        self.coef_ = self._train(self._dataset(X, weights=sample_weight), loss, free=False).weights[None]
        self.offset_ = float(loss.rho)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Scores, (rows,): the lower, the more novel."""
        return self._scores(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores minus `offset_`, (rows,): below 0 for novel rows."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for novel rows, 1 for the others; (rows,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
