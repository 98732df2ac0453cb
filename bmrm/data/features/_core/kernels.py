"""Kernels of scikit-learn by name, or functions of a user's; and the map that is made of some rows and a table."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.features._core.rows import blocks, dtype_of, plain
from bmrm.data.matrix import Csr, Matrix
from bmrm.problem import InputError, Vector, shown
from bmrm.registry import working_folder

KERNELS = ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "polynomial", "rbf", "sigmoid")
"""Of `sklearn.metrics.pairwise.pairwise_kernels`."""
UNIT = ("chi2", "laplacian", "rbf")
"""Those of which k(x, x) is 1."""
TOGETHER = 64
"""Rows whose kernels with one another are computed for the sake of the diagonal."""
OF_NAME = "one of " + ", ".join(KERNELS) + ", module:function, or in Python a function"


@dataclass(frozen=True)
class Kernel:
    """k(x, y).

    Attributes
    ----------
    function : a name in `KERNELS`, `module:function`, or a function of (rows, features) and (others, features) that
        gives (rows, others).
    gamma, degree, coef0 : as of scikit-learn; each kernel takes what it knows.
    """

    function: Any
    gamma: float
    degree: float
    coef0: float

    def between(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Of each row with each other, (rows, others); finite, else InputError."""
        if not X.shape[0]:
            return np.empty((0, Y.shape[0]))
        if isinstance(self.function, str) and ":" not in self.function:
            from sklearn import config_context
            from sklearn.metrics.pairwise import pairwise_kernels

            given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
            try:
                with config_context(assume_finite=True, skip_parameter_validation=True):  # most of the time of one row
                    found = pairwise_kernels(X, Y, metric=self.function, filter_params=True, **given)
            except (TypeError, ValueError) as error:
                raise InputError(f"features: kernel {self.function}: {error}") from error
        else:
            found = np.asarray(self._own()(X, Y))
        if found.shape != (X.shape[0], Y.shape[0]) or found.dtype.kind != "f" or not np.isfinite(found).all():
            wanted = f"finite numbers ({X.shape[0]}, {Y.shape[0]})"
            raise InputError(
                f"features: kernel {shown(self.function)} gave {found.dtype} of shape {found.shape}, expected {wanted}"
            )
        return np.asarray(found, np.float64)

    def diagonal(self, X: Matrix) -> Vector:
        """k(x, x) of each row."""
        if self.function in UNIT:
            return np.ones(X.shape[0])
        found = np.empty(X.shape[0])
        for place, block in blocks(X):
            for start in range(0, block.shape[0], TOGETHER):
                some = block[start : start + TOGETHER]
                found[place][start : start + TOGETHER] = self.between(some, some).diagonal()
        return found

    def _own(self) -> Callable[[Any, Any], Any]:
        if not isinstance(self.function, str):
            function: Callable[[Any, Any], Any] = self.function
            return function
        return imported(self.function)


def checked_kernel(kernel: Any, title: str) -> None:
    """Raise InputError for what is no kernel."""
    if callable(kernel) or (isinstance(kernel, str) and (kernel in KERNELS or ":" in kernel)):
        return
    raise InputError(f"{title}: kernel is {shown(kernel)}, expected {OF_NAME}")


def imported(name: str) -> Callable[[Any, Any], Any]:
    """The function that `module:function` names; InputError where there is none."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise InputError(f"features: kernel {shown(name)}, expected module:function")
    try:
        with working_folder():
            function = vars(importlib.import_module(module))[attribute]
    except (ImportError, KeyError) as error:
        raise InputError(f"features: kernel {shown(name)} cannot be imported: {error}") from error
    if not callable(function):
        raise InputError(f"features: kernel {shown(name)} is no function")
    found: Callable[[Any, Any], Any] = function
    return found


@dataclass(frozen=True, eq=False)
class KernelMap:
    """phi(x) = k(x, P) T.

    Attributes
    ----------
    kernel : k.
    pivots : P, rows.
    table : T, (pivots, features).
    loaded : whether it is from a file, which imports no kernel of a user's.
    """

    kernel: Kernel
    pivots: Matrix
    table: NDArray[np.float64]
    loaded: bool = False

    @property
    def outputs(self) -> int:
        """As of `Mapped`."""
        return int(self.table.shape[1])

    def apply(self, X: Matrix) -> Matrix:
        """As of `Mapped`."""
        function = self.kernel.function
        if self.loaded and isinstance(function, str) and ":" in function:
            raise InputError(
                f"the model was trained with the kernel {function}; hand it over: load_model(path, kernel=...), or "
                f"--kernel {function}"
            )
        found, others = np.empty((X.shape[0], self.outputs), dtype_of(X)), plain(self.pivots)
        for place, block in blocks(X):
            found[place] = self.kernel.between(block, others) @ self.table
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of `Mapped`."""
        if not isinstance(self.kernel.function, str):
            raise InputError(
                "a model whose kernel is a function cannot be saved, its file has no code; expected the kernel as "
                "text, module:function"
            )
        given = {"table": self.table, "gamma": np.array(self.kernel.gamma)}
        if not isinstance(self.pivots, Csr):
            return {**given, "pivots": self.pivots}
        own = self.pivots.own
        values = np.ones(len(own.indices)) if own.values is None else own.values
        return {**given, "pivots_indptr": own.indptr, "pivots_indices": own.indices, "pivots_values": values}

    @classmethod
    def from_arrays(cls, section: Mapping[str, Any], inputs: int, arrays: Mapping[str, NDArray[Any]]) -> KernelMap:
        """As of `Mapped`."""
        pivots: Matrix
        if "pivots" in arrays:
            pivots = arrays["pivots"]
        else:
            indptr, indices, values = (arrays[f"pivots_{name}"] for name in ("indptr", "indices", "values"))
            pivots = Csr(indptr, indices, values, inputs).checked("pivots")
        table = arrays["table"]
        fits = pivots.shape == (len(table), inputs) and table.ndim == 2 and table.dtype == np.float64
        if not fits or pivots.dtype.kind != "f" or arrays["gamma"].ndim:
            raise InputError(
                f"its feature map has pivots {pivots.shape} and a table {table.shape} for {inputs} features"
            )
        gamma, degree, coef0 = float(arrays["gamma"]), section["degree"], section["coef0"]
        checked_kernel(section["kernel"], "features")
        return cls(Kernel(section["kernel"], gamma, degree, coef0), pivots, table, loaded=True)
