"""Classification with one label a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from bmrm.data.dataset import check_weights, near_one
from bmrm.estimators.base import LinearEstimator, estimator, present
from bmrm.losses import LOSSES
from bmrm.problem import BmrmError, InputError, facts_of, provides, shown
from bmrm.problem.loss import HasClassScores, HasProbabilities
from bmrm.registry import Range, checked_value

if TYPE_CHECKING:
    from bmrm.problem import Loss


def has_probabilities(self: Any) -> bool:
    """Whether `predict_proba` is there; raises AttributeError where the loss has no probabilities."""
    try:
        loss = self.model_.loss if hasattr(self, "model_") else LOSSES.instance(self.loss)
    except BmrmError as error:
        raise AttributeError(str(error)) from error
    if not provides(loss, HasProbabilities):
        raise AttributeError(f"loss {facts_of(loss).title} has no probabilities; logistic, softmax and chain_crf have")
    return True


@estimator
class Classifier(ClassifierMixin, LinearEstimator):
    """Linear classification, two classes or more, by any convex loss.

    Minimises Omega(w) + R(w), R the mean loss by weight, with a lower bound of the minimum.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for two classes or more. With more than
        two, `hinge` becomes `multiclass_hinge` and `logistic` becomes `softmax`; for classes that are nodes of a tree,
        `{"name": "ontology_hinge", "edges": [("cat", "animal"), ...]}`. Default `hinge`.
    class_weight : factor of the weights of each class: a dict by label, "balanced" (all classes then weigh the same,
        with the weights of their rows), or None for 1. Default None.

    Attributes
    ----------
    coef_ : (1, features) for two classes, else (classes, features).
    intercept_ : (1,) or (classes,).
    classes_ : (classes,) the labels, sorted, of a tree its candidates. Of two the last is positive.
    """

    tasks: ClassVar[tuple[str, ...]] = ("binary", "multiclass", "ontology")

    loss: str | Mapping[str, Any] | Loss = field(default="hinge", kw_only=False)
    fit_intercept: bool = True
    class_weight: Mapping[Any, float] | str | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Train.

        Parameters
        ----------
        y : (rows,) labels.

        Raises
        ------
        InputError
            Wrong parameters; fewer than two classes; more than two with a loss for two.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        X, y = self._training_rows(X, y)
        check_classification_targets(y)
        weights = self._weights(y, sample_weight)
        loss, classes = self._fitting_loss(y, weights)
        model = self._train(self._dataset(X, y, weights, classes=classes), loss, self.fit_intercept)
        self.classes_, table, intercept = model.labels, model.weights, model.intercept
        if provides(model.loss, HasClassScores):
            self.classes_ = np.array(model.loss.class_labels(list(model.labels)))
            table, intercept = model.loss.class_scores(table), model.loss.class_scores(intercept[None])[0]
        if table.ndim == 2 and table.shape[1] == 2:
            table, intercept = table[:, 1] - table[:, 0], intercept[1:] - intercept[:1]
        self.coef_ = np.atleast_2d(table.T)
        self.intercept_ = intercept
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: (rows,), above 0 for the second class, or (rows, classes), largest for the predicted one."""
        scores, loss = self._scores(X), self.model_.loss
        if provides(loss, HasClassScores):
            scores = loss.class_scores(scores)
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, (rows,)."""
        scores = self._scores(X)
        labels: NDArray[Any] = self.model_.predict_scores(scores)
        return labels

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (rows, classes), where the loss gives them."""
        scores = self._scores(X)
        probabilities: NDArray[np.float64] = self.model_.probabilities_of_scores(scores)
        return probabilities

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the probabilities of the classes, (rows, classes)."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X))
        return logarithms

    def _weights(self, y: NDArray[Any], sample_weight: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        own = np.ones(len(y)) if sample_weight is None else near_one(check_weights(sample_weight, len(y)))
        classes, place = np.unique(y, return_inverse=True)
        if isinstance(self.class_weight, Mapping):
            return own * self._factors(self.class_weight, classes)[place]
        if not isinstance(self.class_weight, str) or self.class_weight != "balanced":
            raise InputError(
                f"{self._title}: class_weight is {shown(self.class_weight)}, expected a dict of factors by label, "
                "'balanced' or None"
            )
        masses = np.bincount(place, own, len(classes))
        there = masses > 0.0
        return own * (masses.sum() / (np.count_nonzero(there) * np.where(there, masses, 1.0)))[place]

    def _factors(self, factors: Mapping[Any, Any], classes: NDArray[Any]) -> NDArray[np.float64]:
        """The factor of each class, 1 where none is given; InputError for wrong factors and labels perhaps misspelt.

        A label that no row has is none where all others have a factor: a part of the rows may lack it.
        """
        known = classes.tolist()
        strange = next((label for label in factors if label not in known), None)
        if strange is not None and any(label not in factors for label in known):
            raise InputError(
                f"{self._title}: class_weight has the label {shown(strange)}, which y has not; its labels are "
                f"{shown(known)}"
            )
        name = f"{self._title}: class_weight of "
        limits = Range(least=0.0, below=math.inf)
        found = {label: checked_value(name + shown(label), one, (float,), limits) for label, one in factors.items()}
        return np.array([found.get(label, 1.0) for label in known], np.float64)

    def _fitting_loss(self, y: NDArray[Any], weights: Any) -> tuple[Any, NDArray[Any] | None]:
        """The loss, or the one that takes its place, and the classes, of which rows of weight 0 may be all."""
        loss = self._prepared_loss()
        facts, classes, there = facts_of(loss), np.unique(y), len(np.unique(present(y, weights)))
        if facts.task != "binary":
            return loss, classes
        if len(classes) <= 2:
            free = self.fit_intercept and not facts.no_free_intercept
            if there == 1 < len(classes) and free:  # any intercept that is large enough has the least loss
                loss = LOSSES.make("softmax" if provides(loss, HasProbabilities) else "multiclass_hinge")
            return loss, classes
        if facts.multiclass:
            return LOSSES.make(facts.multiclass), classes
        if there <= 2:
            return loss, None
        raise InputError(
            f"{self._title}: loss {facts.title}: Only binary classification is supported, y has {there} classes; "
            "expected a loss such as multiclass_hinge or softmax, or OneVsRestClassifier around this one"
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        facts = self._loss_facts()
        tags.classifier_tags.multi_class = facts.task != "binary" or bool(facts.multiclass)
        return tags
