"""A trained linear model and its file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app import model_view as view
from bmrm.app.measure import check_labelled, check_metrics, predictions, scored, scores_of
from bmrm.data.archives import read_arrays, write_arrays
from bmrm.data.dataset import Dataset, check_groups, check_matrix, named_matrix
from bmrm.data.files import whole_file
from bmrm.data.label_types import is_whole, stored
from bmrm.data.labels import in_form
from bmrm.data.layout import Alike, Layout, aligned
from bmrm.data.matrix import Csr, with_columns
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.reading import Source, scan
from bmrm.data.text_reader import TextReader
from bmrm.data.vocabulary import packed, unpacked
from bmrm.losses import LOSSES
from bmrm.problem import (
    HasProbabilities,
    HasThreshold,
    InputError,
    Loss,
    Regularizer,
    Solution,
    Targets,
    facts_of,
    provides,
    shown,
)
from bmrm.registry import Registry, field_name
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.scaling import SCALINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bmrm.metrics import Scored as Judged
    from bmrm.metrics.intervals import Interval

FORMAT = 2
"""Version of the model file."""
READ = (1, 2)
"""Versions that are read; files of version 1 have no names of features and no input format."""
OWN = "loss_"
"""Prefix of the names of a loss's own arrays in the file."""

RUN = "run_"
"""Prefix of the names of what a checkpoint holds besides the model."""
NAMES = ("name_bytes", "name_ends")
"""The names of the features: their UTF-8 bytes, and where each ends."""

SET_TYPES = ("", *(np.dtype(code).name for code in np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"))
"""Types that labels in sets, or a matrix of them, can have."""

ROW_SCALES = ("none", "unit_norm")
"""Scaling of a row before it is multiplied by the weights; scaling of features is folded into the weights."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """Scores of a row x are `x weights + intercept`.

    Attributes
    ----------
    weights : (dim,), or (dim, scores) for several scores per row; in the space of the raw features.
    intercept : (scores,); zeros where none was learned.
    labels : the user's own labels in score order (of two, the second is positive), in the type that they had; empty for
        regression.
    header : other contents of the file: loss and regularizer with parameters, objective, lower bound, status, ...
    row_scale : "none", or "unit_norm": rows are divided by their Euclidean norm first (rows of zeros stay).
    solution : of the run; None for a model read from a file.
    arrays : other parameters that were learned (cut points, transitions), float64; `header["arrays"]` names them.
    layout : the names of the features and how the training files were read; None if unknown.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    labels: NDArray[Any]
    header: Mapping[str, Any]
    row_scale: str = "none"
    solution: Solution | None = None
    _loss: Any = None
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    layout: Layout | None = None

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.weights.shape[0])

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, in the order of the weights; None where they have none."""
        return None if self.layout is None else self.layout.names

    @property
    def reader(self) -> TextReader | None:
        """How files become rows, if features are text; None for numbered features."""
        return None if self.layout is None else self.layout.text

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
        _checked(LOSSES, self.header["loss"])
        made = LOSSES.make(name, options)
        object.__setattr__(self, "_loss", made)  # a model remembers what its header says
        return made

    @property
    def column_names(self) -> Sequence[str]:
        """A name for each feature: its own, or `x` and its number, as the training file counts (from 0 in arrays)."""
        if self.feature_names is not None:
            return self.feature_names
        if self.reader is not None and self.reader.vocabulary.names:
            return self.reader.vocabulary.names
        first = int(self.layout is not None and bool(self.layout.one_based))
        return [f"x{k}" for k in range(first, first + self.dim)]

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
        from bmrm.app.plots import convergence

        if self.solution is None:
            raise InputError("this model was read from a file and has no history, expected one that was just trained")
        return convergence(self.solution.history, title=repr(self).strip("<>"))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows: (rows,), or (rows, scores) for several scores per row.

        Parameters
        ----------
        X : Dataset, `Csr`, scipy.sparse, array or data frame, (rows, features). Sparse rows may have fewer features
            than the model (the rest are 0), never more. Named columns may be in any order if the model has names too.

        Raises
        ------
        InputError
            For missing or unknown columns, some of which are listed, and for a wrong number of columns.
        """
        matrix, names = (X.X, X.feature_names) if isinstance(X, Dataset) else named_matrix(X)
        matrix = aligned(check_matrix(matrix), names, self.feature_names, "X")
        if matrix.shape[1] > self.dim or (not isinstance(matrix, Csr) and matrix.shape[1] != self.dim):
            raise InputError(f"the data have {matrix.shape[1]} features, the model has {self.dim}")
        data = SCALINGS[self.row_scale].rows(
            Dataset(with_columns(matrix, self.dim), Targets(np.zeros(matrix.shape[0])))
        )
        return scores_of(data, self.weights, self.intercept)

    def predict(self, X: Any, groups: Any = None) -> Any:
        """Predictions of the loss from the scores: labels in the user's type, or numbers for regression; (rows,).

        Label sets have the same form as in training: a list of sets, or a matrix of 0 and 1 (rows, labels), dense or
        sparse.

        Parameters
        ----------
        X : as of `decision_function`; a Dataset brings its groups.
        groups : (rows,) integers: for sequences, the sentence of each token.
        """
        if groups is None and isinstance(X, Dataset):
            groups = X.targets.groups
        return self.predict_scores(self.decision_function(X), groups)

    def predict_scores(self, scores: NDArray[np.float64], groups: Any = None) -> Any:
        """As `predict`, from scores."""
        checked = None if groups is None else check_groups(groups, scores.shape[0])
        sets = self.header.get("sets")
        if provides(self.loss, HasThreshold) and (sets is None or "threshold" not in self.arrays):
            raise InputError(
                "this model (a checkpoint, or of an older version) has no threshold that tells which labels a row has; "
                "its scores (decision_function) rank them"
            )
        predicted = predictions(self.loss, scores, self.labels, self.arrays, checked)
        return predicted if sets is None else in_form(predicted, self.labels, **sets)

    def predict_proba(self, X: Any, groups: Any = None) -> NDArray[np.float64]:
        """Probabilities of the labels, in the order of `labels`: (rows, labels).

        Parameters
        ----------
        X, groups : as of `predict`.

        Raises
        ------
        InputError
            Where the loss is no likelihood, as `logistic`, `softmax` and `chain_crf` are.
        """
        if groups is None and isinstance(X, Dataset):
            groups = X.targets.groups
        return self.probabilities_of_scores(self.decision_function(X), groups)

    def probabilities_of_scores(self, scores: NDArray[np.float64], groups: Any = None) -> NDArray[np.float64]:
        """As `predict_proba`, from scores."""
        if not provides(self.loss, HasProbabilities):
            raise InputError(
                f"{facts_of(self.loss).title} has no probabilities, expected one such as logistic, softmax, chain_crf"
            )
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
    ) -> dict[str, float | None]:
        """Measures of this model on rows with targets, by name; None where a measure is not defined.

        Parameters
        ----------
        X, y : rows and their labels or numbers, as of `bmrm.fit`; or a Dataset, which brings all.
        metrics : names of measures that fit the loss, as `bmrm measures` lists them, such as `["auc", "ndcg@5"]`; None
            for those that the loss names.
        sample_weight : (rows,), >= 0; None for 1 each.
        groups : (rows,) integers: the query or sentence of each row.

        Raises
        ------
        InputError
            For a measure that is unknown or does not fit, naming those that do; for unsuitable rows or targets.
        """
        from bmrm.metrics import evaluate

        names = self._names(metrics)
        return evaluate(names, self._scored(X, y, sample_weight, groups))

    def evaluate_scores(
        self,
        scores: NDArray[np.float64],
        y: Any,
        *,
        metrics: Sequence[str] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> dict[str, float | None]:
        """As `evaluate`, from the scores of rows."""
        from bmrm.metrics import evaluate

        data = Dataset.from_arrays(np.zeros((len(scores), 1)), y, sample_weight, groups)
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
        seed: int = 0,
    ) -> dict[str, Interval]:
        """As `evaluate`, of each of several parts of the rows: the mean and its interval, by name.

        The interval is that of Student's distribution over the values of the folds (Komarek's thesis 2004, section
        5.1.4), whose scores here are all from this one model.

        Parameters
        ----------
        X, y, metrics, sample_weight, groups : as of `evaluate`.
        folds : how many parts of equal size, at random; rows of one group stay together.
        confidence : of the interval, in (0, 1).
        seed : of the parts.

        Raises
        ------
        InputError
            As `evaluate`, and where a measure is not defined in a fold.
        """
        from bmrm.metrics.intervals import folds_of, interval_over_folds

        names, rows = self._names(metrics), self._scored(X, y, sample_weight, groups)
        fold = folds_of(len(rows.y), folds, rows.groups, seed)
        return {name: interval_over_folds(rows, fold, name, confidence) for name in names}

    def _names(self, metrics: Sequence[str] | None) -> Sequence[str]:
        check_metrics(metrics, self.loss)
        return facts_of(self.loss).metrics if metrics is None else metrics

    def _scored(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Judged:
        data = X if isinstance(X, Dataset) else Dataset.from_arrays(X, y, sample_weight, groups)
        return self._with_scores(data, self.decision_function(data))

    def _with_scores(self, data: Dataset, scores: NDArray[np.float64]) -> Judged:
        check_labelled(self.loss, data, "data")
        rows = scored(scores, data.targets, self.loss, self.label_codes, arrays=self.arrays)
        assert rows is not None
        return rows

    def read(self, source: Source, format: str | Mapping[str, Any] = "auto", *, labelled: bool = False) -> Dataset:
        """The rows of a file as this model needs them: columns by name or number, text by templates and dictionary.

        Parameters
        ----------
        source : as of `bmrm.data.reading.read`, with the labels of the rows or without.
        format : likewise; "auto" is the format of the training files, unless the file name implies another.
        labelled : whether there must be labels.

        Raises
        ------
        InputError
            Naming the file, and the line or the columns.
        """
        layout = self.layout or Layout()
        if layout.text is not None:
            data: Dataset = layout.text.read(source, None if format == "auto" else format, labelled=labelled)
            return data
        raw = self.scan(source, format, labelled=labelled)
        return raw.dataset(one_based=layout.one_based if raw.first is not None else None)

    def scan(self, source: Source, format: str | Mapping[str, Any] = "auto", *, labelled: bool = False) -> Raw:
        """As `read`, before it is settled whether columns are numbered from 0 or 1; not for text."""
        format, alike = self.manner(format, labelled)
        raw = scan(source, format=format, alike=alike)
        if labelled and not raw.data.labelled:
            raise InputError(f"{raw.origin}: no labels")
        return raw

    def manner(self, format: str | Mapping[str, Any], labelled: bool) -> tuple[str | Mapping[str, Any], Alike]:
        """The format of files, given that of the user, and the request to read them as the training files were read."""
        layout = self.layout or Layout()
        if isinstance(format, Mapping):  # its label column is the user's word
            layout = replace(layout, format=None, labels=None, places=None)
        elif layout.format is not None and format == layout.format["name"]:
            format = layout.format
        return format, Alike(replace(layout, features=self.dim), labelled)

    def save(self, path: Path | str) -> None:
        """Write `model.npz` atomically."""
        with whole_file(Path(path)) as stream:
            self.write(stream)

    def write(self, stream: IO[bytes]) -> None:
        """The content of `model.npz`."""
        write_arrays(stream, self.members())

    def members(self) -> dict[str, Any]:
        """The arrays of `model.npz` by name."""
        layout = self.layout or Layout()
        header = dict(self.header) | {"format": FORMAT, "row_scale": self.row_scale, "arrays": list(self.arrays)}
        known = {"one_based": layout.one_based, "input": layout.described()}
        header |= {key: value for key, value in known.items() if value is not None}
        if layout.text is not None:
            header["text"] = layout.text.header()
        members: dict[str, Any] = {
            "weights": self.weights,
            "intercept": self.intercept,
            "labels": self.labels,
            "header": np.array(json.dumps(header, allow_nan=False)),
        }
        members |= {OWN + name: array for name, array in self.arrays.items()}
        if layout.names is not None:
            members |= dict(zip(NAMES, packed(layout.names), strict=True))
        if layout.text is not None:
            members |= layout.text.arrays()
        return members


def make_header(
    *, loss: Any, regularizer: Regularizer, dimension: int, solution: Solution, **more: Any
) -> dict[str, Any]:
    """The header of a model file."""
    bound = solution.lower_bound
    return {
        "format": FORMAT,
        "loss": LOSSES.describe(loss),
        "regularizer": REGULARIZERS.describe(regularizer),
        "dimension": dimension,
        "objective": solution.objective if math.isfinite(solution.objective) else None,
        "lower_bound": bound if math.isfinite(bound) else None,
        "status": solution.status.name,
        "version": package_version(),
    } | more


@cache
def package_version() -> str:
    """Of this package."""
    try:
        return version("bmrm")
    except PackageNotFoundError:
        return "unknown"


def named(section: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(name, options) of a section from JSON, with lists converted back to tuples."""
    return section["name"], {key: _tuples(value) for key, value in section.items() if key != "name"}


def from_plain(registry: Registry[Any], section: Mapping[str, Any]) -> Any:
    """The plug-in that a checked section `{name: ..., option: value}` describes."""
    return registry.make(*named(section))


def load_model(path: Path | str, loss: Loss | None = None) -> Model:
    """Read a model file; nothing in it is executed or unpickled.

    Parameters
    ----------
    path : written by `Model.save` or a run.
    loss : replaces the loss that the file names; needed for predictions if that one is not registered.

    Raises
    ------
    InputError
        For a file that is missing, is not a model file, is damaged, or holds pickled objects.
    """
    members = _arrays(Path(path))
    weights, intercept, labels = members["weights"], members["intercept"], members["labels"]
    header = _header(path, members["header"])
    arrays = {name.removeprefix(OWN): array for name, array in members.items() if name.startswith(OWN)}
    scores = 1 if weights.ndim == 1 else weights.shape[-1]
    checks = (
        (weights.dtype == np.float64 and weights.ndim in (1, 2), "weights are not a float64 vector or matrix"),
        (intercept.dtype == np.float64 and intercept.shape == (scores,), f"intercept is not {scores} float64 numbers"),
        (labels.dtype.kind in "fUiubmM" and labels.ndim == 1, "labels are neither numbers nor text"),
        (_all_there(labels), "labels that are missing"),
        (_known_sets(header.get("sets")), "unknown form of sets of labels"),
        (weights.shape[:1] == (header["dimension"],), f"dimension {header['dimension']} is not that of the weights"),
        (bool(np.isfinite(weights).all() and np.isfinite(intercept).all()), "weights that are not finite"),
        (header.get("row_scale", "none") in ROW_SCALES, f"unknown row_scale {shown(header.get('row_scale'))}"),
        (header.get("arrays", []) == list(arrays), "its header does not name its arrays"),
        (all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays.values()), "arrays that are not finite"),
    )
    for right, complaint in checks:
        if not right:
            raise InputError(f"{path}: not a model file: {complaint}")
    row_scale = header.get("row_scale", "none")
    return Model(weights, intercept, labels, header, row_scale, None, loss, arrays, _layout(path, header, members))


def _checked(registry: Registry[Any], section: Mapping[str, Any]) -> None:
    """Raise InputError unless the section makes a plug-in and its values have the types of the options."""
    from bmrm.app.config.fields import checked, option_types

    name, options = named(section)
    types = option_types(registry.get(name).cls)
    try:
        for option, value in options.items():
            if field_name(option) in types:
                checked(types[field_name(option)], value)
    except ValueError as error:
        raise InputError(f"{registry.kind} {shown(name)}: {option} is {shown(value)}, expected {error}") from error
    registry.make(name, options)


def _known_sets(sets: Any) -> bool:
    return sets is None or (
        isinstance(sets, dict)
        and set(sets) == {"form", "dtype"}
        and sets["form"] in ("sets", "matrix", "sparse")
        and isinstance(sets["dtype"], str)
        and sets["dtype"] in SET_TYPES
    )


def _all_there(labels: NDArray[Any]) -> bool:
    if labels.dtype.kind in "mM":
        return not np.isnat(labels).any()
    return labels.dtype.kind != "f" or bool(np.isfinite(labels).all())


def _layout(path: Path | str, header: Mapping[str, Any], members: Mapping[str, NDArray[Any]]) -> Layout:
    try:
        text = TextReader.from_file(header["text"], members) if "text" in header else None
        if text is not None and text.vocabulary.size != header["dimension"]:
            raise InputError(f"its dictionary has {text.vocabulary.size} features, expected {header['dimension']}")
        for section in (text.format if text is not None else None, (header.get("input") or {}).get("format")):
            if isinstance(section, Mapping) and ":" not in str(section.get("name")):
                _checked(formats, section)
        names = unpacked(*(members[name] for name in NAMES)) if NAMES[0] in members else None
        if names is not None and len(names) != header["dimension"]:
            raise InputError(f"{len(names)} names of features, expected {header['dimension']}")
        one_based = header.get("one_based")
        if type(one_based) not in (bool, type(None)):
            raise InputError(f"one_based is {shown(one_based)}")
        known = {"features": header["dimension"], "names": names, "one_based": one_based, "text": text}
        return Layout.from_described(header.get("input"), **known)
    except (InputError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: not a model file: {error}") from error


def _arrays(path: Path) -> Mapping[str, NDArray[Any]]:
    try:
        with open(path, "rb") as stream:
            members = read_arrays(stream, but=RUN)
    except InputError as error:
        raise InputError(f"{path}: not a model file: {error}") from error
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    missing = [name for name in ("weights", "intercept", "labels", "header") if name not in members]
    if missing:
        raise InputError(f"{path}: not a model file: it has no {', '.join(missing)}")
    return members


def _header(path: Path | str, array: NDArray[Any]) -> dict[str, Any]:
    try:
        header = _json(str(array[()])) if array.dtype.kind == "U" and array.ndim == 0 else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or not {"format", "loss", "dimension"} <= header.keys():
        raise InputError(f"{path}: not a model file: its header is not ours")
    if type(header["dimension"]) is not int:
        raise InputError(f"{path}: not a model file: dimension {shown(header['dimension'])}, expected a whole number")
    if header["format"] not in READ:
        raise InputError(f"{path}: model format {shown(header['format'])}, this version reads {FORMAT} and older ones")
    if not isinstance(header["loss"], dict) or not isinstance(header["loss"].get("name"), str):
        raise InputError(f"{path}: not a model file: its header names no loss")
    return header


def _json(text: str) -> Any:
    """JSON without Python's extensions: nan and infinities, by name or by overflow, are refused."""

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            raise ValueError(f"{number} is not finite")
        return value

    return json.loads(text, parse_float=finite, parse_constant=finite)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
