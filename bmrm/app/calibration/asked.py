"""What is asked for: `calibrate` of every door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from bmrm.app.calibration.curves import METHODS
from bmrm.problem import IncompatibleError, InputError, facts_of, shown
from bmrm.registry import Range, checked_value

FOLDS = 5
"""Parts of the training rows that are left out in turn where no number is given and there are no validation rows."""
TASKS = "binary", "multiclass"


@dataclass(frozen=True)
class Calibrate:
    """A method, and on which rows.

    Attributes
    ----------
    method : `sigmoid` or `isotonic`.
    folds : parts of the training rows that are left out in turn; None for the validation rows, or 5 parts without.
    """

    method: str
    folds: int | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {"method": self.method, "folds": self.folds}


def checked(given: Any, name: str = "calibrate") -> Calibrate | None:
    """From a method, a mapping with `method` and `folds`, or None for no calibration.

    Raises
    ------
    InputError
        For anything else.
    """
    if given is None or isinstance(given, Calibrate):
        return given
    section = {"method": given} if isinstance(given, str) else given
    wanted = f"expected {', '.join(METHODS)}, or {{method: ..., folds: ...}}"
    if not isinstance(section, Mapping) or not isinstance(section.get("method"), str):
        raise InputError(f"{name} is {shown(given)}, {wanted}")
    if section["method"] not in METHODS:
        raise InputError(f"{name} is {shown(section['method'])}, {wanted}")
    strange = next((key for key in section if key not in ("method", "folds")), None)
    if strange is not None:
        raise InputError(f"{name} has no option {shown(strange)}, {wanted}")
    folds = checked_value(f"{name}: folds", section.get("folds"), (int, NoneType), Range(least=2))
    return Calibrate(section["method"], folds)


def refuse_without_classes(loss: Any) -> None:
    """Raise IncompatibleError for a loss whose scores are not those of classes."""
    facts = facts_of(loss)
    if facts.task not in TASKS:
        raise IncompatibleError(f"{facts.title}: calibrate needs a loss whose rows have one of two or more classes")
