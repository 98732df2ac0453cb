"""Whether a loss keeps the laws: `check_loss`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bmrm.checks import plug_in
from bmrm.checks.cases import Case
from bmrm.checks.loss_laws import LOSS_LAWS, members
from bmrm.checks.named import instance_of, title_of
from bmrm.checks.proximal import PROX_LAWS
from bmrm.checks.report import Report
from bmrm.checks.running import Laws
from bmrm.checks.targets import groups_for, targets_for
from bmrm.data.labels import LabelSets
from bmrm.losses import LOSSES
from bmrm.problem import Targets

ALL_LAWS: Laws[Case] = LOSS_LAWS.followed_by(PROX_LAWS)


def check_loss(
    loss: Any,
    y: Any = None,
    *,
    groups: Any = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Report:
    """Try whether a loss keeps the laws that solvers and their lower bounds rest on.

    They are: results of the right shape, finite, new arrays, the same each time, inputs left alone; values never below
    the infimum; the slope is that of the values, f -> loss(f) is convex, its planes lie below it; the loss of all
    rows is the sum of those of each (where it says so), in any order; a weight means so many copies of the row; and,
    where they are offered, second derivatives, values along a line and proximal maps. Differences count only beyond
    rounding, which is measured where they are met.

    Parameters
    ----------
    loss : an instance, a class (made with defaults and examples), or a name as configs have it (`module:Class`).
    y : (rows,) targets inside the domain; None to make some up for the loss's task.
    groups : (rows,) integers, for losses over groups; None for none.
    options : of the loss, where it is given by name or class.
    seed : of the scores that are tried.

    Returns
    -------
    Report
        `ok`, or a place for each law that is broken; `print` it. `raise_if_failed()` raises InputError.

    Raises
    ------
    InputError
        No loss of this name, a parameter without default and example, targets that the loss refuses, or none can be
        made up for a task of its own.

    Examples
    --------
    >>> print(extend.check_loss(PseudoHuber()))      # doctest: +SKIP
    >>> extend.check_loss("my_losses:PseudoHuber").raise_if_failed()      # doctest: +SKIP
    """
    loss = instance_of(LOSSES, loss, options)
    title = title_of(loss)
    missing = next(members(loss), None) or next(plug_in.declared(loss), None)
    if missing is not None:
        return Report(title, (), (missing,), dict.fromkeys(list(ALL_LAWS.all)[1:], f"after {missing.law}"))
    groups = groups_for(loss) if groups is None and y is None else groups
    y = targets_for(loss) if y is None else y
    groups = None if groups is None else np.asarray(groups, np.int64)
    y_array: Any = y if isinstance(y, LabelSets) else np.asarray(y)
    targets = Targets(y_array, None, groups)
    return ALL_LAWS.report(title, Case(loss, targets, seed))
