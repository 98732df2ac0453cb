"""The file of a model, `model.npz`: arrays and a header in JSON, written and read without pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.archives import read_arrays
from bmrm.data.layout import Layout
from bmrm.data.readers._core.formats import formats
from bmrm.data.text_reader import TextReader
from bmrm.data.vocabulary import packed, unpacked
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Regularizer, Solution, shown
from bmrm.registry import Registry, field_name
from bmrm.regularizers import REGULARIZERS

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


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a file holds; the attributes are those of `bmrm.Model`."""

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    labels: NDArray[Any]
    header: Mapping[str, Any]
    row_scale: str
    arrays: Mapping[str, NDArray[np.float64]]
    layout: Layout | None

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


def read_model_file(path: Path | str) -> ModelFile:
    """Check and read a file.

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
    return ModelFile(weights, intercept, labels, header, row_scale, arrays, _layout(path, header, members))


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


def checked_section(registry: Registry[Any], section: Mapping[str, Any]) -> None:
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
                checked_section(formats, section)
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
