"""A trained linear model: predictions, measures and what it shows; its file is in `model_file.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app import model_view as view
from bmrm.app.measure import (
    check_labelled,
    check_metrics,
    names_of_measures,
    predictions,
    scored,
    scores_of,
    without_probabilities,
)
from bmrm.app.model_file import (
    OFFSET,
    SHARES,
    ModelData,
    check_fits,
    checked_section,
    in_columns,
    named,
    read_model_file,
    wrong_learned,
)
from bmrm.app.shares import rows_of_labels
from bmrm.data.archives import write_arrays
from bmrm.data.dataset import Dataset, check_groups, check_matrix, check_structure, features_in, plain_numbers
from bmrm.data.encoding import warn_of_unknown
from bmrm.data.files import whole_file
from bmrm.data.label_types import is_whole, stored
from bmrm.data.labels import in_form
from bmrm.data.layout import Alike, Layout, aligned
from bmrm.data.matrix import features_of, with_columns
from bmrm.data.readers._core.raw import Raw
from bmrm.data.reading import Source, manner, scan
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Loss, Solution, Targets, facts_of, provides, shown
from bmrm.problem.loss import HasProbabilities, HasThreshold
from bmrm.risk.scaling import SCALINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bmrm.metrics import ScoredRows as Judged
    from bmrm.metrics.intervals import Interval
    from bmrm.metrics.sequences import Counts


@dataclass(frozen=True, eq=False, repr=False)
class Model(ModelData):
    """Scores of a row x are `x weights + intercept`; with `features` x is what those make of the row.

    Attributes
    ----------
    weights : (dim,), or (dim, scores) for several scores per row; in the space of the raw features.
    intercept : (scores,); zeros where none was learned.
    labels : the user's own labels in score order (of two, the second is positive), in the type that they had; empty for
        regression.
    header : other contents of the file: loss and regularizer with parameters, objective, lower bound, status, ...
    row_scale : "none", or "unit_norm": rows are divided by their Euclidean norm first (rows of zeros stay).
    arrays : other parameters that were learned (cut points, transitions), float64; `header["arrays"]` names them.
    layout : the names of the features and how the training files were read; None if unknown.
    calibration : curves from scores to probabilities, of a model that was trained with `calibrate`; else None.
    features : what stands between raw rows and the weights, of a model that was trained with `features`; else None.
    """

    _loss: Any = None

    @property
    def solution(self) -> Solution:
        """What the solver returned: status, objective, lower bound, history.

        Raises
        ------
        InputError
            For a model that was read from a file; its `header` has status, objective and lower bound.
        """
        if self._solution is None:
            raise InputError(
                "this model was read from a file, which keeps no solution, expected one that was just trained; its "
                "header has status, objective and lower_bound"
            )
        return self._solution

    @property
    def label_codes(self) -> list[Any]:
        """The labels as losses see them: numbers or text."""
        if not self.labels.size:
            return []
        codes, dtype = stored(self.labels)
        plain: list[Any] = (codes.astype(np.int64) if is_whole(dtype) else codes).tolist()
        return plain

    @property
    def loss(self) -> Loss:
        """The loss that the model was trained with.

        Raises InputError if the file names a class outside the registry: loading a model imports nothing.
        """
        if self._loss is not None:
            loss: Loss = self._loss
            return loss
        name, options = named(self.header["loss"])
        if ":" in name:
            raise InputError(
                f"the model was trained with the loss {name}; hand it over: "
                f"load_model(path, loss=...), or --loss {name}"
            )
        checked_section(LOSSES, self.header["loss"])
        made: Loss = in_columns(LOSSES.make(name, options), self.header)
        check_fits(made, self)
        object.__setattr__(self, "_loss", made)  # a model remembers what its header says
        return made

    def __repr__(self) -> str:
        return view.line(self)

    def _repr_html_(self) -> str:
        return view.html(self)

    def top_weights(self, count: int = 20) -> list[view.Weight]:
        """The largest weights by absolute value, largest first, with the names of their features; zeros are left out.

        Parameters
        ----------
        count : how many; with several scores per row as many for each, in the order of the labels.
        """
        return view.top_weights(self, count)

    def plot(self) -> Figure:
        """Objective, lower bound and relative gap over the iterations, as a figure of matplotlib.

        Raises
        ------
        InputError
            For a model that was read from a file, which has no history.
        """
        history = self.solution.history
        from bmrm.app.plots import convergence

        return convergence(history, title=view.title(self))

    @property
    def offset(self) -> str | None:
        """The name of the offset that the model was trained with, and needs; None without."""
        name: str | None = self.header.get(OFFSET)
        return name

    def decision_function(self, X: Any, offset: Any = None) -> NDArray[np.float64]:
        """Scores of rows: (rows,), or (rows, scores) for several scores per row.

        Parameters
        ----------
        X : Dataset, `Csr`, scipy.sparse, array or data frame, (rows, features). Sparse rows may have fewer features
            than the model (the rest are 0), never more. Named columns may be in any order if the model has names too.
            Columns that were encoded in training are encoded in the same way.
        offset : (rows,) or (rows, scores), where the model was trained with one; None for that of a Dataset, or of the
            column of this name.

        Raises
        ------
        InputError
            For missing or unknown columns, some of which are listed, and for a wrong number of columns; for an offset
            that is missing or was not there in training.

        Warns
        -----
        UserWarning
            How many rows have a level that no training row had, of which column, and the first: they have zeros there.
        """
        if isinstance(X, Dataset):
            matrix, names = check_matrix(X.X), X.feature_names
            offset = X.targets.offset if offset is None else offset
        else:
            matrix, names, _, unknown = features_in(X, self.encoding)
            warn_of_unknown(unknown)
        rows = Dataset(matrix, Targets(np.zeros(matrix.shape[0])), Layout(names=names))
        rows = self._with_offset(rows, offset)
        matrix = aligned(rows.X, rows.feature_names, self.feature_names, "X")
        if not features_of(matrix).fits(self.inputs):
            raise InputError(f"the data have {matrix.shape[1]} features, the model has {self.inputs}")
        data = SCALINGS[self.row_scale].rows(replace(rows, X=with_columns(matrix, self.inputs)))
        if self.features is not None:
            data = replace(data, X=self.features.apply(data.X))
        return scores_of(data, self.weights, self.intercept)

    def _with_offset(self, rows: Dataset, offset: Any) -> Dataset:
        """The rows with the offset that is given, or that of its column; InputError where it is missing."""
        column = None if self.layout is None else self.layout.offset
        if offset is None and column in (rows.feature_names or ()):
            offset = column
        if self.offset is None and offset is not None:
            raise InputError("offset: the model was trained without one")
        if self.offset is not None and offset is None:
            named = "" if self.offset == OFFSET else f" {shown(self.offset)}"
            raise InputError(f"no offset{named}, with which the model was trained; expected a number for each row")
        return rows if offset is None else rows.with_offset(offset)

    def predict(
        self, X: Any, groups: Any = None, structure: Any = None, offset: Any = None, maximize: str | None = None
    ) -> Any:
        """Predictions of the loss from the scores: labels in the user's type, or numbers for regression; (rows,).

        Label sets have the same form as in training: a list of sets, or a matrix of 0 and 1 (rows, labels), dense or
        sparse.

        Parameters
        ----------
        X : Dataset, `Csr`, scipy.sparse, array or data frame, (rows, features); a Dataset brings groups and structure.
        groups : (rows,) integers: for sequences, the sentence of each token.
        structure : (rows, numbers) integers, for a loss over structures that asks for them.
        offset : (rows,) or (rows, scores), where the model was trained with one; None for that of the rows themselves.
        maximize : "f1", "f_beta" or such as "f_beta@2": the labels of two classes whose expected F-beta on these rows
            together is the largest, by the model's probabilities (Ye et al. 2012, in time that grows with rows^2).
        """
        if maximize is not None:
            return self.predict_maximizing(self.predict_proba(X, groups, offset), maximize)
        if isinstance(X, Dataset):
            groups = X.targets.groups if groups is None else groups
            structure = X.targets.structure if structure is None else structure
        return self.predict_scores(self.decision_function(X, offset), groups, structure)

    def predict_scores(self, scores: NDArray[np.float64], groups: Any = None, structure: Any = None) -> Any:
        """As `predict`, from scores.

        Parameters
        ----------
        scores : those that `decision_function` gives, (rows,) or (rows, scores).
        groups : (rows,) integers: for sequences, the sentence of each token; None for other losses.
        structure : (rows, numbers), what the loss asks for of each row, such as the parent of a node.

        Raises
        ------
        InputError
            For scores of another shape, and for a model whose learned arrays do not fit its labels.
        """
        scores = self._checked_scores(scores)
        checked = None if groups is None else check_groups(groups, scores.shape[0])
        sets = self.header.get("sets")
        if provides(self.loss, HasThreshold) and (sets is None or "threshold" not in self.arrays):
            raise InputError(
                "this model (a checkpoint, or of an older version) has no threshold that tells which labels a row has; "
                "its scores (decision_function) rank them"
            )
        given = None if structure is None else check_structure(structure, scores.shape[0])
        predicted = predictions(self.loss, scores, self.labels, self.arrays, checked, given)
        return predicted if sets is None else in_form(predicted, self.labels, **sets)

    def predict_maximizing(self, probabilities: NDArray[np.float64], measure: str) -> NDArray[Any]:
        """As `predict` with `maximize`, from probabilities.

        Parameters
        ----------
        probabilities : those that `predict_proba` gives, (rows, 2).
        measure : "f1", "f_beta" or such as "f_beta@2".

        Raises
        ------
        InputError
            For another measure, a model of other than two classes, and probabilities of another shape.
        """
        from bmrm.metrics.expected_f import beta_of, positive_rows

        beta = beta_of(measure)
        if facts_of(self.loss).task not in ("binary", "multiclass") or len(self.labels) != 2:
            raise InputError(f"maximize: {measure} is of two classes, the model has {len(self.labels)} labels")
        found = plain_numbers(probabilities, "probabilities")
        if found.ndim != 2 or found.shape[1] != 2:
            raise InputError(f"probabilities have shape {found.shape}, expected (rows, 2)")
        chosen: NDArray[Any] = self.labels[positive_rows(found[:, 1], beta).astype(np.intp)]
        return chosen

    def predict_proba(self, X: Any, groups: Any = None, offset: Any = None) -> NDArray[np.float64]:
        """Probabilities of the labels, in the order of `labels`: (rows, labels).

        Parameters
        ----------
        X : Dataset, `Csr`, scipy.sparse, array or data frame, (rows, features); a Dataset brings its groups.
        groups : (rows,) integers: for sequences, the sentence of each token.
        offset : (rows,) or (rows, scores), where the model was trained with one; None for that of the rows themselves.

        Raises
        ------
        InputError
            Where the model is not calibrated and the loss has no probabilities.
        """
        if groups is None and isinstance(X, Dataset):
            groups = X.targets.groups
        return self.probabilities_of_scores(self.decision_function(X, offset), groups)

    def probabilities_of_scores(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.float64]:
        """As `predict_proba`, from scores.

        Parameters
        ----------
        scores : those that `decision_function` gives, (rows,) or (rows, scores).
        groups : (rows,) integers: for sequences, the sentence of each token; None for other losses.

        Raises
        ------
        InputError
            Where the model is not calibrated and the loss has no probabilities; for scores of another shape, and for a
            model whose learned arrays do not fit its labels.
        """
        if self.calibration is not None:
            return self.calibration.probabilities(self._checked_scores(scores))
        if not provides(self.loss, HasProbabilities):
            raise InputError(without_probabilities(self.loss))
        scores = self._checked_scores(scores)
        checked = None if groups is None else check_groups(groups, scores.shape[0])
        more = {"groups": checked} if facts_of(self.loss).by_group else {}
        return self.loss.probabilities(scores, **self.arrays, **more)

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        metrics: Sequence[str] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
    ) -> dict[str, float | None]:
        """Measures of this model on rows with targets, by name; None where a measure is not defined.

        Parameters
        ----------
        X, y : rows, (rows, features), and their labels or numbers, (rows,); or a Dataset, which brings all.
        metrics : names of measures that fit the loss, as `bmrm measures` lists them, such as `["auc", "ndcg@5"]`; None
            for those that the loss names.
        sample_weight : (rows,), >= 0; None for 1 each.
        groups : (rows,) integers: the query or sentence of each row.
        offset : (rows,) or (rows, scores), where the model was trained with one; None for that of the rows themselves.

        Raises
        ------
        InputError
            For a measure that is unknown or does not fit, naming those that do; for unsuitable rows or targets.
        """
        from bmrm.metrics import evaluate

        names = self._names(metrics)
        return evaluate(names, self._scored(X, y, sample_weight, groups, offset))

    def evaluate_chunks(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> dict[str, Counts]:
        """The chunks of labelled sequences by type, as the table of `conlleval` has them.

        Parameters
        ----------
        X, y : rows, (rows, features), and their labels, (rows,); or a Dataset, which brings all.
        sample_weight : (rows,), >= 0; None for 1 each.
        groups : (rows,) integers: the sentence of each row.

        Returns
        -------
        dict of str to Counts
            With `true`, `found` and `common`, and from these `precision`, `recall` and `f1`.

        Raises
        ------
        InputError
            For a model of anything but sequences; for unsuitable rows or targets.
        """
        if facts_of(self.loss).task != "sequence":
            raise InputError(f"{facts_of(self.loss).title} has no chunks, expected a loss of sequences")
        from bmrm.metrics.sequences import chunks_by_type

        return chunks_by_type(self._scored(X, y, sample_weight, groups))

    def evaluate_scores(
        self,
        scores: NDArray[np.float64],
        y: Any,
        *,
        metrics: Sequence[str] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> dict[str, float | None]:
        """As `evaluate`, from the scores of rows.

        Parameters
        ----------
        scores : those that `decision_function` gives, (rows,) or (rows, scores).
        y : (rows,), labels or numbers.
        metrics : names of measures that fit the loss; None for those that the loss names.
        sample_weight : (rows,), >= 0; None for 1 each.
        groups : (rows,) integers: the query or sentence of each row; None where there are none.

        Raises
        ------
        InputError
            As `evaluate`, and for scores of another shape.
        """
        from bmrm.metrics import evaluate

        scores = self._checked_scores(scores)
        data = Dataset.from_arrays(np.arange(float(len(scores)))[:, None], y, sample_weight, groups)
        if self.header.get(SHARES):
            data = rows_of_labels(data, self.loss)
            scores = scores[np.asarray(data.X)[:, 0].astype(np.intp)]
        return evaluate(self._names(metrics), self._with_scores(data, scores))

    def evaluate_folds(
        self,
        X: Any,
        y: Any = None,
        *,
        metrics: Sequence[str] | None = None,
        folds: int = 10,
        confidence: float = 0.95,
        sample_weight: Any = None,
        groups: Any = None,
        offset: Any = None,
        seed: int = 0,
    ) -> dict[str, Interval]:
        """As `evaluate`, of each of several parts of the rows: the mean and its interval, by name.

        The interval is that of Student's distribution over the values of the folds (Komarek's thesis 2004, section
        5.1.4), whose scores here are all from this one model.

        Parameters
        ----------
        X, y : rows, (rows, features), and their labels or numbers, (rows,); or a Dataset, which brings all.
        metrics : names of measures that fit the loss; None for those that the loss names.
        sample_weight : (rows,), >= 0; None for 1 each.
        groups : (rows,) integers: the query or sentence of each row.
        offset : (rows,) or (rows, scores), where the model was trained with one; None for that of the rows themselves.
        folds : how many parts of equal size, at random; rows of one group stay together.
        confidence : of the interval, in (0, 1).
        seed : of the parts.

        Raises
        ------
        InputError
            As `evaluate`, and where a measure is not defined in a fold.
        """
        from bmrm.metrics.intervals import folds_of, interval_over_folds, parts_of

        names, rows = self._names(metrics), self._scored(X, y, sample_weight, groups, offset)
        parts = parts_of(rows, folds_of(len(rows.y), folds, rows.groups, seed))
        return {name: interval_over_folds(parts, name, confidence) for name in names}

    def _checked_scores(self, scores: Any) -> NDArray[np.float64]:
        for complaint in wrong_learned(self.arrays, self.labels.size):
            raise InputError(f"the model's {complaint}")
        found, wide = plain_numbers(scores, "scores"), self.weights.shape[1:]
        if found.ndim != 1 + len(wide) or found.shape[1:] != wide:
            raise InputError(f"scores have shape {found.shape}, expected (rows{''.join(f', {k}' for k in wide)})")
        return found

    def _names(self, metrics: Sequence[str] | None) -> Sequence[str]:
        if metrics is None:
            return names_of_measures(self.loss, self.calibration)
        check_metrics(metrics, self.loss)
        return metrics

    def _scored(self, X: Any, y: Any, sample_weight: Any, groups: Any, offset: Any = None) -> Judged:
        if isinstance(X, Dataset):
            data = X
        else:
            data = Dataset.from_arrays(X, y, sample_weight, groups, coding=self.encoding)
            warn_of_unknown(() if data.layout is None else data.layout.unknown)
        if self.header.get(SHARES):
            if offset is not None:
                data, offset = data.with_offset(offset), None
            data = rows_of_labels(data, self.loss)
        return self._with_scores(data, self.decision_function(data, offset))

    def _with_scores(self, data: Dataset, scores: NDArray[np.float64]) -> Judged:
        check_labelled(self.loss, data, "data")
        scores = self._checked_scores(scores)
        arrays, calibration = self.arrays, self.calibration
        rows = scored(scores, data.targets, self.loss, self.label_codes, arrays=arrays, calibration=calibration)
        assert rows is not None
        return rows

    def read(
        self,
        source: Source,
        format: str | Mapping[str, Any] = "auto",
        *,
        labelled: bool = False,
        quiet: bool = False,
    ) -> Dataset:
        """The rows of a file as this model needs them: columns by name or number, text by templates and dictionary.

        Parameters
        ----------
        source : a file, several by a glob or a list, `sklearn:NAME` or `synthetic:NAME`, with labels or without.
        format : a name, or `{name: ..., option: value}`; "auto" is the format of the training files, unless the file
            name implies another.
        labelled : whether there must be labels.
        quiet : whether nothing is said of levels that the training rows had not; they are in `layout.unknown`.

        Raises
        ------
        InputError
            Naming the file, and the line or the columns.

        Warns
        -----
        UserWarning
            How many rows have a level that no training row had, of which column, and the first: they have zeros there.
        """
        layout = self.layout or Layout()
        if layout.text is not None:
            data: Dataset = layout.text.read(source, None if format == "auto" else format, labelled=labelled)
            return data
        raw = self.scan(source, format, labelled=labelled)
        if raw.layout is not None and not quiet:
            warn_of_unknown(raw.layout.unknown)
        return raw.dataset(one_based=layout.one_based if raw.first is not None else None)

    def scan(self, source: Source, format: str | Mapping[str, Any] = "auto", *, labelled: bool = False) -> Raw:
        """As `read`, before it is settled whether columns are numbered from 0 or 1; not for text.

        Parameters
        ----------
        source : a file, several by a glob or a list, `sklearn:NAME` or `synthetic:NAME`.
        format : a name, or `{name: ..., option: value}`; "auto" is the format of the training files, unless the file
            name implies another.
        labelled : whether there must be labels.

        Raises
        ------
        InputError
            Naming the file, and the line or the columns.
        """
        format, alike = self.manner(format, labelled)
        raw = scan(source, format=format, alike=alike)
        if labelled and not raw.data.labelled:
            raise InputError(f"{raw.origin}: no labels")
        return raw

    def manner(self, format: str | Mapping[str, Any], labelled: bool) -> tuple[str | Mapping[str, Any], Alike]:
        """The format of files, given that of the user, and the request to read them as the training files were read.

        Parameters
        ----------
        format : a name, or `{name: ..., option: value}`; "auto" for that of the training files.
        labelled : whether there must be labels.
        """
        return manner(replace(self.layout or Layout(), features=self.inputs), format, labelled)

    def save(self, path: Path | str) -> None:
        """Write the file of the model, whole or not at all; an older one of this name is replaced.

        Parameters
        ----------
        path : such as `model.npz`; its folder exists.

        Raises
        ------
        InputError
            Where it cannot be written, and where its features are made by a transformer or a function, not by arrays.
        """
        members = self.members()
        with whole_file(path) as stream:
            write_arrays(stream, members)

    def export(self, path: Path | str, format: str | Mapping[str, Any]) -> None:
        """Write the model in a format of another program, whole or not at all.

        Parameters
        ----------
        path : of the file; an older one of this name is replaced.
        format : `liblinear`, `vw`, `json`, `onnx` or `c`, or `{"name": ..., option: value}`; see *Export*.

        Raises
        ------
        IncompatibleError
            Where the model has what the format cannot say, which is named: names of features, learned transitions, ...
        InputError
            For a format that is unknown, and where the file cannot be written.
        """
        from bmrm.app.export import EXPORTS
        from bmrm.app.export._core.exported import exported, refuse_unsaid

        writer, plain = EXPORTS.instance(format), exported(self, self.loss)
        name = EXPORTS.describe(writer)["name"]
        refuse_unsaid(plain, name, writer)
        with whole_file(path) as stream:
            writer.write(plain, stream)

    def write(self, stream: IO[bytes]) -> None:
        """The content of `model.npz`.

        Parameters
        ----------
        stream : opened for writing bytes.
        """
        write_arrays(stream, self.members())


def load_model(path: Path | str, loss: Loss | None = None, kernel: Callable[[Any, Any], Any] | None = None) -> Model:
    """Read a model file; nothing in it is executed or unpickled.

    Parameters
    ----------
    path : written by `Model.save` or a run.
    loss : replaces the loss that the file names; needed for predictions if that one is not registered.
    kernel : replaces the kernel of its features; needed for predictions if that is a function of your own.

    Raises
    ------
    InputError
        For a file that is missing, is not a model file, is damaged, or holds pickled objects.
    """
    found = read_model_file(path)
    model = Model(**vars(found), _loss=None if loss is None else in_columns(loss, found.header))
    if kernel is None:
        return model
    if model.features is None:
        raise InputError(f"{path}: the model has no feature map, expected one with a kernel")
    return replace(model, features=model.features.with_kernel(kernel))
