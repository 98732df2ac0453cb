"""How w is laid out, for regularizers whose parts are features rather than coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import InputError, Vector


@dataclass(frozen=True)
class Space:
    """The layout of w: a table (inputs, scores) in C order, then what the loss learns besides.

    A risk that has one offers it as an ability; of a user's risk each coordinate is an input of one score.

    Attributes
    ----------
    inputs : rows of the table: the features, and the constant feature after them where it is regularized.
    scores : numbers that an example is scored with, K for K classes.
    tail : parameters of the loss at the end of w, such as transitions between labels.
    """

    inputs: int
    scores: int = 1
    tail: int = 0

    @property
    def dim(self) -> int:
        """The length of w."""
        return self.inputs * self.scores + self.tail

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
