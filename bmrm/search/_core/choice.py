"""Which candidate is chosen: the best mean over the folds, or the strongest regularizer within one standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.metrics.core import chosen
from bmrm.problem import InputError, shown
from bmrm.registry import nearest
from bmrm.search._core.candidates import LAMBDA
from bmrm.search._core.trials import Trial, mean

RULES = ("best", "one_standard_error")


def check_rule(rule: str) -> str:
    """The rule; InputError for another."""
    if rule not in RULES:
        close = nearest(rule, RULES) if isinstance(rule, str) else ""
        raise InputError(f"choose is {shown(rule)}, expected one of {', '.join(RULES)}{close}")
    return rule


def sign_of(measure: str) -> int:
    """1 where the most of it is the best, -1 where the least is; InputError where neither is."""
    sign = chosen(measure)[0].sign
    if not sign:
        raise InputError(f"{measure} has no best value, expected another measure to choose by")
    return sign


def choose(trials: Sequence[Trial], measure: str, rule: str, names: Sequence[str]) -> int:
    """The number of the chosen candidate.

    Of equally good ones that of the largest lambda, and then the first.

    Parameters
    ----------
    trials : the candidates.
    measure : by whose mean over the folds.
    rule : one of `RULES`.
    names : of the folds.

    Raises
    ------
    InputError
        Where the measure is not defined in a fold, whatever the candidate.
    """
    sign = sign_of(measure)
    means = [mean(trial.by_fold[measure]) for trial in trials]
    known = [k for k, value in enumerate(means) if value is not None and not trials[k].dropped]
    if not known:
        name = next(name for name, value in zip(names, trials[0].by_fold[measure]) if value is None)
        raise InputError(
            f"{measure} is not defined in fold {name}, as where its rows have one class; expected fewer folds, "
            "stratified ones, or another measure"
        )
    best = min(known, key=lambda k: (-sign * means[k], -trials[k].lam, k))  # type: ignore[operator]
    if rule == "best" or len(names) < 2:
        return best
    values = np.array(trials[best].by_fold[measure], np.float64)
    worst = sign * float(means[best]) - float(np.std(values, ddof=1)) / math.sqrt(len(values))  # type: ignore[arg-type]
    others = {name: value for name, value in trials[best].values.items() if name != LAMBDA}
    alike = [k for k in known if all(trials[k].values.get(name) == value for name, value in others.items())]
    within = [k for k in alike if sign * means[k] >= worst]  # type: ignore[operator]
    return min(within, key=lambda k: (-trials[k].lam, -sign * means[k], k))  # type: ignore[operator]
