"""Classification into ordered grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from bmrm.data.dataset import check_weights, near_one, plain_labels
from bmrm.data.frames import categories_of
from bmrm.estimators.base import LinearEstimator, estimator, places_in
from bmrm.problem import InputError, LossFacts, shown

if TYPE_CHECKING:
    from bmrm.problem import Loss

FEW = 20
"""Most different fractions that always count as grades; of more each must occur twice on average."""


@estimator
class OrdinalClassifier(ClassifierMixin, LinearEstimator):
    """Ordinal regression: one direction, and cut points between neighbouring grades.

    The cut points are not regularized, so there is no intercept.

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance, for grades. Default `ordinal_thresholds`; its option `cuts`
        says whether a row pays for all cut points on whose wrong side it lies, or for its two neighbours only.
    classes : the grades from the lowest to the highest, needed where they are text in no order of its own; None takes
        the order of numbers, of ordered categories of pandas or of an Enum of polars.

    Attributes
    ----------
    coef_ : (1, features).
    cut_points_ : (classes - 1,) ascending.
    classes_ : (classes,) the grades of the rows, from the lowest to the highest.
    """

    tasks: ClassVar[tuple[str, ...]] = ("ordinal",)

    loss: str | Mapping[str, Any] | Loss = field(default="ordinal_thresholds", kw_only=False)
    classes: Sequence[Any] | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OrdinalClassifier:
        """Train.

        Parameters
        ----------
        y : (rows,) grades: numbers, ordered categories, or anything of which `classes` says the order.

        Raises
        ------
        InputError
            Wrong parameters; fewer than two grades; text without an order; a grade that is not among `classes`.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        order = categories_of(y) if self.classes is None else self._stated_order()
        X, y = self._training_rows(X, y)
        grades, numbers = self._graded(y, None if order is None else plain_labels(list(order)))
        if len(grades) < 2:
            raise InputError(f"{self._title}: y has one class, expected two grades or more")
        data = self._dataset(X, numbers, sample_weight, classes=np.unique(numbers))
        model = self._train(data, self._prepared_loss(), free=False)
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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows with the right grade, by weight.

        Parameters
        ----------
        y : (rows,) the grades that are right.
        """
        right = self.predict(X) == np.ravel(plain_labels(y))
        weights = None if sample_weight is None else near_one(check_weights(sample_weight, len(right)))
        return float(np.average(right, weights=weights))

    def _stated_order(self) -> list[Any]:
        """The parameter `classes` as a list; InputError for what has no order, or is none of grades."""
        listed = self.classes
        if isinstance(listed, np.ndarray) and listed.ndim != 1:
            listed = None
        if isinstance(listed, (str, bytes, set, frozenset)) or not isinstance(listed, Iterable) or not list(listed):
            why = ", which has no order" if isinstance(self.classes, (set, frozenset)) else ""
            raise InputError(
                f"{self._title}: classes is {shown(self.classes)}{why}, expected a list from the lowest grade to the "
                "highest"
            )
        return list(listed)

    def _graded(self, y: NDArray[Any], order: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """The grades of the rows from the lowest to the highest, and numbers for them, (rows,), in that order."""
        if order is not None:
            if len(np.unique(order)) < len(order):
                raise InputError(f"{self._title}: classes are {shown(order.tolist())}, expected each grade once")
            there, numbers = np.unique(places_in(y, order), return_inverse=True)
            return order[there], numbers
        if y.dtype.kind in "US":
            raise InputError(
                f"{self._title}: the grades are text ({shown(y[0].item())}), whose order is not known; expected "
                "classes=[...] from the lowest to the highest, ordered categories of pandas or an Enum of polars, or "
                "numbers"
            )
        grades, numbers = np.unique(y, return_inverse=True)
        if y.dtype.kind == "f" and len(grades) > max(FEW, len(y) // 2) and np.any(grades % 1.0):
            raise InputError(
                f"{self._title}: Unknown label type: continuous, y has {len(grades)} different numbers in {len(y)} "
                "rows, expected grades"
            )
        return grades, y if y.dtype.kind in "iuf" else numbers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the classes of scikit-learn's checks have no order
        return tags

    def _fits(self, facts: LossFacts) -> bool:
        return super()._fits(facts) and not facts.only_ranks
