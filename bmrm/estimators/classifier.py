"""Classification: one label a row, several, or ordered grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from bmrm.data.class_weights import checked, factors
from bmrm.data.dataset import Dataset, check_weights, near_one, plain_labels
from bmrm.data.frames import categories_of
from bmrm.data.label_types import stored
from bmrm.data.labels import LabelSets, in_form
from bmrm.estimators.base import estimator, has_probabilities, places_in, present
from bmrm.estimators.paths import PathEstimator
from bmrm.estimators.rows import RowEstimator, given_in_chunks
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Loss, LossFacts, facts_of, provides, shown
from bmrm.problem.loss import HasClassScores, HasProbabilities

if TYPE_CHECKING:
    from typing_extensions import Self

    from bmrm.app.model import Model

TINY = float(np.finfo(np.float64).tiny)
FEW = 20
"""Most different fractions that always count as grades; of more each must occur twice on average."""


@estimator
class Classifier(ClassifierMixin, PathEstimator):
    """Linear classification, two classes or more, by any convex loss.

    Minimises Omega(w) + R(w), R the mean loss by weight, with a lower bound of the minimum.

    Parameters
    ----------
    loss : name (see `bmrm losses`), `{"name": ..., option: value}` or instance, for two classes or more. With more than
        two, `hinge` becomes `multiclass_hinge` and `logistic` becomes `softmax`; for classes that are nodes of a tree,
        `{"name": "ontology_hinge", "edges": [("cat", "animal"), ...]}`. Default `hinge`.
    classes : "one_vs_rest": a loss of two classes for each class against all others, so that `hinge` stays `hinge`;
        "together". Default "together".
    class_weight : factor of the weights of each class: a dict by label, "balanced" (all classes then weigh the same,
        with the weights of their rows), or None for 1. Default None.
    calibrate : method that makes `predict_proba` of the scores of rows left out in turn, `sigmoid` or `isotonic`, or
        `{"method": ..., "folds": 5}`; labels stay those of the scores. None for the probabilities of the loss, if it
        has some. Default None.

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
    calibrate: str | Mapping[str, Any] | None = None
    classes: Literal["together", "one_vs_rest"] = "together"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : (rows, features) array, sparse matrix or data frame of finite numbers; float32 stays float32. Or chunks as
            `bmrm.fit` takes them, such as a list of `(X, y)`.
        y : (rows,) labels. For `logistic` also (rows, 2) successes and trials, for `softmax` (rows, classes) a share of
            each class; labels are then the numbers from 0. None beside chunks, which bring their own; of record batches
            the name of a column, as are the others.

        Raises
        ------
        InputError
            Wrong parameters; fewer than two classes; more than two with a loss for two; shares that are none.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        data, loss, more = self._prepared(X, y, sample_weight, offset)
        more |= {"calibrate": self.calibrate} | ({} if more else {"classes": self.classes})
        return self._taken(self._train(data, loss, self.fit_intercept, **more))

    def _prepared(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Dataset, Any, dict[str, Any]]:
        """The rows, the loss that fits them, and what the weights of classes are where rows have shares of them."""
        if given_in_chunks(X):
            return self._of_chunks(self._rows_of_chunks(X, y, sample_weight, offset))
        if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1 and self._loss_facts().takes_shares:
            X, y = self._training_rows(X, y, multi_output=True, y_numeric=True)
            data, loss = self._dataset(X, y, sample_weight, offset=offset), self._prepared_loss()
            return data, loss, {"class_weight": self.class_weight}
        X, y = self._training_rows(X, y)
        check_classification_targets(y)
        weights = self._weights(y, sample_weight)
        loss, classes = self._fitting_loss(y, weights)
        return self._dataset(X, y, weights, classes=classes, offset=offset), loss, {}

    def _of_chunks(self, data: Dataset) -> tuple[Dataset, Any, dict[str, Any]]:
        """As `_prepared`, of rows that are there."""
        targets = data.targets
        table = not isinstance(targets.y, np.ndarray) or targets.y.ndim == 2
        if table and self._loss_facts().takes_shares:
            return data, self._prepared_loss(), {"class_weight": self.class_weight}
        if table:
            raise InputError(f"{self._title}: y should be a 1d array, chunks have several columns or labels a row")
        check_classification_targets(targets.y)
        weights = self._weights(targets.y, targets.weights)
        loss, classes = self._fitting_loss(targets.y, weights)
        known = () if classes is None else tuple(classes.tolist())
        return replace(data, targets=replace(targets, weights=weights, classes=known)), loss, {}

    def _taken(self, model: Model) -> Classifier:
        """This one, with the attributes of a model."""
        self.classes_, table, intercept = model.labels, model.weights, model.intercept
        if provides(model.loss, HasClassScores):
            self.classes_ = np.array(model.loss.class_labels(list(model.labels)))
            table, intercept = model.loss.class_scores(table), model.loss.class_scores(intercept[None])[0]
        if table.ndim == 2 and table.shape[1] == 2:
            table, intercept = table[:, 1] - table[:, 0], intercept[1:] - intercept[:1]
        self.coef_ = np.atleast_2d(table.T)
        self.intercept_ = intercept
        return self

    def decision_function(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Scores: (rows,), above 0 for the second class, or (rows, classes), largest for the predicted one."""
        scores, loss = self._scores(X, offset), self.model_.loss
        if provides(loss, HasClassScores):
            scores = loss.class_scores(scores)
        return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 2 else scores

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Labels, (rows,)."""
        scores = self._scores(X, offset)
        labels: NDArray[Any] = self.model_.predict_scores(scores)
        return labels

    @available_if(has_probabilities)
    def predict_proba(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Probabilities of the classes, (rows, classes), where the loss or `calibrate` gives them."""
        scores = self._scores(X, offset)
        probabilities: NDArray[np.float64] = self.model_.probabilities_of_scores(scores)
        return probabilities

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Logarithms of the probabilities of the classes, (rows, classes)."""
        with np.errstate(divide="ignore"):
            logarithms: NDArray[np.float64] = np.log(self.predict_proba(X, offset))
        return logarithms

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Share of the rows with the right label, by weight.

        Parameters
        ----------
        y : (rows,) labels.
        """
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def _weights(self, y: NDArray[Any], sample_weight: Any) -> Any:
        if self.class_weight is None:
            return sample_weight
        own = np.ones(len(y)) if sample_weight is None else near_one(check_weights(sample_weight, len(y)))
        classes, place = np.unique(y, return_inverse=True)
        name = f"{self._title}: class_weight"
        masses = np.bincount(place, own, len(classes)).astype(np.float64)
        return own * factors(checked(self.class_weight, name), classes.tolist(), masses, name)[place]

    def _fitting_loss(self, y: NDArray[Any], weights: Any) -> tuple[Any, NDArray[Any] | None]:
        """The loss, or the one that takes its place, and the classes, of which rows of weight 0 may be all."""
        loss = self._prepared_loss()
        facts, classes, there = facts_of(loss), np.unique(y), len(np.unique(present(y, weights)))
        if facts.task != "binary" or (self.classes == "one_vs_rest" and len(classes) > 2):
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
            "expected a loss such as multiclass_hinge or softmax, or classes='one_vs_rest' beside this one"
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        facts = self._loss_facts()
        several = facts.task != "binary" or bool(facts.multiclass) or self.classes == "one_vs_rest"
        tags.classifier_tags.multi_class = several
        return tags


@estimator
class MultilabelClassifier(ClassifierMixin, RowEstimator):
    """Linear multi-label classification: a row's labels are to outscore the others; a threshold says how many it has.

    With a loss of two classes each label is a problem of its own, as `OneVsRestClassifier` of scikit-learn has them.

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance, for sets of labels, or for two classes: whether a row has a
        label. Default `multilabel_hinge`.

    Attributes
    ----------
    coef_, intercept_ : (labels, features), (labels,), with the threshold in them: a row has the labels whose
        `X coef_' + intercept_` is above 0. Where `y` has one label a row, (1, features) and (1,) for two labels.
    classes_ : (labels,) the columns of `y`, or the labels where it has one a row.
    """

    tasks: ClassVar[tuple[str, ...]] = ("multilabel", "binary")

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
        loss = self._prepared_loss()
        each = {"labels": "each"} if facts_of(loss).task == "binary" else {}
        model = self._train(self._dataset(X, y, sample_weight), loss, self.fit_intercept, **each)
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

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities that a row has each label, (rows, labels), where the loss gives them.

        Where `y` had one label a row, they are divided by their sum.
        """
        found = self.model_.probabilities_of_scores(self._scores(X))
        total = found.sum(axis=1, keepdims=True) if self._one_each else 1.0
        likely: NDArray[np.float64] = np.where(total == 0.0, 1.0 / found.shape[1], found / np.maximum(total, TINY))
        return likely

    @property
    def _constant(self) -> float:
        """Of the threshold."""
        threshold = self.model_.arrays.get("threshold")
        return 0.0 if self._one_each or threshold is None else float(threshold[-1])

    def _against_threshold(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows, labels) minus what of the threshold is linear in them; (rows,) for one of two labels a row."""
        if self._one_each:
            return f[:, 1] - f[:, 0] if f.shape[1] == 2 else f
        slope = self.model_.arrays.get("threshold", np.zeros(1))[:-1]
        return f - (f @ slope)[:, None] if slope.size else f

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags


@estimator
class OrdinalClassifier(ClassifierMixin, RowEstimator):
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
