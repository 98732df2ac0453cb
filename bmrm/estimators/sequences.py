"""Sequences of tokens as rows of features, in each of the forms that a tagger takes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.feature_extraction import DictVectorizer

from bmrm.data.dataset import check_matrix
from bmrm.data.frames import refuse_hidden
from bmrm.data.index_arrays import check_sparse
from bmrm.data.layout import Layout
from bmrm.data.matrix import Csr, Matrix
from bmrm.data.readers.conll import Conll
from bmrm.data.text_reader import TextReader
from bmrm.problem import InputError, shown

Lengths = NDArray[np.int64]
COLLECTIONS = list, set, frozenset
"""Types of collections of names of features."""


class Form(Protocol):
    """How tokens become rows: the features are those of the training sequences."""

    layout: Layout | None
    """The names of the features, and how text becomes features."""

    def training_rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """A row for each token of the training sequences, (tokens, features); their features are remembered."""
        ...

    def rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """Likewise of other sequences; features that training did not have are left out."""
        ...


class Arrays:
    """An array or sparse matrix a sequence, (tokens, features)."""

    layout: Layout | None = None

    def training_rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        self._features = np.shape(X[0])[-1]
        return self.rows(X, lengths)

    def rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        for k, sequence in enumerate(X):
            if np.ndim(sequence) != 2 or np.shape(sequence)[1] != self._features:
                raise InputError(
                    f"X: sequence {k} has shape {np.shape(sequence)}, expected (tokens, {self._features} features)"
                )
            check_sparse(sequence, f"X: sequence {k}")
            refuse_hidden(sequence, f"X: sequence {k}")
        return check_matrix(vstack(X, format="csr") if any(map(issparse, X)) else np.vstack(X))


class Features:
    """A dict a token: text makes the feature `name:text` of value 1, a number its value; or names of features alone."""

    def __init__(self) -> None:
        self._vectorizer = DictVectorizer(separator=":")
        self.layout: Layout | None = None

    def training_rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        table = self._vectorizer.fit_transform(map(_flat, chain.from_iterable(X)))
        names = tuple(map(str, self._vectorizer.feature_names_))
        self.layout = Layout(features=len(names), names=names)
        return check_matrix(table)

    def rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        return check_matrix(self._vectorizer.transform(map(_flat, chain.from_iterable(X))))


def _flat(token: Any) -> dict[str, Any]:
    """The features of a token without dicts inside: `{"a": {"b": 1}}` is `{"a:b": 1}`, `["a"]` is `{"a": 1.0}`."""
    if isinstance(token, Mapping):
        flat = dict(_entries(token, ""))
        for name, value in flat.items():
            if not _is_feature(value):
                raise InputError(
                    f"X: token {shown(token)}: the feature {name!r} is {shown(value)}, expected text or a finite number"
                )
        return flat
    if isinstance(token, COLLECTIONS) and all(isinstance(name, str) for name in token):
        return dict.fromkeys(token, 1.0)
    raise InputError(f"X: token {shown(token)} is no dict of features, as others are")


def _is_feature(value: Any) -> bool:
    """Whether it is text, several texts, a finite number or a truth value."""
    if isinstance(value, (numbers.Real, np.bool_)):
        return math.isfinite(value)
    texts = (value,) if isinstance(value, str) else value
    return isinstance(texts, (tuple, *COLLECTIONS)) and all(isinstance(text, str) for text in texts)


def _entries(features: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in features.items():
        if isinstance(value, Mapping):
            yield from _entries(value, f"{prefix}{name}:")
        else:
            yield f"{prefix}{name}", value


class Texts:
    """A text a token, or a tuple of texts: the columns that templates refer to."""

    def __init__(self, templates: str) -> None:
        self._reader = Conll(templates=templates)
        self.layout: Layout | None = None

    def training_rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        self._width = len(_columns(next(chain.from_iterable(X))))
        raw = self._reader.raw(self._table(X), _starts(lengths), "X")
        assert raw.names is not None
        self._vocabulary = raw.own_vocabulary()
        text = TextReader(raw.names.format, self._vocabulary)
        self.layout = Layout(features=self._vocabulary.size, text=text)
        return raw.indexed(self._vocabulary).data.X

    def rows(self, X: Sequence[Any], lengths: Lengths) -> Matrix:
        """As of `Form`."""
        return self._reader.raw(self._table(X), _starts(lengths), "X").indexed(self._vocabulary).data.X

    def _table(self, X: Sequence[Any]) -> list[Sequence[str]]:
        tokens = [_columns(token) for token in chain.from_iterable(X)]
        for token in tokens:
            if len(token) != self._width or not all(isinstance(text, str) for text in token):
                raise InputError(f"X: token {shown(token)}, expected {self._width} texts a token, as the first one has")
        return list(zip(*tokens, strict=True)) if tokens else [()] * self._width


def _columns(token: Any) -> tuple[Any, ...]:
    if not isinstance(token, (str, Sequence)):
        raise InputError(f"X: token {shown(token)} is no text or tuple of texts, as others are")
    return (token,) if isinstance(token, str) else tuple(token)


def _starts(lengths: Lengths) -> Lengths:
    """Where each sequence with tokens starts, and the number of tokens."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[lengths > 0])))


def lengths_of(X: Any, name: str) -> Lengths:
    """Tokens of each sequence, (sequences,); InputError where there are no sequences."""
    if isinstance(X, (str, bytes)) or issparse(X) or not hasattr(X, "__len__"):
        raise InputError(f"{name} is {shown(X)}, expected a list of sequences")
    for k, sequence in enumerate(X):
        if isinstance(sequence, (str, bytes, Mapping)) or not (hasattr(sequence, "__len__") or issparse(sequence)):
            raise InputError(f"{name}: sequence {k} is {shown(sequence)}, expected a list of tokens or an array")
        if issparse(sequence):
            check_sparse(sequence, f"{name}: sequence {k}")
    return np.array([s.shape[0] if issparse(s) else len(s) for s in X], np.int64)


def no_tokens(features: int) -> Matrix:
    """The rows of sequences without tokens."""
    return Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), None, features)


def form_of(X: Sequence[Any], lengths: Lengths, templates: str | None) -> Form:
    """The form of the training sequences; InputError where there are no tokens, or tokens of no known form."""
    if not lengths.sum():
        raise InputError("X has no tokens, expected at least one sequence with tokens")
    first = X[int(np.argmax(lengths > 0))]
    arrays = issparse(first) or (isinstance(first, np.ndarray) and first.ndim == 2 and first.dtype.kind in "fiub")
    token = None if arrays else first[0]
    text = not arrays and (isinstance(token, str) or (isinstance(token, tuple) and bool(token)))
    if text:
        return Texts("tagging" if templates is None else templates)
    if templates is not None:
        raise InputError("templates are for tokens that are text, expected None beside features or arrays")
    if arrays:
        return Arrays()
    if isinstance(token, (Mapping, *COLLECTIONS)):
        return Features()
    raise InputError(
        f"X: the first token is {shown(token)}, expected text, a tuple of texts, a dict of features, or an array "
        "(tokens, features) for each sequence"
    )
