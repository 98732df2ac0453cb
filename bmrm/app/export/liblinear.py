"""The model file of LIBLINEAR (`train`, `predict`), whose rows are svmlight text with features numbered from 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar

import numpy as np

from bmrm.app.export import register
from bmrm.app.export._core.exported import NAMES, Exported
from bmrm.registry import parameter

SOLVERS = {"logistic": "L2R_LR", "squared_hinge": "L2R_L2LOSS_SVC"}
"""Names by which `predict` tells what it can do with a score: only of L2R_LR it takes `-b 1`, for probabilities."""
TWO_CLASSES, SEVERAL, NUMBERS = "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "L2R_L2LOSS_SVR"
AT_ONCE = 1 << 14
"""Rows of weights that are turned into text at once."""


@register("liblinear")
@dataclass(frozen=True)
class Liblinear:
    """Model file of LIBLINEAR; feature k (from 0) is number k + 1, labels are whole numbers."""

    drop_names: bool = parameter(False, doc="leave out the names of the features: columns are numbered", example=True)

    instead: ClassVar[str] = "; drop_names: true numbers columns in their order, json says all of these"

    @property
    def says(self) -> frozenset[str]:
        """As of `Format`."""
        return frozenset({NAMES} if self.drop_names else ())

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file."""
        stream.writelines(line.encode() for line in _lines(model))


def _lines(model: Exported) -> Iterator[str]:
    columns, labels = np.vstack((model.weights, model.intercept)), model.whole_labels
    bias = 1 if model.intercept.any() else -1
    if model.predicts == "sign":
        solver, classes = SOLVERS.get(model.header["loss"]["name"], TWO_CLASSES), 2
        labels = None if labels is None else labels[::-1]  # the score is that of the first
    elif model.predicts == "largest":
        solver, classes = SEVERAL, model.scores
    else:
        solver, classes, labels = NUMBERS, 2, None
    yield f"solver_type {solver}\nnr_class {classes}\n"
    if labels is not None:
        yield f"label {' '.join(map(str, labels.tolist()))}\n"
    yield f"nr_feature {model.dim}\nbias {bias}\nw\n"
    rows = columns if bias > 0 else columns[:-1]
    for start in range(0, len(rows), AT_ONCE):
        yield "".join(" ".join(map(repr, row)) + " \n" for row in rows[start : start + AT_ONCE].tolist())
