"""`python -m mpi_examples.f_measure.tune`: F1 on rows held out, lambda chosen on others, beside plain hinge.

The threshold of `search: f_measure`, and of the line that says so, is chosen on the same rows as lambda.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import bmrm
from bmrm.app.model import Model
from bmrm.data.dataset import Dataset
from bmrm.search import f_measure
from bmrm.search.f_measure import best_threshold
from mpi_examples.prepare import shared_data
from mpi_examples.roc_area.data import load
from mpi_examples.tuning import Contender, compare, options_of_splits, trainer

HINGE = trainer("hinge", bias="free")


def moved_hinge(rows: Dataset, validation: Dataset, lam: float) -> Model:
    """Hinge with the threshold of largest F1 on the validation rows."""
    model = HINGE(rows, validation, lam)
    positive = (np.asarray(validation.targets.y) == model.labels[1]).astype(np.float64)
    threshold, _ = best_threshold(positive, model.decision_function(validation), None, 1.0)
    return replace(model, intercept=model.intercept - threshold)


def searched(rows: Dataset, validation: Dataset, lam: float) -> Model:
    """Cost-sensitive hinge, costs and threshold by the validation rows."""
    pair = validation.X, validation.targets.y
    model, _ = f_measure.fit(rows.X, rows.targets.y, regularizer=bmrm.L2(lam), bias="regularized", validation=pair)
    return model


CONTENDERS = (
    Contender("`f_beta`, regularized intercept", trainer("f_beta", bias="regularized")),
    Contender("`f_beta`", trainer("f_beta")),
    Contender("`hinge`", trainer("hinge")),
    Contender("`hinge`, regularized intercept", trainer("hinge", bias="regularized")),
    Contender("`hinge`, free intercept", HINGE),
    Contender("`hinge`, free intercept, threshold chosen", moved_hinge),
    Contender("`search: f_measure`", searched),
)


def f1(model: Model, rows: Dataset) -> float:
    """F1 of the rows called positive."""
    return model.evaluate(rows, metrics=["f1"])["f1"] or 0.0


def main(arguments: list[str] | None = None) -> None:
    """Print a line per way to learn."""
    given = options_of_splits("f_measure", __doc__).parse_args(arguments)
    data, said = load(shared_data(given.without_shared))
    print(f"{said}: {data.rows} rows, F1, {given.splits} splits")
    compare(data, CONTENDERS, f1, given)


if __name__ == "__main__":
    main()
