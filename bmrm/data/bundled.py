"""The data sets that come with scikit-learn: `sklearn:NAME`."""

from __future__ import annotations

from bmrm.data.dataset import Dataset
from bmrm.problem import InputError
from bmrm.registry import nearest

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


def load(name: str) -> Dataset:
    """The data set `name`, dense float64.

    `breast_cancer` (2 classes), `iris`, `wine` (3), `digits` (10), `diabetes` (regression), `linnerud` (3 targets).
    """
    if name not in NAMES:
        raise InputError(f"sklearn:{name}: expected one of {', '.join(NAMES)}{nearest(name, NAMES)}")
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Dataset.from_arrays(X, y)
