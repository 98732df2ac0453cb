"""Laws are tried in order; a report says which hold, and for each that does not the place and the amount."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from bmrm.problem import BmrmError, InputError

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


T = TypeVar("T")


class NotOfferedError(Exception):
    """The law is about something that this object does not offer; the text says what."""


class Laws(Generic[T]):
    """Laws by name, in the order in which they are tried; each yields violations of what it is given."""

    def __init__(self, laws: Mapping[str, Callable[[T], Iterable[Violation]]] | None = None) -> None:
        self.all = dict(laws or {})

    def law(self, name: str) -> Callable[[Callable[[T], Iterable[Violation]]], Callable[[T], Iterable[Violation]]]:
        """Decorator: the function is the law `name`."""

        def keep(function: Callable[[T], Iterable[Violation]]) -> Callable[[T], Iterable[Violation]]:
            self.all[name] = function
            return function

        return keep

    def violation(self, name: str, of: T) -> Violation | None:
        """The first violation of one law, None where it holds; raises NotOfferedError."""
        with np.errstate(all="ignore"):
            try:
                return next(iter(self.all[name](of)), None)
            except BrokenLawError as broken:
                return broken.violation
            except (BmrmError, NotOfferedError):
                raise
            except Exception as error:
                return Violation(name, "", np.inf, raised(error))

    def after(self, subject: str, missing: Violation) -> Report:
        """A report on what lacks something without which no law can be tried."""
        later = [name for name in self.all if name != missing.law]
        return Report(subject, (), (missing,), dict.fromkeys(later, f"after {missing.law}"))

    def report(self, subject: str, of: T) -> Report:
        """Try all laws; one that fails before the numbers can be compared ends the check."""
        held, violations, skipped = [], [], dict[str, str]()
        for name in self.all:
            try:
                found = self.violation(name, of)
            except NotOfferedError as why:
                skipped[name] = str(why)
                continue
            if found is None:
                held.append(name)
                continue
            violations.append(found)
            if found.law in FIRST:
                later = list(self.all)[list(self.all).index(name) + 1 :]
                skipped |= dict.fromkeys(later, f"after {found.law}")
                break
        return Report(subject, tuple(held), tuple(violations), skipped)


FIRST: Mapping[str, str] = dict.fromkeys(("runs", "shapes", "finite"), "")
"""Laws that are checked first: without them the others are meaningless."""
