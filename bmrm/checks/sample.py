"""The few milliseconds of the laws that a fit spends at its start on what is not the package's own.

The laws are imported only where there is something to try: ranks that answer seldom have.
"""

from __future__ import annotations

from typing import Any

from bmrm.problem import Space, Summary, Targets, ability
from bmrm.problem.results import is_own


def sample_loss(loss: Any, targets: Targets, summary: Summary) -> None:
    """Raise InputError where a loss of the user's breaks a law on a few of these rows; nothing for our own.

    Parameters
    ----------
    loss : the loss.
    targets : of all the rows that it is prepared with.
    summary : of all rows of all ranks.
    """
    if is_own(loss):
        return
    from bmrm.checks import few_laws

    few_laws.refuse_undeclared("loss", loss)
    few_laws.refuse("loss", loss, few_laws.of_loss(loss, targets, summary))


def sample_regularizer(regularizer: Any, dim: int) -> None:
    """Likewise for a regularizer of vectors w (dim,)."""
    if is_own(regularizer):
        return
    from bmrm.checks import few_laws

    few_laws.refuse_undeclared("regularizer", regularizer)
    few_laws.refuse("regularizer", regularizer, few_laws.of_regularizer(regularizer, dim))


def sample_risk(risk: Any, start: Any = None, *, always: bool = False) -> None:
    """Likewise for a risk, around `start` (zero where None); `always` for one of ours that calls the user's code."""
    if not always and is_own(risk):
        return
    space = ability(risk, Space)
    if space is not None and not space.whole:  # the laws are about vectors that are all there
        return
    from bmrm.checks import few_laws

    few_laws.refuse("risk", risk, few_laws.of_risk(risk, start))


def check_declared(kind: str, one: Any) -> None:
    """Raise InputError where a class of the user's is no dataclass, or lacks a method."""
    if is_own(one):
        return
    from bmrm.checks import few_laws

    few_laws.refuse_undeclared(kind, one)
