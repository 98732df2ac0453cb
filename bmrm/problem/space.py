"""How w is laid out, and the sums over its coordinates: all that solvers, masters and planes know of its size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import InputError, Vector


@dataclass(frozen=True)
class Space:
    """The layout of w: a table (inputs, scores) in C order, then what the loss learns besides.

    A risk that has one offers it as an ability; of a user's risk each coordinate is an input of one score.

    Vectors may be slices: where each rank holds some coordinates of every vector, a class derived from this one says
    `whole = False` and adds up over the ranks in `total`, from which `dot` and `norm` follow. Every rank then runs the
    same solver on its slices and takes the same decisions.

    Attributes
    ----------
    inputs : rows of the table: the features, and the constant feature after them where it is regularized.
    scores : numbers that an example is scored with, K for K classes.
    tail : parameters of the loss at the end of w, such as transitions between labels.
    """

    inputs: int
    scores: int = 1
    tail: int = 0
    whole: ClassVar[bool] = True
    """Whether vectors hold all coordinates, not a slice of them."""

    @property
    def dim(self) -> int:
        """The length of vectors, of slices where they are slices."""
        return self.inputs * self.scores + self.tail

    def total(self, parts: Any) -> Any:
        """Sums over the coordinates at hand, added up over all slices.

        Parameters
        ----------
        parts : a number or an array of them; of the same shape on all ranks, which get the same result, bit for bit.
        """
        return parts

    def dot(self, a: Vector, b: Vector) -> float:
        """The inner product; it overflows without a warning.

        Parameters
        ----------
        a, b : (dim,).
        """
        return float(self.total(np.vdot(a, b)))

    def norm(self, a: Vector) -> float:
        """The Euclidean norm; inf where it overflows.

        Parameters
        ----------
        a : (dim,).
        """
        return math.sqrt(self.dot(a, a))

    def everywhere(self, here: bool) -> bool:
        """Whether it holds for all slices: what a solver decides on must be the same on all ranks.

        Parameters
        ----------
        here : whether it holds for the slice at hand.
        """
        return here if self.whole else float(self.total(float(not here))) == 0.0

    def same(self, a: Vector, b: Vector) -> bool:
        """Whether two vectors are equal.

        Parameters
        ----------
        a, b : (dim,).
        """
        return a is b or self.everywhere(np.array_equal(a, b))

    def zeros(self) -> Vector:
        """The origin, (dim,)."""
        return np.zeros(self.dim)

    def table(self, w: Vector) -> NDArray[np.float64]:
        """The weights of the inputs, (inputs, scores), a view.

        Parameters
        ----------
        w : (dim,), laid out as this space says.
        """
        return w[: self.inputs * self.scores].reshape(self.inputs, self.scores)

    def coordinates(self, inputs: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where in w the weights of some inputs are, for all scores.

        Parameters
        ----------
        inputs : their numbers, from 0.

        Raises
        ------
        InputError
            For an input that is not there.
        """
        inputs = np.asarray(inputs, np.int64)
        if inputs.size and not (inputs.min() >= 0 and inputs.max() < self.inputs):
            outside = inputs[(inputs < 0) | (inputs >= self.inputs)][0]
            raise InputError(f"feature {outside} is in a group, expected 0 to {self.inputs - 1}")
        return (inputs[:, None] * self.scores + np.arange(self.scores)).ravel()
