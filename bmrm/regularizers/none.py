"""No regularizer at all: maximum likelihood, least squares, quantile regression as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.problem import Space
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, blocks


@register("none")
@dataclass(frozen=True)
class NoRegularizer:
    """Omega(w) = 0: the loss alone, as with `C = inf` in other programs.

    Every weight is free. There may be no minimum: with classes that a plane separates, logistic losses fall for ever;
    the run then ends by its own rule and says so. Smooth losses have a bound from slopes that are moved until they
    are orthogonal to all features, others from planes that can be mixed to a slope of 0 (`bundle`). Elsewhere, and
    where slopes do not get there, a run ends where the gradient is small, with OWN_RULE and no bound but that of a
    perfect fit.
    """

    def bind(self, space: Space) -> Blocks:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        return blocks(space, "none")
