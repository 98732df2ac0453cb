"""The sum over features of the norm of their weights for all scores: a feature is in for all classes or for none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.problem import Space
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, Partition, blocks
from bmrm.regularizers.base import ScaledBy


@register("row_group_l2")
@dataclass(frozen=True)
class RowGroupL2(ScaledBy):
    """lambda sum over features j of ||W_j||: W_j are the weights of feature j for all scores, one for each class.

    The norm of the multi-task lasso (Obozinski, Taskar & Jordan 2010): a feature is in for all classes or for none. It
    is `group_l2` with a group for each feature; with one score it is `l1`. What the loss learns besides, such as cut
    points, has the penalty lambda |w|.

    Parameters
    ----------
    lam : lambda > 0.

    Raises
    ------
    InputError : lambda is not positive and finite.
    """

    def bind(self, space: Space) -> Blocks:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        rows = Partition(space)
        rows.add_each(np.arange(space.inputs), self.lam)
        return blocks(space, type(self).__name__, partition=rows.arrays(self.lam))
