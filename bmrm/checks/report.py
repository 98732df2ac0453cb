"""What a check has found: the laws that hold, and for each that does not the place and the amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bmrm.problem import InputError

SHOWN = 6
"""Entries of an array that a message shows."""


@dataclass(frozen=True, eq=False)
class Violation:
    """One law that does not hold at one place.

    Attributes
    ----------
    law : its name, such as "convexity".
    point : where, to be read: "f = 1.5, y = -1 (row 3)".
    amount : by how much, rounding taken off; inf where it is no question of amount.
    message : what was expected and what was found.
    points : the arrays themselves, to look there again.
    """

    law: str
    point: str
    amount: float
    message: str
    points: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.law}: {f'at {self.point}: ' if self.point else ''}{self.message}"


@dataclass(frozen=True)
class Report:
    """The result of a check; `print` it, ask for `ok`, or call `raise_if_failed`.

    Attributes
    ----------
    subject : what was checked.
    held : the laws that were tried and hold.
    violations : a place for each law that does not.
    skipped : laws that were not tried, and why.
    """

    subject: str
    held: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every law that was tried holds."""
        return not self.violations

    def raise_if_failed(self) -> None:
        """Raise InputError with the report where a law does not hold."""
        if not self.ok:
            raise InputError(str(self))

    def __str__(self) -> str:
        tried = len(self.held) + len(self.violations)
        if self.ok:
            lines = [f"{self.subject}: {_laws(tried)}, all hold"]
        else:
            lines = [f"{self.subject}: {len(self.violations)} of {_laws(tried)} broken"]
            lines += [f"  {violation}" for violation in self.violations]
        if self.held:
            lines.append(f"  held: {', '.join(self.held)}")
        reasons: dict[str, list[str]] = {}
        for law, why in self.skipped.items():
            reasons.setdefault(why, []).append(law)
        lines += [f"  not tried: {', '.join(laws)} ({why})" for why, laws in reasons.items()]
        return "\n".join(lines)


class BrokenLawError(Exception):
    """A law does not hold, and what follows it cannot be tried."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


def raised(error: BaseException) -> str:
    """What an error of the user's code says, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
    return f"raised {type(error).__name__}: {error}{where}"


def _laws(count: int) -> str:
    return "1 law" if count == 1 else f"{count} laws"


def shown(value: Any) -> str:
    """A number or an array for a message: all of a short one, the first entries and the norm of a long one."""
    array = np.asarray(value)
    if array.size == 1 or array.dtype.kind not in "fiub":
        return f"{array.item():.10g}" if array.dtype.kind in "fiub" else str(value)
    flat = array.ravel()
    entries = ", ".join(f"{entry:.6g}" for entry in flat[:SHOWN].tolist())
    if flat.size <= SHOWN:
        return f"({entries})"
    return f"({entries}, ...) of {flat.size} entries, norm {np.linalg.norm(flat):.6g}"
