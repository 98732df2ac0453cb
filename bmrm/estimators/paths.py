"""Estimators that train for many alphas at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.estimators.rows import RowEstimator
from bmrm.problem import InputError, facts_of, shown

if TYPE_CHECKING:
    import numpy as np

    from bmrm.app.path import Path


class PathEstimator(RowEstimator, ABC):
    """Rows with targets, and a model of them for each of many alphas."""

    fit_intercept: bool

    def path(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        alphas: Sequence[float] | NDArray[np.float64] | None = None,
        n_alphas: int = 100,
        eps: float | None = None,
        stop: Mapping[str, float] | None = None,
    ) -> Path:
        """Models for many `alpha`, from the largest down, each certified.

        The parameters `alpha` and `warm_start` are not looked at.

        Parameters
        ----------
        X : (rows, features), or what else `fit` takes, such as chunks.
        y : (rows,) targets, or what else `fit` takes.

        Raises
        ------
        InputError
            As `fit`; for alphas that do not decrease, and beside `calibrate` or `classes`.
        """
        for name in ("calibrate", "classes"):
            if name in self._get_param_names() and not self._is_default(name):
                raise InputError(f"{self._title}.path: {name} is {shown(getattr(self, name))}, expected the default")
        data, loss, more = self._prepared(X, y, sample_weight, offset)
        grid = {"lambdas": alphas, "n_lambdas": n_alphas, "ratio": eps, "stop": stop}
        return self._walked(data, loss, **grid, **more)

    @abstractmethod
    def _prepared(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Dataset, Any, dict[str, Any]]:
        """The rows, the loss that fits them, and further arguments of `bmrm.fit` and `bmrm.path`."""

    def _walked(self, data: Dataset, loss: Any, **more: Any) -> Path:
        """The path, see `bmrm.path`."""
        self._check_ranges()
        from bmrm.app.path import path  # loads numba

        free = self.fit_intercept and not facts_of(loss).no_free_intercept
        bias: Literal["free", "none"] = "free" if free else "none"
        return path(
            data,
            loss=loss,
            regularizer=self._family("l1_ratio"),
            solver=self._solver(),
            bias=bias,
            threads=self._value("threads"),
            callback=self._printed(),
            features=self.features,
            **more,
        )
