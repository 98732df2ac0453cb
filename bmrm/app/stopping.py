"""When a solver is stopped by a measure of validation rows: `solver.stop: {measure: map, patience: 5}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bmrm.problem import InputError, shown
from bmrm.registry import Range, checked_value

EXPECTED = "{measure: NAME, patience: 5}, NAME a measure of the validation rows"


@dataclass(frozen=True)
class Stopping:
    """The solver is stopped where a measure of the validation rows has not become better for some time.

    Attributes
    ----------
    measure : its name.
    patience : measurements without a better one, after which the solver is stopped.
    """

    measure: str
    patience: int = 5

    def plain(self) -> dict[str, Any]:
        """As a config has it."""
        return {"measure": self.measure, "patience": self.patience}


def checked(given: Any) -> Stopping | None:
    """What was given; None for None; InputError for what it may not be."""
    if given is None or isinstance(given, Stopping):
        return given
    wrong = not isinstance(given, Mapping) or set(given) - {"measure", "patience"}
    if wrong or not isinstance(given.get("measure"), str):
        raise InputError(f"stop is {shown(given)}, expected {EXPECTED}")
    patience = checked_value("stop: patience", given.get("patience", 5), (int,), Range(least=1))
    return Stopping(given["measure"], patience)
