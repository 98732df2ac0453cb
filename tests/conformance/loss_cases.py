"""Every registered loss, with generated targets and scores that its properties are tried on."""

import numpy as np

from bmrm.checks.cases import Case
from bmrm.data.labels import LabelSets
from bmrm.problem import Targets
from tests.targets import groups_for, targets_for

__all__ = ["Case", "case_of", "plain_targets"]


def case_of(loss):
    return Case(loss, Targets(targets_for(loss), None, groups_for(loss)))


def plain_targets(case):
    """One number, name, list or set of positions per row, as the slow twins take them."""
    y = case.targets.y
    if isinstance(y, LabelSets):
        return [{int(k) for k in np.flatnonzero(row)} for row in y.indicator(np.array(case.summary().labels))]
    if case.targets.groups is not None:
        return list(zip(case.targets.groups.tolist(), y.tolist(), strict=True))
    return (y.astype(int) if case.loss.task == "multiclass" else y).tolist()
