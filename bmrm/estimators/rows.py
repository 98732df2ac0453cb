"""Estimators of rows: arrays, sparse matrices and data frames, whose columns may be categories or text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from bmrm.data.dataset import Dataset, coded, named_matrix, plain_array, plain_labels, plain_numbers, refuse_weightless
from bmrm.data.encoding import Encoding, warn_of_unknown
from bmrm.data.files import about
from bmrm.data.frames import has_numbers_only, is_frame, refuse_hidden, values_of, without_fill
from bmrm.data.index_arrays import check_sparse
from bmrm.data.label_types import is_na, stored
from bmrm.data.layout import Layout
from bmrm.data.raw_columns import REFUSE, Coding, RawTable
from bmrm.estimators.base import LinearEstimator
from bmrm.problem import InputError, Targets, shown

DTYPES = np.float64, np.float32
CHUNKED = "Classifier, Regressor, ClassifierCV and RegressorCV"
"""Estimators that take rows in chunks."""


@dataclass(repr=False, eq=False, kw_only=True)
class RowEstimator(LinearEstimator):
    """Rows of features, checked as scikit-learn does; columns of data frames become features by an `Encoding`."""

    categorical: Sequence[str | int] | None = None
    text: Mapping[str | int, str] | None = None
    missing: Literal["refuse", "mean", "indicator", "zero"] = "refuse"
    drop_first: bool = False
    rare: int | None = None

    def _training_rows(self, X: Any, *y: Any, **checks: Any) -> Any:
        """What scikit-learn's `validate_data` gives: a float32 or float64 array or CSR matrix, and y where it is asked.

        The attributes about features are set. InputError for chunks, which `_rows_of_chunks` is for.
        """
        self._check_ranges()
        if given_in_chunks(X):
            raise InputError(f"{self._title}: X are chunks, which {CHUNKED} take; `bmrm.fit` does, for every loss")
        self.encoding_: Encoding | None = None
        for target in y:
            check_sparse(target, "y")
        targets = [plain_labels(target) for target in y]
        if checks.get("y_numeric") and getattr(targets[0], "dtype", np.dtype(float)).kind in "USmM":
            raise InputError(f"{self._title}: y holds {targets[0].dtype}, expected numbers")
        return self._validated(X, *targets, **checks)

    def _rows_of_chunks(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> Dataset:
        """The rows of chunks, in a temporary store, as `bmrm.fit` has them; the attributes about features are set.

        `y`, `sample_weight` and `offset` are names of columns of record batches, or None.
        """
        self._check_ranges()
        from bmrm.app.asked import rows_of  # loads numba

        data = rows_of(X, y, sample_weight, offset, None, self._coding())
        names = data.feature_names
        self.encoding_ = None if data.layout is None else data.layout.encoding
        if self.encoding_ is not None:
            names = self.encoding_.sources if self.encoding_.headed else None
        self.n_features_in_ = data.features if self.encoding_ is None else len(self.encoding_.columns)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        return data

    def _validated(self, X: Any, *y: Any, **checks: Any) -> Any:
        """As `_training_rows`; InputError for features that scikit-learn would misread."""
        training = checks.get("reset", True)
        encoding, table = coded(X, self._coding() if training else self.encoding_)
        if encoding is not None and table is not None:
            if training:
                self.encoding_ = encoding
            return self._encoded(encoding, table, X, *y, **checks)
        X = _readable(X)
        try:
            return validate_data(self, X, *y, accept_sparse="csr", dtype=DTYPES, **checks)
        except (TypeError, ValueError) as error:
            if is_frame(X) or (isinstance(error, TypeError) and any(map(is_na, np.ravel(np.asarray(X, object))))):
                named_matrix(X)  # says which row and column
            raise

    def _encoded(self, encoding: Encoding, table: RawTable, X: Any, *y: Any, **checks: Any) -> Any:
        """The features of the rows, and y; the attributes about features are of the columns."""
        _refuse_twins(X)
        validate_data(self, X, skip_check_array=True, reset=checks.pop("reset", True))
        matrix, unknown = encoding.encoded(table, "X")
        warn_of_unknown(unknown, stacklevel=5)
        if not y:
            return matrix
        _, target = check_X_y(np.zeros((table.rows, 1)), *y, **checks)
        return matrix, target

    def _coding(self) -> Coding:
        """What is wanted of columns that are no numbers."""
        with about(self._title):
            return Coding.checked(self.categorical, self.text, self.missing, self.drop_first, self.rare)

    def _dataset(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        groups: Any = None,
        classes: NDArray[Any] | None = None,
        offset: Any = None,
    ) -> Dataset:
        """Validated rows, with the names of the features; `classes` that count though their rows may weigh 0."""
        data = Dataset.from_arrays(X, y, weights, groups)
        if offset is not None:
            data = data.with_offset(plain_numbers(offset, "offset"))
        refuse_weightless(data.targets.weights)
        names = getattr(self, "feature_names_in_", None) if self.encoding_ is None else self.encoding_.names
        layout = None
        if names is not None:
            layout = Layout(features=data.features, names=tuple(map(str, names)), encoding=self.encoding_)
        targets = data.targets
        if classes is not None:
            targets = replace(targets, classes=tuple(stored(classes)[0].tolist()))
        return Dataset(data.X, targets, layout, data.labelled)

    def _scores(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Scores of the model, (rows,) or (rows, scores)."""
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        if self.encoding_ is not None:  # they are features by now
            rows = Dataset(rows, Targets(np.zeros(rows.shape[0])))
        given = None if offset is None else plain_numbers(offset, "offset")
        scores: NDArray[np.float64] = self.model_.decision_function(rows, given)
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != REFUSE
        return tags


def given_in_chunks(X: Any) -> bool:
    """Whether rows are given as `bmrm.app.chunks.are_chunks` says."""
    from bmrm.app.chunks import are_chunks  # loads readers

    return are_chunks(X)


def _readable(X: Any) -> Any:
    """Features that scikit-learn can convert; InputError for those that it would misread."""
    check_sparse(X)
    refuse_hidden(X, "X")
    if is_frame(X):
        _refuse_twins(X)
        if hasattr(getattr(X, "sparse", None), "to_coo") and len(X.columns):
            return without_fill(X)
        if not has_numbers_only(X):
            values_of(X)  # says what is wrong
    elif isinstance(X, (np.ndarray, list, tuple)):
        array = X if isinstance(X, np.ndarray) else plain_array(X, "X")
        if array.dtype.kind in "USmM" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array.flat)):
            raise InputError(f"X holds {array.dtype if array.dtype.kind in 'mM' else 'text'}, expected numbers")
    return X


def _refuse_twins(X: Any) -> None:
    names = list(X.columns) if is_frame(X) else []
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InputError(f"X: several columns are named {shown(twice)}, expected distinct names")
