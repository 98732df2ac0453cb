"""Classification with several labels a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from bmrm.data.label_types import stored
from bmrm.data.labels import LabelSets, in_form
from bmrm.estimators.base import LinearEstimator, estimator
from bmrm.problem import InputError

if TYPE_CHECKING:
    from bmrm.problem import Loss


@estimator
class MultilabelClassifier(ClassifierMixin, LinearEstimator):
    """Linear multi-label classification: a row's labels are to outscore the others; a threshold says how many it has.

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance, for sets of labels. Default `multilabel_hinge`.

    Attributes
    ----------
    coef_, intercept_ : (labels, features), (labels,), with the threshold in them: a row has the labels whose
        `X coef_' + intercept_` is above 0. Where `y` has one label a row, (1, features) and (1,) for two labels.
    classes_ : (labels,) the columns of `y`, or the labels where it has one a row.
    """

    tasks: ClassVar[tuple[str, ...]] = ("multilabel",)

    loss: str | Mapping[str, Any] | Loss = field(default="multilabel_hinge", kw_only=False)
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultilabelClassifier:
        """Train.

        Parameters
        ----------
        y : (rows, labels) of 0 and 1, dense or sparse (`MultiLabelBinarizer` makes it of sets); or (rows,) with one
            label each, of which the best one is then predicted.

        Raises
        ------
        InputError
            Wrong parameters; fewer than two labels.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        X, y = self._training_rows(X, y, multi_output=True)
        check_classification_targets(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = np.ravel(y.toarray() if issparse(y) else y)
        self._one_each = y.ndim == 1
        if self._one_each:
            labels, dtype = stored(y)
            known = np.unique(labels)
            if len(known) < 2:
                raise InputError(f"{self._title}: y has one class, expected two labels or more")
            y = replace(LabelSets.from_ends(np.arange(len(y) + 1), labels, dtype), known=known)
        model = self._train(self._dataset(X, y, sample_weight), self._prepared_loss(), self.fit_intercept)
        self.classes_ = model.labels
        self.coef_ = np.atleast_2d(self._against_threshold(model.weights).T)
        self.intercept_ = self._against_threshold(model.intercept[None]).reshape(-1) - self._constant
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores minus the threshold of the row, (rows, labels), above 0 for its labels.

        Where `y` had one label a row, (rows,), above 0 for the second of two labels, or (rows, labels), largest for the
        predicted one.
        """
        return self._against_threshold(self._scores(X)) - self._constant

    def predict(self, X: Any) -> Any:
        """Labels in the form of `y`: (rows, labels) of 0 and 1, dense or sparse, or (rows,)."""
        decision = self.decision_function(X)
        if self._one_each:
            best = decision > 0.0 if decision.ndim == 1 else decision.argmax(axis=1)
            return self.classes_[best.astype(np.intp)]
        return in_form(decision > 0.0, self.classes_, **self.model_.header["sets"])

    @property
    def _constant(self) -> float:
        """Of the threshold."""
        return 0.0 if self._one_each else float(self.model_.arrays["threshold"][-1])

    def _against_threshold(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows, labels) minus what of the threshold is linear in them; (rows,) for one of two labels a row."""
        if self._one_each:
            return f[:, 1] - f[:, 0] if f.shape[1] == 2 else f
        slope = self.model_.arrays["threshold"][:-1]
        return f - (f @ slope)[:, None] if slope.size else f

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags
