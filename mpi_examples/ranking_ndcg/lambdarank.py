"""lightgbm's lambdarank on our data sets, one thread, one seed: what `tune` holds the losses against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset

Array = NDArray[np.float64]
LEAVES = (4, 8, 16, 31)
TREES = (5, 10, 20, 50, 100, 200, 500)
"""Numbers of trees to choose among where nothing stops early."""
MOST_TREES = 1000
PATIENCE = 100
"""Trees without progress on the validation queries after which no more are grown."""


class Boosted:
    """Trees of so many leaves, each 0.05 of what it could be; their number by early stopping or `trees`.

    Parameters
    ----------
    rows : to learn from.
    leaves : of each tree.
    validation : the queries whose NDCG@10 says when to stop; None to grow `trees`.
    """

    def __init__(self, rows: Dataset, leaves: int, validation: Dataset | None = None, trees: int = MOST_TREES) -> None:
        import lightgbm

        X, y, sizes = _by_query(rows)
        learn = lightgbm.Dataset(X, y, group=sizes, params={"verbosity": -1})
        parameters = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "num_leaves": leaves,
            "learning_rate": 0.05,
            "num_threads": 1,
            "deterministic": True,
            "seed": 0,
            "verbosity": -1,
        }
        watched: list[Any] = []
        callbacks: list[Callable[..., Any]] = []
        if validation is not None:
            X, y, sizes = _by_query(validation)
            watched = [learn.create_valid(X, y, group=sizes)]
            callbacks = [lightgbm.early_stopping(PATIENCE, verbose=False)]
        self.booster = lightgbm.train(parameters, learn, trees, valid_sets=watched, callbacks=callbacks)
        self.leaves = leaves
        self.trees = trees if validation is None else int(self.booster.best_iteration)

    def decision_function(self, rows: Dataset) -> Array:
        """Scores of rows, (rows,)."""
        return np.asarray(self.booster.predict(_dense(rows), num_iteration=self.trees, num_threads=1), np.float64)


def by_validation(rows: Dataset, validation: Dataset, measure: Callable[[Any, Dataset], float]) -> Boosted:
    """Leaves and trees by the validation queries."""
    return max((Boosted(rows, leaves, validation) for leaves in LEAVES), key=lambda model: measure(model, validation))


def by_folds(
    rows: Dataset, folds: Iterable[tuple[Dataset, Dataset]], measure: Callable[[Any, Dataset], float]
) -> tuple[Boosted, float]:
    """Leaves and trees by the mean over folds left out, then trained on all rows; and that mean."""
    choices = [(leaves, trees) for leaves in LEAVES for trees in TREES]
    figures: list[list[float]] = []
    for learnt, left_out in folds:
        figures.append([])
        for leaves in LEAVES:
            model = Boosted(learnt, leaves, trees=max(TREES))
            for model.trees in TREES:
                figures[-1].append(measure(model, left_out))
    means = np.mean(figures, axis=0)
    leaves, trees = choices[int(np.argmax(means))]
    return Boosted(rows, leaves, trees=trees), float(means.max())


def _by_query(part: Dataset) -> tuple[Any, Array, NDArray[np.int64]]:
    """Features and grades, the rows of a query together, and how many rows each has."""
    groups = np.asarray(part.targets.groups)
    order = np.argsort(groups, kind="stable")
    return _dense(part)[order], np.asarray(part.targets.y)[order], np.unique(groups, return_counts=True)[1]


def _dense(part: Dataset) -> Any:
    return part.X if isinstance(part.X, np.ndarray) else part.X.to_scipy().toarray()
