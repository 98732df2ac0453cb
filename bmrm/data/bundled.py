"""The data sets that come with scikit-learn: `sklearn:NAME`."""

from __future__ import annotations

from dataclasses import replace

from bmrm.data.dataset import Dataset
from bmrm.data.layout import Layout
from bmrm.problem import InputError
from bmrm.registry import nearest

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


def load(name: str) -> Dataset:
    """The data set `name`, dense float64, with the names of its features.

    `breast_cancer` (2 classes), `iris`, `wine` (3), `digits` (10), `diabetes` (regression), `linnerud` (3 targets).
    """
    if name not in NAMES:
        raise InputError(f"sklearn:{name}: expected one of {', '.join(NAMES)}{nearest(name, NAMES)}")
    import sklearn.datasets

    found = getattr(sklearn.datasets, f"load_{name}")()
    data = Dataset.from_arrays(found.data, found.target)
    return replace(data, layout=Layout(features=data.features, names=tuple(map(str, found.feature_names))))
