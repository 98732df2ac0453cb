"""Detection of novel rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from bmrm.estimators.base import LinearEstimator, estimator

if TYPE_CHECKING:
    from bmrm.problem import Loss


@estimator
class NoveltyDetector(OutlierMixin, LinearEstimator):
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
