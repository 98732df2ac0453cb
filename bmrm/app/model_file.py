"""The file of a model, `model.npz`: arrays and a header in JSON, written and read without pickle."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.app.calibration.curves import Calibration
from bmrm.data.archives import read_arrays
from bmrm.data.encoding import Encoding
from bmrm.data.features._core.fitted import FittedFeatures
from bmrm.data.files import checked_path
from bmrm.data.layout import Layout
from bmrm.data.readers._core.formats import formats
from bmrm.data.text_reader import TextReader
from bmrm.data.vocabulary import packed, unpacked
from bmrm.losses import LOSSES
from bmrm.losses._core.per_column import KINDS, per_column
from bmrm.problem import InputError, Regularizer, Solution, facts_of, provides, shown
from bmrm.problem.loss import HasProbabilities
from bmrm.registry import Registry, field_name
from bmrm.regularizers import REGULARIZERS

FORMAT = 2
"""Version of the model file."""
READ = (1, 2)
"""Versions that are read; files of version 1 have no names of features and no input format."""
OWN = "loss_"
"""Prefix of the loss's own arrays in the file."""

OFFSET = "offset"
"""Name of the offset in the header, and what it is called where it has no name of its own."""
COLUMNS = "columns"
"""Name in the header of what a model of several columns of targets says of each."""
SHARES = "shares"
"""Name in the header of whether targets were shares of labels."""
RUN = "run_"
"""Prefix of the arrays of a checkpoint that are not part of the model."""
NAMES = ("name_bytes", "name_ends")
"""Arrays of the names of the features: their UTF-8 bytes, and where each ends."""

SHAPES: Mapping[str, Callable[[int], tuple[int, ...]]] = {
    "transitions": lambda labels: (labels, labels),
    "cut_points": lambda labels: (labels - 1,),
    "threshold": lambda labels: (labels + 1,),
}
"""Shapes of the arrays that losses of the package learn beside the weights, by the number of labels. Those of plug-ins
are free."""

SET_TYPES = ("", *(np.dtype(code).name for code in np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"))
"""Types that labels in sets, or in a matrix of sets, can have."""

ROW_SCALES = ("none", "unit_norm")
"""Scaling of a row before it is multiplied by the weights; scaling of features is folded into the weights."""


@dataclass(frozen=True, eq=False)
class ModelData:
    """What a model consists of; the attributes are those of `bmrm.Model`."""

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    labels: NDArray[Any]
    header: Mapping[str, Any]
    row_scale: str = "none"
    arrays: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    layout: Layout | None = None
    calibration: Calibration | None = None
    features: FittedFeatures | None = None
    _solution: Solution | None = None
    """None for a model of a file, which keeps no solution."""

    @property
    def dim(self) -> int:
        """Number of weights for a score: of features, or of those that `features` makes."""
        return int(self.weights.shape[0])

    @property
    def inputs(self) -> int:
        """Number of features of the rows that it takes."""
        return self.dim if self.features is None else self.features.inputs

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features, in the order of the weights; None where they have none."""
        return None if self.layout is None else self.layout.names

    @property
    def reader(self) -> TextReader | None:
        """How files become rows, if features are text; None for numbered features."""
        return None if self.layout is None else self.layout.text

    @property
    def encoding(self) -> Encoding | None:
        """How the columns of tables become features; None where they are features."""
        return None if self.layout is None else self.layout.encoding

    @property
    def column_names(self) -> Sequence[str]:
        """A name for each feature: its own, or `x` and its number, as the training file counts (from 0 in arrays)."""
        if self.features is not None:
            return self.features.names
        if self.feature_names is not None:
            return self.feature_names
        if self.reader is not None and self.reader.vocabulary.names:
            return self.reader.vocabulary.names
        first = int(self.layout is not None and bool(self.layout.one_based))
        return [f"x{k}" for k in range(first, first + self.dim)]

    def members(self) -> dict[str, Any]:
        """The arrays of `model.npz` by name."""
        layout = self.layout or Layout()
        header = dict(self.header) | {"format": FORMAT, "row_scale": self.row_scale, "arrays": list(self.arrays)}
        known: dict[str, Any] = {"one_based": layout.one_based, "input": layout.described()}
        known["features"] = None if self.features is None else self.features.header()
        known["calibration"] = None if self.calibration is None else self.calibration.header()
        header |= {key: value for key, value in known.items() if value is not None}
        if layout.text is not None:
            header["text"] = layout.text.header()
        if layout.encoding is not None:
            header["encoding"] = layout.encoding.header()
        members: dict[str, Any] = {
            "weights": self.weights,
            "intercept": self.intercept,
            "labels": self.labels,
            "header": np.array(json.dumps(header, allow_nan=False)),
        }
        members |= {OWN + name: array for name, array in self.arrays.items()}
        if self.calibration is not None:
            members |= self.calibration.arrays()
        if self.features is not None:
            members |= self.features.members()
        if layout.encoding is not None:
            members |= layout.encoding.arrays()
        elif layout.names is not None:
            members |= dict(zip(NAMES, packed(layout.names), strict=True))
        if layout.text is not None:
            members |= layout.text.arrays()
        return members


def read_model_file(path: Path | str) -> ModelData:
    """Check and read a file.

    Raises
    ------
    InputError
        For a file that is missing, is not a model file, is damaged, or holds pickled objects.
    """
    members = _arrays(checked_path(path))
    weights, intercept, labels = members["weights"], members["intercept"], members["labels"]
    header = _header(path, members["header"])
    arrays = {name.removeprefix(OWN): array for name, array in members.items() if name.startswith(OWN)}
    for complaint in (*_wrong_header(header), *_wrong_arrays(weights, intercept, labels, header, arrays)):
        raise InputError(f"{path}: not a model file: {complaint}")
    calibration, features = None, None
    try:
        if "calibration" in header:
            calibration = Calibration.from_file(header["calibration"], members, labels.size)
        if "features" in header:
            features = FittedFeatures.from_file(header["features"], members)
            if features.map.outputs != weights.shape[0]:
                raise InputError(
                    f"its feature map makes {features.map.outputs} features, its weights have {len(weights)}"
                )
    except InputError as error:
        raise InputError(f"{path}: not a model file: {error}") from error
    inputs = weights.shape[0] if features is None else features.inputs
    row_scale, layout = header.get("row_scale", "none"), _layout(path, header, members, inputs)
    return ModelData(weights, intercept, labels, header, row_scale, arrays, layout, calibration, features)


def _wrong_header(header: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be in a header of ours."""
    regularizer = header.get("regularizer")
    if regularizer is not None and not (isinstance(regularizer, dict) and isinstance(regularizer.get("name"), str)):
        yield f"its regularizer is {shown(regularizer)}, expected one with a name"
    for name in ("objective", "lower_bound"):
        if type(header.get(name)) not in (int, float, type(None)) or abs(header.get(name) or 0) > sys.float_info.max:
            yield f"{name} is {shown(header[name])}, expected a number"
    for name in ("status", "bias", "version", OFFSET):
        if not isinstance(header.get(name, ""), str):
            yield f"{name} is {shown(header[name])}, expected text"
    chosen = header.get("chosen", {})
    if not isinstance(chosen, dict) or not all(isinstance(value, str) for value in chosen.values()):
        yield f"chosen is {shown(chosen)}, expected text by name"
    columns = header.get(COLUMNS)
    if columns is not None and not (isinstance(columns, dict) and columns.get("kind") in KINDS):
        yield f"{COLUMNS} is {shown(columns)}, expected a table with one of the kinds {', '.join(KINDS)}"
    if type(header.get(SHARES, True)) is not bool:
        yield f"{SHARES} is {shown(header[SHARES])}, expected true or false"
    if not _known_sets(header.get("sets")):
        yield "unknown form of sets of labels"
    if header.get("row_scale", "none") not in ROW_SCALES:
        yield f"unknown row_scale {shown(header.get('row_scale'))}"
    if not isinstance(header.get("arrays", []), list):
        yield "its header does not name its arrays"


def _wrong_arrays(
    weights: NDArray[Any],
    intercept: NDArray[Any],
    labels: NDArray[Any],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> Iterator[str]:
    """What does not fit; each of these rests on those before it."""
    if weights.dtype != np.float64 or weights.ndim not in (1, 2) or not weights.size:
        yield "weights are not a float64 vector or matrix"
        return
    scores = 1 if weights.ndim == 1 else weights.shape[1]
    if intercept.dtype != np.float64 or intercept.shape != (scores,):
        yield f"intercept is not {scores} float64 numbers"
        return
    if labels.dtype.kind not in "fUiubmM" or labels.ndim != 1:
        yield "labels are neither numbers nor text"
        return
    if not _all_there(labels):
        yield "labels that are missing"
    if len(set(labels.tolist())) < labels.size:
        yield "a label twice"
    if weights.shape[0] != header["dimension"]:
        yield f"dimension {shown(header['dimension'])} is not that of the weights"
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        yield "weights that are not finite"
    if header.get("arrays", []) != list(arrays):
        yield "its header does not name its arrays"
    yield from wrong_learned(arrays, labels.size)


def wrong_learned(arrays: Mapping[str, NDArray[Any]], labels: int) -> Iterator[str]:
    """What is wrong with the arrays that a loss learns beside the weights, for so many labels."""
    for name, array in arrays.items():
        shape = SHAPES[name](labels) if name in SHAPES else np.shape(array)
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
            yield f"{name}: {getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}, expected " + (
                f"float64 of shape {shape} for {labels} labels"
            )
        elif not np.isfinite(array).all():
            yield f"{name} has numbers that are not finite"


def check_fits(loss: Any, model: ModelData) -> None:
    """Raise InputError where the loss cannot predict from such scores, labels and arrays: a file that was put together.

    It is tried on two rows.
    """
    facts, labels = facts_of(loss), model.labels
    columns = 1 if model.weights.ndim == 1 else model.weights.shape[1]
    if facts.task in ("multiclass", "multilabel", "ontology") and labels.size != columns:
        raise InputError(f"the model has {labels.size} labels and {columns} scores, {facts.title} as many of both")
    if facts.task == "binary" and (labels.size != 2 or model.weights.ndim != 1):
        raise InputError(
            f"the model has {labels.size} labels and weights of shape {model.weights.shape}, {facts.title} 2"
        )
    if facts.task in ("regression", "multivariate", "ranking") and labels.size:
        raise InputError(f"the model has {labels.size} labels, {facts.title} has none")
    scores = np.array([-1.0, 1.0]) if model.weights.ndim == 1 else np.arange(2.0 * columns).reshape(2, columns)
    if facts.by_structure:  # of which nothing is known here
        return
    more = {"groups": np.zeros(2, np.int64)} if facts.by_group else {}
    try:
        loss.predict(scores, labels, **model.arrays, **more)
        if provides(loss, HasProbabilities):
            loss.probabilities(scores, **model.arrays, **more)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the model's weights of shape {model.weights.shape}, {labels.size} labels and arrays "
            f"({', '.join(f'{name} {array.shape}' for name, array in model.arrays.items()) or 'none'}) do not fit "
            f"{facts.title}: {error}"
        ) from error


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


def in_columns(loss: Any, header: Mapping[str, Any]) -> Any:
    """The loss of a model of several columns of targets; the loss itself of others."""
    columns = header.get(COLUMNS)
    return loss if columns is None else per_column(columns["kind"], loss)


def from_plain(registry: Registry[Any], section: Mapping[str, Any]) -> Any:
    """The plug-in that a checked section `{name: ..., option: value}` describes."""
    return registry.make(*named(section))


def checked_section(registry: Registry[Any], section: Mapping[str, Any]) -> None:
    """Raise InputError unless the section makes a plug-in and its values have the types of the options."""
    from bmrm.app.config.fields import checked, option_types

    if not isinstance(section.get("name"), str):
        raise InputError(f"{registry.kind} is {shown(section.get('name'))}, expected a name")
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


def _layout(path: Path | str, header: Mapping[str, Any], members: Mapping[str, NDArray[Any]], inputs: int) -> Layout:
    try:
        text = TextReader.from_file(header["text"], members) if "text" in header else None
        if text is not None and text.vocabulary.size != inputs:
            raise InputError(f"its dictionary has {text.vocabulary.size} features, expected {inputs}")
        for section in (text.format if text is not None else None, (header.get("input") or {}).get("format")):
            if isinstance(section, Mapping) and ":" not in str(section.get("name")):
                checked_section(formats, section)
        encoding = Encoding.from_file(header["encoding"], members) if "encoding" in header else None
        names = unpacked(*(members[name] for name in NAMES)) if NAMES[0] in members else None
        offset = (header.get("input") or {}).get("offset")
        names = names if encoding is None else tuple(name for name in encoding.names if name != offset)
        if names is not None and len(names) != inputs:
            raise InputError(f"{len(names)} names of features, expected {inputs}")
        one_based = header.get("one_based")
        if type(one_based) not in (bool, type(None)):
            raise InputError(f"one_based is {shown(one_based)}")
        known = {"features": inputs, "names": names, "one_based": one_based, "text": text}
        known |= {"encoding": encoding}
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
