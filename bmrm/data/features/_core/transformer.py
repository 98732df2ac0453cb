"""A transformer of scikit-learn as a feature map, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features._core.rows import AllRows, Mapped, plain
from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import InputError


@runtime_checkable
class Transformer(Protocol):
    """Anything with these two."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from rows."""
        ...

    def transform(self, X: Any) -> Any:
        """New rows."""
        ...


@dataclass(frozen=True, eq=False)
class TransformerMap:
    """What a fitted transformer makes of rows."""

    transformer: Transformer
    outputs: int

    def apply(self, X: Matrix) -> Matrix:
        """As of `Mapped`."""
        return made_by(self.transformer, X)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of `Mapped`: there is none."""
        raise InputError(
            f"a model whose features a {type(self.transformer).__name__} makes cannot be saved, its file has arrays"
            " only; keep it in a pipeline of scikit-learn, or take features: nystroem, random_fourier, polynomial or"
            " incomplete_cholesky"
        )

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> Mapped:
        """As of `Mapped`: there is none."""
        raise InputError("a transformer is in no file")


@dataclass(frozen=True)
class OfTransformer:
    """The map that a copy of a transformer becomes by `fit`, of one process."""

    transformer: Any

    def numbers(self, X: Matrix) -> int:
        """As of `Features`."""
        return 0

    def fitted(self, rows: AllRows) -> tuple[TransformerMap, Matrix]:
        """As of `Features`."""
        from sklearn.base import clone

        copy: Any = clone(self.transformer, safe=False)
        made = made_by(copy.fit(plain(rows.X)), rows.X)
        return TransformerMap(copy, int(made.shape[1])), made


def made_by(transformer: Transformer, X: Matrix) -> Matrix:
    """Its rows; InputError for what is no table of numbers."""
    from scipy.sparse import issparse

    made = transformer.transform(plain(X))
    table = made if issparse(made) else np.asarray(made)
    if table.ndim != 2 or table.shape[0] != X.shape[0] or table.dtype.kind not in "fiub":
        raise InputError(
            f"features: {type(transformer).__name__} gave {table.dtype} of shape {table.shape}, expected numbers "
            f"({X.shape[0]}, features)"
        )
    if issparse(made):
        return Csr.from_scipy(made)
    return np.ascontiguousarray(table, table.dtype if table.dtype == np.float32 else np.float64)
