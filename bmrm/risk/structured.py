"""A risk over outputs of any structure: the user says how outputs look and how the worst of them is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import near_one
from bmrm.kernels.products.vectors import norm
from bmrm.problem import InputError, Vector
from bmrm.problem.abilities import Magnitudes, Rounding

Features = Any
"""Joint features of an input and an output: a (dim,) array, or (columns, values) of the non-zeros, repetition
allowed."""
Sparse = tuple[NDArray[np.int64] | None, Vector]
JointFeature = Callable[[Any, Any], Features]
Argmax = Callable[[Vector, Any, Any], tuple[Any, float]]
LogPartition = Callable[[Vector, Any], tuple[float, Features]]

RESCALE = ("margin", "slack")
FEW = 32
"""Examples from which the norm of the features is estimated."""


class StructuredRisk:
    """R(w) = (sum over examples of s_i l(x_i, y_i, w)) / (sum of s_i), where outputs y are whatever the user likes.

    With scores s(y') = <w, joint_feature(x, y')> the loss of an example is one of

        max over y' of  cost(y, y') + s(y') - s(y)              `argmax`, rescale="margin"
        max over y' of  cost(y, y') (1 + s(y') - s(y))          `argmax`, rescale="slack"
        log(sum over y' of exp s(y')) - s(y)                    `log_partition`

    (Taskar, Guestrin & Koller 2003; Tsochantaridis et al. 2005; Lafferty et al. 2001.) All are convex and never below
    0. There are no scores of rows to search along, so solvers that need only values and subgradients apply: `bundle`,
    and `lbfgs` for `log_partition`. Their lower bounds are true where inference is exact; where `argmax` misses the
    worst output they are not.

    Parameters
    ----------
    examples : pairs (x, y) of anything.
    joint_feature : (x, y) -> features, a (dim,) array, or (columns, values) of those that are not 0.
    argmax : (w, x, y) -> (worst output, its cost): the maximiser of the loss as `rescale` states it. The cost is >= 0,
        and 0 for y itself.
    log_partition : (w, x) -> (log of the sum of exp scores, its gradient: the expected features).
    rescale : "margin" or "slack", what `argmax` maximises.
    dim : length of w; None where features are arrays, which say it.
    weights : (examples,) >= 0; None for 1 each.
    mass : the divisor; None for the sum of the weights. With examples on several ranks, the sum over all of them.

    Raises
    ------
    InputError
        Not exactly one way of inference, no examples and no `dim`, weights that are wrong, or mass 0; while evaluating:
        features that are not finite or have a wrong length, costs below 0.
    """

    infimum = 0.0

    def __init__(
        self,
        examples: Sequence[tuple[Any, Any]],
        joint_feature: JointFeature,
        *,
        argmax: Argmax | None = None,
        log_partition: LogPartition | None = None,
        rescale: str = "margin",
        dim: int | None = None,
        weights: Any = None,
        mass: float | None = None,
    ) -> None:
        if (argmax is None) == (log_partition is None):
            raise InputError("StructuredRisk: expected either argmax or log_partition")
        if rescale not in RESCALE:
            raise InputError(f"StructuredRisk: rescale is {rescale!r}, expected margin or slack")
        self.examples = examples
        self.joint_feature, self.argmax, self.log_partition, self.rescale = (
            joint_feature,
            argmax,
            log_partition,
            rescale,
        )
        self.weights = _checked_weights(weights, len(examples))
        self._weights = near_one(self.weights)
        with np.errstate(over="ignore"):
            self.local_mass = float(self.weights.sum())
        self.mass = self.local_mass if mass is None else float(mass)
        self._mass = float(self._weights.sum())
        if mass is not None:
            self._mass = float(near_one(np.array([self.mass]), float(self.weights.max(initial=0.0)))[0])
        if not self._mass > 0.0:
            raise InputError("StructuredRisk: the examples have total weight 0, expected at least one above 0")
        self.dim = self._dim() if dim is None else dim

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and a subgradient, a new array (dim,).

        Parameters
        ----------
        w : (dim,), the weights; not changed.
        """
        gradient = np.zeros(self.dim)
        seen = np.array(w)  # a copy: user code must not change the solver's point
        seen.flags.writeable = False
        value = 0.0
        term = self._maximum if self.argmax is not None else self._logarithm
        for weight, (x, y) in zip(self._weights.tolist(), self.examples, strict=True):
            if weight > 0.0:
                value += weight * term(seen, x, y, weight, gradient)
        gradient /= self._mass
        return value / self._mass, gradient

    def ability(self, kind: type) -> Any:
        """`Rounding` where inference is `argmax`: of sums inside `log_partition` nothing is known.

        Parameters
        ----------
        kind : the class of the ability, such as `Scored`.
        """
        if kind is not Rounding or self.argmax is None:
            return None
        return Rounding(f"risk {type(self).__name__}", True, self._magnitudes, self._row_norm)

    def _row_norm(self) -> float:
        """Of the features of the true outputs, the mean of a few examples."""
        few = np.unique(np.linspace(0, len(self.examples) - 1, FEW).astype(int)).tolist() if len(self.examples) else []
        norms = [norm(self._sparse(self.joint_feature(*self.examples[k]))[1]) for k in few]
        return float(np.mean(norms)) if norms else 0.0

    def _magnitudes(self, w: Vector, constant: Vector | None = None, reach: float = 0.0) -> Magnitudes:
        """Features of true and worst outputs, though one loses by less than rounding at w."""
        sizes, costs, most, longest = np.zeros(self.dim), 0.0, 0.0, 0
        for weight, (x, y) in zip(self._weights.tolist(), self.examples, strict=True):
            if weight > 0.0:
                true, found, cost = self._worst(w, x, y)
                costs, most = costs + weight * cost, max(most, cost)
                longest = max(longest, true[1].size, found[1].size)
                for columns, values in (true, found):
                    _add(sizes, (columns, np.abs(values)), weight)
        if self.rescale == "slack":  # a cost of 0 says nothing of outputs that are as bad within rounding
            sizes *= most or 1.0
        return Magnitudes(sizes / self._mass, costs / self._mass, float(longest + 2 * len(self.examples)))

    def _maximum(self, w: Vector, x: Any, y: Any, weight: float, gradient: Vector) -> float:
        true, found, cost = self._worst(w, x, y)
        excess = _dot(found, w) - _dot(true, w)
        factor = 1.0 if self.rescale == "margin" else cost
        value = cost + excess if self.rescale == "margin" else cost * (1.0 + excess)
        if not value > 0.0:  # y itself costs 0, so the worst output costs no less
            return 0.0
        _add(gradient, found, weight * factor)
        _add(gradient, true, -weight * factor)
        return value

    def _worst(self, w: Vector, x: Any, y: Any) -> tuple[Sparse, Sparse, float]:
        """The features of y and of the worst output, and its cost."""
        assert self.argmax is not None
        worst, cost = self.argmax(w, x, y)
        cost = float(cost)
        if not (np.isfinite(cost) and cost >= 0.0):
            raise InputError(f"StructuredRisk: argmax returned cost {cost}, expected a finite number >= 0")
        return self._sparse(self.joint_feature(x, y)), self._sparse(self.joint_feature(x, worst)), cost

    def _logarithm(self, w: Vector, x: Any, y: Any, weight: float, gradient: Vector) -> float:
        assert self.log_partition is not None
        total, expected = self.log_partition(w, x)
        true = self._sparse(self.joint_feature(x, y))
        _add(gradient, self._sparse(expected), weight)
        _add(gradient, true, -weight)
        return max(float(total) - _dot(true, w), 0.0)

    def _dim(self) -> int:
        if not len(self.examples):
            raise InputError("StructuredRisk: no examples to take dim from, expected dim")
        features = self.joint_feature(*self.examples[0])
        if isinstance(features, tuple):
            raise InputError("StructuredRisk: joint_feature gives columns and values, expected dim")
        return int(np.asarray(features).size)

    def _sparse(self, features: Features) -> Sparse:
        """(columns, values), the columns None where there is a value for each."""
        if isinstance(features, tuple):
            columns, values = np.asarray(features[0], np.int64), np.asarray(features[1], np.float64)
            fits = columns.shape == values.shape and values.ndim == 1
            if not fits or (columns.size and (columns.min() < 0 or columns.max() >= self.dim)):
                raise InputError(f"StructuredRisk: joint_feature gives columns outside 0 ... {self.dim - 1}")
        else:
            columns, values = None, np.asarray(features, np.float64)
            if values.shape != (self.dim,):
                raise InputError(f"StructuredRisk: features have shape {values.shape}, expected ({self.dim},)")
        if not np.all(np.isfinite(values)):
            raise InputError("StructuredRisk: features that are not finite")
        return columns, values


def _checked_weights(weights: Any, examples: int) -> Vector:
    if weights is None:
        return np.ones(examples)
    array = np.array(weights, np.float64)
    if array.shape != (examples,) or not np.all(np.isfinite(array)) or np.any(array < 0.0):
        raise InputError(f"StructuredRisk: weights must be {examples} finite numbers >= 0")
    return array


def _dot(features: Sparse, w: Vector) -> float:
    columns, values = features
    return float(values @ (w if columns is None else w[columns]))


def _add(gradient: Vector, features: Sparse, factor: float) -> None:
    columns, values = features
    if columns is None:
        gradient += factor * values
    else:
        np.add.at(gradient, columns, factor * values)
