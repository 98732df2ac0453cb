"""Labels for the tokens of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bmrm.data.dataset import Dataset, check_weights
from bmrm.data.index_arrays import is_sparse
from bmrm.data.label_types import is_na
from bmrm.estimators.base import LinearEstimator, estimator, has_probabilities
from bmrm.estimators.sequences import Lengths, form_of, lengths_of, no_tokens
from bmrm.problem import InputError, Loss, Targets


@estimator
class SequenceTagger(LinearEstimator):
    """Linear-chain models of sequences: conditional random fields and maximum-margin Markov networks.

    A sequence is a list of tokens, each of which is text or a tuple of texts, from which `templates` make features; or
    a dict of features (or a list of their names), as sklearn-crfsuite takes them; or a sequence is an array, dense or
    sparse, (tokens, features).

    Parameters
    ----------
    loss : name, `{"name": ..., option: value}` or instance, for sequences. Default `chain_crf`.
    templates : for tokens that are text: `tagging` (words), `chunking` (words and tags), a file of templates or a text
        of them, see the page *Sequences*. None is `tagging`; it must be None for other tokens.
    alpha : lambda > 0 of alpha ((1 - l1_ratio)/2 ||w||^2 + l1_ratio ||w||_1). R is a mean over sequences: with
        N of them alpha is 2 / N times the `c2` of CRFsuite. Default 1e-4.
    fit_intercept : whether each label has a constant that the regularizer does not touch. Default False, as in
        CRFsuite.

    Attributes
    ----------
    classes_ : (labels,) sorted.
    coef_ : (labels, features); with `transitions: observed` a row for each pair of labels follows.
    intercept_ : (labels,); with `transitions: observed` one for each pair of labels follows.
    transitions_ : (labels, labels) scores, from the label of a row to that of a column.
    """

    tasks: ClassVar[tuple[str, ...]] = ("sequence",)
    rows: ClassVar[Mapping[str, str]] = {
        "X": "list of sequences, each a list of tokens or an array (tokens, features), dense or sparse.",
        "sample_weight": "(sequences,) array of numbers >= 0; None for 1 each.",
    }

    loss: str | Mapping[str, Any] | Loss = field(default="chain_crf", kw_only=False)
    templates: str | None = None
    fit_intercept: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SequenceTagger:
        """Train.

        Parameters
        ----------
        y : list of sequences of labels, a label for each token.

        Raises
        ------
        InputError
            Wrong parameters; sequences of different lengths in `X` and `y`, naming the first; fewer than two labels.

        Warns
        -----
        ConvergenceWarning
            With the gap, where it is wider than `tol`.
        """
        loss = self._prepared_loss()
        lengths = lengths_of(X, "X")
        labels = _labels_of(y, lengths)
        weights = None if sample_weight is None else np.repeat(check_weights(sample_weight, len(lengths)), lengths)
        self._form = form_of(X, lengths, self.templates)
        rows = self._form.training_rows(X, lengths)
        groups = np.repeat(np.arange(len(lengths)), lengths)
        data = Dataset.from_arrays(rows, labels, weights, groups)
        model = self._train(Dataset(data.X, data.targets, self._form.layout), loss, self.fit_intercept)
        self.n_features_in_ = data.features
        self.classes_ = model.labels
        self.coef_, self.intercept_ = model.weights.T, model.intercept
        self.transitions_ = model.arrays["transitions"]
        return self

    def predict(self, X: Any) -> list[list[Any]]:
        """The labels of each sequence's best labeling: a list for each sequence."""
        rows, lengths = self._tokens(X)
        return [part.tolist() for part in _parts(self.model_.predict(rows), lengths)]

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Marginal probabilities of the labels, in their order: an array (tokens, labels) for each sequence."""
        rows, lengths = self._tokens(X)
        return _parts(self.model_.predict_proba(rows), lengths)

    @available_if(has_probabilities)
    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """As `predict_proba`, a dict from labels to probabilities for each token, as sklearn-crfsuite gives them."""
        names = self.classes_.tolist() if hasattr(self, "classes_") else []
        return [[dict(zip(names, row)) for row in part.tolist()] for part in self.predict_proba(X)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the tokens with the right label, by weight.

        Parameters
        ----------
        y : list of sequences of labels that are right, a label for each token.
        """
        rows, lengths = self._tokens(X)
        right = self.model_.predict(rows) == np.asarray(_labels_of(y, lengths))
        if sample_weight is None:
            return float(np.mean(right))
        return float(np.average(right, weights=np.repeat(check_weights(sample_weight, len(lengths)), lengths)))

    def _tokens(self, X: Any) -> tuple[Dataset, Lengths]:
        """A row for each token, with its sequence, and how many each sequence has."""
        check_is_fitted(self)
        lengths = lengths_of(X, "X")
        groups = np.repeat(np.arange(len(lengths)), lengths)
        rows = self._form.rows(X, lengths) if len(groups) else no_tokens(self.n_features_in_)
        return Dataset(rows, Targets(np.zeros(len(groups)), None, groups)), lengths

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def _labels_of(y: Any, lengths: Lengths) -> list[Any]:
    """The labels of all tokens; InputError where a sequence has not one for each token."""
    given = lengths_of(y, "y")
    if len(given) != len(lengths):
        raise InputError(f"y has {len(given)} sequences, X has {len(lengths)}")
    other = np.flatnonzero(given != lengths)
    if other.size:
        k = int(other[0])
        raise InputError(f"y: sequence {k} has {given[k]} labels, expected one for each of its {lengths[k]} tokens")
    sparse = next((k for k, part in enumerate(y) if is_sparse(part)), None)
    if sparse is not None:
        raise InputError(f"y: sequence {sparse} is a sparse matrix, expected a list of labels")
    labels = [label for part in y for label in (part.tolist() if isinstance(part, np.ndarray) else part)]
    missing = next((k for k, label in enumerate(labels) if label is None or is_na(label) or label != label), None)
    if missing is not None:
        k = int(np.searchsorted(np.cumsum(lengths), missing, side="right"))
        token = missing - int(np.cumsum(lengths)[k] - lengths[k])
        raise InputError(f"y: sequence {k}, token {token} is missing ({labels[missing]}), expected a label")
    return labels


def _parts(rows: NDArray[Any], lengths: Lengths) -> list[NDArray[Any]]:
    """The rows of each sequence."""
    ends = np.cumsum(lengths).tolist()
    return [rows[start:stop] for start, stop in zip([0, *ends], ends)]
