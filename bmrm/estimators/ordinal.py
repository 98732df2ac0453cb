"""Classification into ordered grades."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from bmrm.estimators.base import LinearEstimator, present
from bmrm.problem import InputError, LossFacts


class OrdinalClassifier(ClassifierMixin, LinearEstimator):
    """Ordinal regression: one direction, and cut points between neighbouring grades.

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance, for grades. Default `ordinal_thresholds`; its option `cuts`
        says whether a row pays for all cut points on whose wrong side it lies, or for its two neighbours only.
    alpha, l1_ratio, regularizer, tol, max_iter, time_limit, solver, warm_start, threads, random_state, verbose : as of
        `Classifier`. The cut points are not regularized, so there is no intercept.

    Attributes
    ----------
    coef_ : (1, features).
    cut_points_ : (classes - 1,) ascending.
    classes_ : (classes,) the grades, sorted; text in the order of the alphabet.
    model_, solution_, n_iter_, dual_gap_, lower_bound_, n_features_in_, feature_names_in_ : as of every estimator here.
    """

    tasks: ClassVar[tuple[str, ...]] = ("ordinal",)

    def __init__(
        self,
        loss: Any = "ordinal_thresholds",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.0,
        regularizer: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        solver: Any = "auto",
        warm_start: bool = False,
        threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.regularizer = regularizer
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.solver = solver
        self.warm_start = warm_start
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OrdinalClassifier:
        """Train.

        Parameters
        ----------
        X : (rows, features) array, sparse matrix or data frame; float32 stays float32.
        y : (rows,) grades: numbers or text, whose sort order is the order of the grades.
        sample_weight : (rows,), >= 0; None for 1 each.

        Raises
        ------
        InputError
            Wrong parameters; fewer than two grades.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        X, y = self._training_rows(X, y)
        check_classification_targets(y)
        grades = np.unique(present(y, sample_weight))
        if len(grades) < 2:
            raise InputError(f"{self._title}: y has one class, expected two grades or more")
        numbers = y if y.dtype.kind in "iuf" else np.searchsorted(grades, y)
        model = self._train(self._dataset(X, numbers, sample_weight), self._prepared_loss(), free=False)
        self.classes_ = grades
        self.coef_ = model.weights[None]
        self.cut_points_ = np.sort(model.arrays["cut_points"])
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Of two grades the score minus the cut point, (rows,); of more, (rows, classes), largest where predicted.

        With more, column k is the sum over the first k cut points of (score - cut point).
        """
        beyond = self._scores(X)[:, None] - self.cut_points_
        if beyond.shape[1] == 1:
            return beyond[:, 0]
        return np.hstack((np.zeros((len(beyond), 1)), np.cumsum(beyond, axis=1)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Grades, (rows,): the lowest and as many more as there are cut points below the score."""
        scores = self._scores(X)
        grades: NDArray[Any] = self.classes_[np.searchsorted(self.cut_points_, scores, side="left")]
        return grades

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the classes of scikit-learn's checks have no order
        return tags

    def _fits(self, facts: LossFacts) -> bool:
        return super()._fits(facts) and not facts.only_ranks
