"""Ranking of rows within queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from bmrm.data.dataset import plain_labels
from bmrm.data.frames import categories_of
from bmrm.estimators.base import LinearEstimator, estimator, places_in
from bmrm.problem import InputError, LossFacts, facts_of

if TYPE_CHECKING:
    from bmrm.problem import Loss


@estimator
class Ranker(LinearEstimator):
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
