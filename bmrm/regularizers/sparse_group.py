"""The group lasso and the lasso mixed: few groups, and few features in each."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.problem import Space
from bmrm.registry import parameter
from bmrm.regularizers import register
from bmrm.regularizers._core.blocks import Blocks, blocks
from bmrm.regularizers._core.groups import GROUPS, Grouped


@register("sparse_group")
@dataclass(frozen=True)
class SparseGroup(Grouped):
    """lambda (l1_ratio ||w||_1 + (1 - l1_ratio) sum over groups g of weight_g ||w_g||): few groups, few features each.

    The sparse group lasso (Simon, Friedman, Hastie & Tibshirani 2013). With l1 = lambda l1_ratio and t_g = lambda
    (1 - l1_ratio) weight_g the conjugate is 0 where ||soft(v_g, l1)|| <= t_g for all groups and +inf elsewhere, soft
    being the vector of sign(v_i) max(|v_i| - l1, 0); the proximal map takes off both thresholds, one after the other.
    With several scores the weights of a feature for all of them belong to its group. A feature in no group is one of
    its own, of weight 1.

    Parameters
    ----------
    lam : lambda > 0.
    groups : lists of features, by number from 0, by name, or as `town=*`, all whose names begin alike; or a file with a
        group on each line, features between blanks or commas. None: every feature is a group of its own.
    weights : of the groups, >= 0; 0 for a group with the sum of absolute values alone. None for sqrt(features of the
        group).
    l1_ratio : share of the sum of absolute values, between 0 (that would be `group_l2`) and 1 (`l1`), both excluded.

    Raises
    ------
    InputError : lambda is not positive and finite, l1_ratio not between 0 and 1; weights that are negative, or not one
        for each group; groups that overlap, or name features that are not there.
    """

    l1_ratio: float = parameter(
        0.5,
        doc="share of the l1 norm, 0 < l1_ratio < 1",
        above=0.0,
        below=1.0,
        example=0.9,
        beside={"groups": GROUPS},  # for features alone both norms are one
    )

    def bind(self, space: Space) -> Blocks:
        """Omega for vectors of this space.

        Parameters
        ----------
        space : of w.
        """
        partition = self.partition(space, self.lam * (1.0 - self.l1_ratio))
        return blocks(space, type(self).__name__, partition=partition, l1=self.lam * self.l1_ratio)
