"""What is written of a model: scores, what is predicted from them, and what a format may be unable to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.app.calibration.curves import Calibration
from bmrm.app.export._core.probabilities import Probabilities, probabilities_of
from bmrm.app.model_file import ModelData
from bmrm.data.features._core.fitted import FittedFeatures
from bmrm.problem import IncompatibleError, facts_of

Predicts = Literal["sign", "largest", "score", "exponential", "other"]
"""What follows from scores: the second label where the only score is above 0, else the first; the label of the largest
score; the scores; their exponentials; or something that only the loss knows."""

NAMES = "names of its features"
UNIT_NORM = "rows that are divided by their norm"
TEXT_LABELS = "labels that are no whole numbers"
EXPONENTIAL = "predictions that are exp(score)"
SEVERAL_OUTPUTS = "several outputs of a regression"
OTHER = "predictions that only its loss can make"
READER = "text as features"
MAPPED = "features that are made of others"
CALIBRATED = "calibrated probabilities"
SIGMOID = "probabilities that are calibrated by a sigmoid"
COLUMNS = "columns that become features by an encoding (categories, text, missing values)"
OFFSET = "an offset that is added to its scores"
"""What a model may have, in words of the message where a format cannot say it; learned arrays are called by name."""


class Format(Protocol):
    """A frozen dataclass of options."""

    instead: ClassVar[str]
    """What to do where it cannot say something."""

    @property
    def says(self) -> frozenset[str]:
        """What it can say beside scores and whole labels, as above; `ANY` for all that there is."""
        ...

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file."""
        ...


ANY = "anything"


@dataclass(frozen=True, eq=False)
class Exported:
    """A model, as formats take it.

    Attributes
    ----------
    weights : (dim, scores), of raw features.
    intercept : (scores,).
    labels : the user's own, in score order; empty where there are none.
    predicts : what follows from scores.
    probabilities : of the labels, from scores; None where there are none.
    names : of the features, or None.
    first : the number of the first feature in the file that it was trained from; 0 for arrays.
    unit_norm : whether rows are divided by their Euclidean norm first.
    arrays : other learned parameters.
    header : of the model file.
    text : whether features are text.
    calibration : of a model that is calibrated, whose probabilities are then those.
    columns : how columns become features, as plain JSON; None where they are features.
    features : what the weights are of, where that is not the raw features.
    """

    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    labels: NDArray[Any]
    predicts: Predicts
    probabilities: Probabilities | None
    names: Sequence[str] | None
    first: int
    unit_norm: bool
    arrays: Mapping[str, NDArray[Any]]
    header: Mapping[str, Any]
    text: bool
    calibration: Calibration | None = None
    columns: Sequence[Mapping[str, Any]] | None = None
    features: FittedFeatures | None = None

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.weights.shape[0])

    @property
    def scores(self) -> int:
        """Number of scores of a row."""
        return int(self.weights.shape[1])

    @property
    def whole_labels(self) -> NDArray[np.int64] | None:
        """The labels as whole numbers of 32 bits; None where they are none."""
        kind = self.labels.dtype.kind
        if kind in "US" or kind in "mM":
            return None
        whole = self.labels.astype(np.int64)
        return whole if np.array_equal(whole, self.labels) and np.all(np.abs(whole) < 2**31) else None

    @property
    def title(self) -> str:
        """Loss and version, for comments."""
        return f"loss {self.header['loss']['name']}, by bmrm {self.header.get('version', 'unknown')}"

    def needs(self) -> Iterator[str]:
        """What a format must be able to say, beside scores and whole labels."""
        if self.names is not None:
            yield NAMES
        if self.header.get("offset") is not None:
            yield OFFSET
        if self.unit_norm:
            yield UNIT_NORM
        if self.labels.size and self.whole_labels is None:
            yield TEXT_LABELS
        if self.text:
            yield READER
        if self.columns is not None:
            yield COLUMNS
        if self.features is not None:
            yield MAPPED
        if self.predicts == "exponential":
            yield EXPONENTIAL
        if self.predicts == "score" and self.scores > 1:
            yield SEVERAL_OUTPUTS
        if self.predicts == "other":
            yield OTHER
        if self.calibration is not None:
            yield SIGMOID if self.calibration.method == "sigmoid" else CALIBRATED
        yield from (name.replace("_", " ") for name in self.arrays)


def exported(model: ModelData, loss: Any) -> Exported:
    """The model as formats take it.

    Parameters
    ----------
    model : that was trained.
    loss : it was trained with.
    """
    table = model.weights.reshape(model.dim, -1)
    return Exported(
        weights=table,
        intercept=model.intercept,
        labels=model.labels,
        predicts=_predicts(loss, table.shape[1]),
        probabilities=probabilities_of(loss, model.calibration, model.labels.size),
        names=model.feature_names if model.reader is None else model.reader.vocabulary.names or None,
        first=int(model.layout is not None and bool(model.layout.one_based)),
        unit_norm=model.row_scale == "unit_norm",
        arrays=model.arrays,
        header=model.header,
        text=model.reader is not None,
        calibration=model.calibration,
        columns=None if model.encoding is None else model.encoding.plain(),
        features=model.features,
    )


def _predicts(loss: Any, scores: int) -> Predicts:
    """Numbers are told apart by what the loss predicts from some scores."""
    task = facts_of(loss).task
    if task in ("binary", "multiclass"):
        return "sign" if scores == 1 else "largest"
    if task in ("regression", "ranking", "multivariate", "ordinal"):
        some = np.array([-1.5, 0.0, 2.0]) if scores == 1 else np.arange(3.0 * scores).reshape(3, scores)
        try:
            found = loss.predict(some, [])
        except Exception:  # of a loss that needs what it has learned
            return "other"
        for name, expected in (("score", some), ("exponential", np.exp(some))):
            if np.shape(found) == some.shape and np.allclose(found, expected, rtol=1e-15, atol=0.0):
                return name  # type: ignore[return-value]
    return "other"


def refuse_unsaid(model: Exported, name: str, format: Format) -> None:
    """Raise IncompatibleError, once, for all that the model has and the format cannot say."""
    if ANY in format.says:
        return
    unsaid = [need for need in model.needs() if need not in format.says]
    if unsaid:
        raise IncompatibleError(
            f"export format {name} cannot say what the model has: {', '.join(unsaid)}{format.instead}"
        )
