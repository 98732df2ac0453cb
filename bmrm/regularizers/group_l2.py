"""The sum of the norms of groups of weights: the group lasso."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.problem import Space
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, blocks
from bmrm.regularizers._core.groups import Grouped


@register("group_l2")
@dataclass(frozen=True)
class GroupL2(Grouped):
    """lambda sum over groups g of weight_g ||w_g||: the features of a group are in or out together.

    Yuan & Lin (2006). The conjugate is 0 where ||v_g|| <= lambda weight_g for all groups and +inf elsewhere; the
    proximal map shortens each w_g by its threshold, to 0 where it is shorter. With several scores the weights of a
    feature for all of them belong to its group. A feature in no group is one of its own, of weight 1.

    Parameters
    ----------
    lam : lambda > 0.
    groups : lists of features, by number from 0, by name, or as `town=*`, all whose names begin alike; or a file with a
        group on each line, features between blanks or commas. None: every feature is a group of its own.
    weights : of the groups, >= 0; 0 for a group that is not penalised. None for sqrt(features of the group).

    Raises
    ------
    InputError : lambda is not positive and finite; weights that are negative, or not one for each group; groups that
        overlap, or name features that are not there.
    """

    def bind(self, space: Space) -> Blocks:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        return blocks(space, type(self).__name__, partition=self.partition(space, self.lam))
