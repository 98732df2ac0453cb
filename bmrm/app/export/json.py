"""JSON: all that the model file has, for programs that read no npz."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.app.export import register
from bmrm.app.export._core.exported import ANY, Exported

VERSION = 1
"""Of the layout of the file."""


@register("json")
@dataclass(frozen=True)
class Json:
    """All of the model as JSON: weights by score, intercept, labels, names, learned arrays, header."""

    says: ClassVar[frozenset[str]] = frozenset({ANY})
    instead: ClassVar[str] = ""

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file."""
        probabilities = model.probabilities
        plain = {
            "bmrm_model": VERSION,
            "loss": model.header["loss"],
            "predicts": model.predicts,
            "probabilities": None if probabilities is None else vars(probabilities),
            "labels": _labels(model.labels),
            "label_type": model.labels.dtype.name if model.labels.size else None,
            "features": None if model.names is None else list(model.names),
            "columns": None if model.columns is None else list(model.columns),
            "first_feature": model.first,
            "unit_norm": model.unit_norm,
            "intercept": model.intercept.tolist(),
            "weights": model.weights.T.tolist(),
            "arrays": {name: array.tolist() for name, array in model.arrays.items()},
            "calibration": _calibration(model),
            "feature_map": _features(model),
            "header": dict(model.header),
        }
        for piece in json.JSONEncoder(allow_nan=False).iterencode(plain):
            stream.write(piece.encode())
        stream.write(b"\n")


def _calibration(model: Exported) -> dict[str, Any] | None:
    found = model.calibration
    if found is None:
        return None
    return {**found.header(), **{name: array.tolist() for name, array in found.arrays().items()}}


def _features(model: Exported) -> dict[str, Any] | None:
    found = model.features
    if found is None:
        return None
    return {**found.header(), **{name: array.tolist() for name, array in found.members().items()}}


def _labels(labels: NDArray[Any]) -> list[Any]:
    plain: list[Any] = (labels.astype(np.str_) if labels.dtype.kind in "mM" else labels).tolist()
    return plain
